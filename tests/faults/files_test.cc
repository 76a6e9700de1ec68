// kill -9 of a rank in each phase of a collective read or write of a file: the others get an error
// by name, soon, and the file holds no byte of a third kind. And a message between nodes that fails
// though no rank has died.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::SizeIs;

constexpr char kProgram[] = "tests/mpi/ranks/files_deaths";
constexpr int kProcAborted = 58;  // MPI_ERR_PROC_ABORTED
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// The parameter names the phase in which the last rank is killed.
class FilesFaultTest : public testing::TestWithParam<std::string> {
 protected:
  static void KillTheLastRank(int ranks, int nodes) {
    const e2e::TempDirectory directory;
    const std::string file = directory / "file";
    Command job(PrivateJob(ranks, nodes, {}, {kProgram, file, GetParam()}));
    ASSERT_TRUE(UnderWay(&job, ranks)) << job.Wait().err;
    const std::vector<pid_t> pids = RankPids(job, kProgram, ranks);
    ASSERT_THAT(pids, SizeIs(ranks));
    const uint64_t killed_ns = MonotonicNs();
    kill(pids.back(), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    const std::vector<RankError> errors = ExpectErrors(result.out, ranks - 1, {kProcAborted});
    EXPECT_LT(LatestMs(errors, killed_ns), kAllowed * kPromisedMs) << result.err;
  }
};

TEST_P(FilesFaultTest, AKilledRankOfTheNode) { KillTheLastRank(3, 1); }

// It leads its node: it exchanges data with the other one.
TEST_P(FilesFaultTest, AKilledRankOfAnotherNode) { KillTheLastRank(3, 2); }

TEST_P(FilesFaultTest, AKilledRankOfThreeNodes) { KillTheLastRank(3, 3); }

// Another rank exchanges data and accesses the file for it.
TEST_P(FilesFaultTest, AKilledFollowerOfAnotherNode) {
  if (!GetParam().starts_with("write") && !GetParam().starts_with("answer")) {
    KillTheLastRank(4, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Phases, FilesFaultTest,
                         testing::Values("first", "before", "exchange", "write", "read", "lock",
                                         "owner", "first+", "before+", "exchange+", "write+",
                                         "read+", "fetch", "answer", "fetch+", "answer+"),
                         [](const auto& phase) {
                           const std::string& name = phase.param;
                           return name.back() == '+'
                                      ? name.substr(0, name.size() - 1) + "InTheBackground"
                                      : name;
                         });

// A daemon refuses its rank's memory to one message of those by which the nodes exchange the data:
// that call fails on all ranks, and the next ones go on.
TEST(FilesRefusalTest, AMessageThatIsRefusedFailsTheCallOnAllRanks) {
  constexpr int kRanks = 4;
  int hit = 0;
  for (const int passing : {9, 10, 11}) {  // those before it are of the daemons' own memory
    const e2e::TempDirectory directory;
    const CommandResult result = e2e::RunCleanly(PrivateJob(
        kRanks, 2,
        {e2e::kByDaemons, "--faults=memory.register:" + std::to_string(passing) + ":LIMIT"},
        {"tests/mpi/ranks/files_messages", directory.path()}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const bool is_hit = result.out.find(" 1 calls have failed") != std::string::npos;
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_THAT(result.out, testing::HasSubstr("rank " + std::to_string(rank) + ": " +
                                                 (is_hit ? "1" : "0") + " calls have failed"));
    }
    hit += is_hit ? 1 : 0;
  }
  EXPECT_GT(hit, 0) << "no message of an exchange was refused";
}

}  // namespace
}  // namespace ferry::faults
