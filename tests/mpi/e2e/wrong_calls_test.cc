// Calls of collectives that do not belong together, as whole jobs: with FERRY_MPI_CHECK=1 all ranks
// fail at once in the same words; without it, a rank that waits for long says for which one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::ContainsRegex;

const char kProgram[] = "tests/mpi/ranks/wrong_calls";

class WrongCallsTest : public testing::TestWithParam<Placement> {
 protected:
  static e2e::Command Start(std::vector<std::string> how, const char* warn_after_ms) {
    std::vector<std::string> arguments = JobOf(GetParam());
    arguments.push_back(kProgram);
    arguments.insert(arguments.end(), how.begin(), how.end());
    return e2e::Command(arguments, {std::string("FERRY_MPI_WARN_AFTER_MS=") + warn_after_ms}, "",
                        240);
  }
  static std::string Last() { return std::to_string(std::stoi(GetParam().flags.at(1)) - 1); }

  // The last rank is late until another one has named it as the reason for its wait.
  static void ExpectLastIsNamed(const std::string& how, const std::string& calls_before,
                                const std::string& call) {
    const std::string fifo = testing::TempDir() + "late-" + std::to_string(getpid());
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0) << fifo;
    e2e::Command command = Start({how, calls_before, fifo}, "100");
    EXPECT_TRUE(command.WaitForError("; rank " + Last() + " has not come to it"));
    // Opens once the late rank has opened the file, too.
    EXPECT_TRUE(e2e::Eventually([&] {
      const int end = open(fifo.c_str(), O_WRONLY | O_NONBLOCK);
      return end >= 0 && close(end) == 0;
    }));
    const e2e::CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const bool is_blocking = !call.starts_with("MPI_I");
    EXPECT_THAT(result.err,
                ContainsRegex(": " + call + " on MPI_COMM_WORLD" +
                              (is_blocking ? ", number [0-9]+" : "") + " has waited for "));
    unlink(fifo.c_str());
  }
  // The warnings when the last rank comes a third of a second late.
  static std::string WarningsOfAWait(const std::string& calls_before, const char* warn_after_ms) {
    e2e::Command command = Start({"late", calls_before}, warn_after_ms);
    const e2e::CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  }
};

TEST_P(WrongCallsTest, AreComparedOnAllRanks) {
  ExpectJob(GetParam(), {kProgram, "checked"}, "all wrong calls were answered",
            {"FERRY_MPI_CHECK=1"});
}

TEST_P(WrongCallsTest, ThatAreRefusedLeaveNothingForTheEnd) {
  const std::string line = "all wrong calls were answered";
  ExpectJob(GetParam(), {kProgram, "refused", "all"}, line);
  ExpectJob(GetParam(), {kProgram, "refused", "all"}, line, {"FERRY_MPI_CHECK=1"});
  // Comparing, the others learn of it.
  ExpectJob(GetParam(), {kProgram, "refused", "some"}, line, {"FERRY_MPI_CHECK=1"});
}

// Programs that are right are as they were.
TEST_P(WrongCallsTest, AreNotSeenWhereThereAreNone) {
  const std::pair<std::string, std::string> programs[] = {
      {"attributes", "all attributes, groups, infos and handlers were right"},
      {"communicators", "all communicators were right"},
      {"intercommunicators", "all intercommunicators were right"},
      {"rma_epochs", "all epochs were right"},
      {"topologies", "all topologies were right"},
  };
  for (const auto& [program, line] : programs) {
    ExpectJob(GetParam(), {"tests/mpi/ranks/" + program}, line, {"FERRY_MPI_CHECK=1"});
  }
}

TEST_P(WrongCallsTest, WhoIsLateIsNamed) { ExpectLastIsNamed("late", "0", "MPI_Barrier"); }

// Ranks of one node see each other on a board, and need not be asked.
TEST_P(WrongCallsTest, WhoIsLateIsNamedAfterManyCalls) {
  ExpectLastIsNamed("late", "8", "MPI_Barrier");
}

// The call before makes the board.
TEST_P(WrongCallsTest, WhoIsLateForTheBoardIsNamed) {
  ExpectLastIsNamed("late", "3", "MPI_Barrier");
}

TEST_P(WrongCallsTest, WhoIsLateForANonblockingCallIsNamed) {
  ExpectLastIsNamed("late_nonblocking", "0", "MPI_Ibarrier");
}

// The late request is among requests that are done.
TEST_P(WrongCallsTest, WhoIsLateForOneOfSeveralRequestsIsNamed) {
  ExpectLastIsNamed("late_of_several", "0", "MPI_Iallreduce");
}

TEST_P(WrongCallsTest, WhoIsInAnotherCollectiveIsNamedWithIt) {
  e2e::Command command = Start({"another", "0"}, "100");
  EXPECT_TRUE(command.WaitForError("rank " + Last() + " waits in MPI_Scatter in its place"));
  EXPECT_TRUE(command.WaitForError("rank 0 waits in MPI_Bcast in its place"));
  command.Signal(SIGTERM);
  EXPECT_EQ(command.Wait().exit_code, 128 + SIGTERM);
}

TEST_P(WrongCallsTest, NothingIsSaidOfShortWaits) {
  EXPECT_EQ(WarningsOfAWait("0", "3600000"), "");
}

TEST_P(WrongCallsTest, NothingIsSaidWhereNobodyWantsToHear) {
  EXPECT_EQ(WarningsOfAWait("8", "0"), "");
}

INSTANTIATE_TEST_SUITE_P(Placements, WrongCallsTest, testing::ValuesIn(SeveralRanks()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
