// Sessions: programs without MPI_Init, and libraries beside others.
#include <gmock/gmock.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

constexpr char kProgram[] = "tests/mpi/ranks/sessions";
constexpr char kWell[] = "sessions are well";

class SessionsTest : public testing::TestWithParam<Placement> {
 protected:
  static void Expect(const std::string& way, const std::vector<std::string>& variables = {}) {
    ExpectJob(GetParam(), {kProgram, way}, kWell, variables);
  }
};

TEST_P(SessionsTest, LiveWithoutInit) { Expect("alone"); }
TEST_P(SessionsTest, BeginAndEndManyTimes) { Expect("again"); }
TEST_P(SessionsTest, LiveSideBySide) { Expect("at-once"); }
TEST_P(SessionsTest, LiveInThreadsOfTheirOwn) { Expect("threads"); }
TEST_P(SessionsTest, LiveBeforeBesideAndAfterTheWorld) { Expect("beside"); }
TEST_P(SessionsTest, HaveTheThreadsThatTheWorldHas) { Expect("beside-threads"); }
TEST_P(SessionsTest, MayBeSomeRanksAlone) { Expect("some"); }
TEST_P(SessionsTest, HaveBuffersOfTheirOwn) { Expect("buffers"); }

INSTANTIATE_TEST_SUITE_P(Placements, SessionsTest, testing::ValuesIn(AllPlacements()), NameOf);

using SessionPairsTest = SessionsTest;

TEST_P(SessionPairsTest, MakeCommunicatorsOfGroups) { Expect("groups"); }
TEST_P(SessionPairsTest, WaitForNobodyWithAnEmptyGroup) { Expect("empty-groups"); }
TEST_P(SessionPairsTest, HandlersHearOfFailures) { Expect("handlers"); }
TEST_P(SessionPairsTest, MistakesAreNamed) {
  // Calls that name no object have the handler that the program was started with.
  Expect("mistakes", {"FERRY_INITIAL_ERRHANDLER=mpi_errors_return"});
}
TEST_P(SessionPairsTest, TheFirstComesBeforeTheEnd) { Expect("too-late"); }

TEST_P(SessionPairsTest, ARankThatEndsWithOneOpenHasDied) {
  const e2e::CommandResult result = RunJob(GetParam(), {"--keep-going", kProgram, "dies"});
  EXPECT_THAT(result.out, testing::HasSubstr("a death is heard of\n")) << result.err;
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              testing::HasSubstr(") exited with code 0 without MPI_Session_finalize\n"));
}

INSTANTIATE_TEST_SUITE_P(Placements, SessionPairsTest, testing::ValuesIn(Pairs()), NameOf);

// Without a launcher a program is a job of one rank, over its own daemon, which ends with it.
TEST(SessionSingletonTest, LivesWithoutFerryrun) {
  e2e::Command command({kProgram, "again"}, {"PATH=tools/ferryrun:/usr/bin:/bin"});
  const e2e::CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, std::string(kWell) + "\n");
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

}  // namespace
}  // namespace ferry::mpi_tests
