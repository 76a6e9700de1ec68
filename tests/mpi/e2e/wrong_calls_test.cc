// Calls of collectives that do not belong together, as whole jobs: with FERRY_MPI_CHECK=1 all ranks
// fail at once in the same words; without it, who waits for long says for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::HasSubstr;

const char kProgram[] = "tests/mpi/ranks/wrong_calls";

std::vector<Placement> Placements() {
  std::vector<Placement> placements;
  for (Placement& placement : AllPlacements()) {
    if (placement.flags.at(1) != "1") {
      placements.push_back(placement);
    }
  }
  return placements;
}

class WrongCallsTest : public testing::TestWithParam<Placement> {
 protected:
  // What a job in which the last rank keeps others waiting writes to its standard error output.
  static std::string WarningsOf(const std::vector<std::string>& how, const char* warn_after_ms,
                                int exit_code = 0, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = JobOf(GetParam());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.push_back(kProgram);
    arguments.insert(arguments.end(), how.begin(), how.end());
    e2e::Command command(arguments, {std::string("FERRY_MPI_WARN_AFTER_MS=") + warn_after_ms}, "",
                         240);
    const e2e::CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return result.err;
  }
  static std::string Last() { return std::to_string(std::stoi(GetParam().flags.at(1)) - 1); }
  // Of all ranks' warnings the last rank is the reason.
  static void ExpectLastIsNamed(const std::string& warnings, const std::string& call) {
    EXPECT_THAT(warnings, HasSubstr("rank 0: " + call + " on MPI_COMM_WORLD has waited for "));
    EXPECT_THAT(warnings, HasSubstr("; rank " + Last() + " has not come to it"));
  }
};

TEST_P(WrongCallsTest, AreComparedOnAllRanks) {
  ExpectJob(GetParam(), {kProgram, "checked"}, "all wrong calls were answered",
            {"FERRY_MPI_CHECK=1"});
}

TEST_P(WrongCallsTest, WhoIsLateIsNamed) {
  ExpectLastIsNamed(WarningsOf({"late"}, "100"), "MPI_Barrier");
}

// Where ranks of one node see each other on a board, and need not be asked.
TEST_P(WrongCallsTest, WhoIsLateIsNamedAfterManyCalls) {
  ExpectLastIsNamed(WarningsOf({"late", "8"}, "100"), "MPI_Barrier");
}

// The call before makes the board.
TEST_P(WrongCallsTest, WhoIsLateForTheBoardIsNamed) {
  ExpectLastIsNamed(WarningsOf({"late", "3"}, "100"), "MPI_Barrier");
}

TEST_P(WrongCallsTest, WhoIsLateForANonblockingCallIsNamed) {
  ExpectLastIsNamed(WarningsOf({"late_nonblocking"}, "100"), "MPI_Ibarrier");
}

TEST_P(WrongCallsTest, WhoIsInAnotherCollectiveIsNamedWithIt) {
  const std::string warnings = WarningsOf({"another"}, "100", 124, {"--timeout", "10"});
  EXPECT_THAT(warnings, HasSubstr("rank " + Last() + " waits in MPI_Scatter in its place"));
  EXPECT_THAT(warnings, HasSubstr("rank 0 waits in MPI_Bcast in its place"));
}

TEST_P(WrongCallsTest, NothingIsSaidOfShortWaits) {
  EXPECT_EQ(WarningsOf({"late"}, "3600000"), "");
}

TEST_P(WrongCallsTest, NothingIsSaidWhereNobodyWantsToHear) {
  EXPECT_EQ(WarningsOf({"late", "8"}, "0"), "");
}

INSTANTIATE_TEST_SUITE_P(Placements, WrongCallsTest, testing::ValuesIn(Placements()),
                         [](const testing::TestParamInfo<Placement>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace ferry::mpi_tests
