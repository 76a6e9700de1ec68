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

// ---- Messages of an exchange that fail though no rank has died --------------------------------

// Runs collective calls whose data the nodes exchange, and returns how many of them have failed on
// rank 0.
int FailedCalls(int ranks, int nodes, const std::string& fault) {
  const e2e::TempDirectory directory;
  const CommandResult result =
      e2e::RunCleanly(PrivateJob(ranks, nodes, {e2e::kByDaemons, "--faults=" + fault},
                                 {"tests/mpi/ranks/files_messages", directory.path()}));
  EXPECT_EQ(result.exit_code, 0) << fault << ": " << result.err;
  int failed = -1;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string begin = "rank " + std::to_string(rank) + ": ";
    const size_t at = result.out.find(begin);
    EXPECT_NE(at, std::string::npos) << result.out;
    if (at != std::string::npos && rank == 0) {
      failed = std::stoi(result.out.substr(at + begin.size()));
    }
  }
  return failed;
}

// That call fails on all ranks, which the program sees to, and the next ones go on. Faults are
// counted from the job's beginning, so that only some of these numbers hit such a message.
int CallsHit(const std::string& point, const std::vector<int>& passings, const std::string& error) {
  int hit = 0;
  for (const int nodes : {2, 3}) {
    for (const int passing : passings) {
      const int failed =
          FailedCalls(2 * nodes, nodes, point + ":" + std::to_string(passing) + ":" + error);
      EXPECT_LE(failed, nodes) << "each daemon has the fault once";
      hit += failed > 0 ? 1 : 0;
    }
  }
  return hit;
}

TEST(FilesRefusalTest, MemoryThatIsRefusedFailsTheCallOnAllRanks) {
  EXPECT_GT(CallsHit("memory.register", {9, 10, 11}, "LIMIT"), 0);
}

// The network blames a rank that is well.
TEST(FilesRefusalTest, AReadThatFailsFailsTheCallOnAllRanks) {
  EXPECT_GT(CallsHit("rndv_get.read", {3, 8}, "SYSTEM"), 0);
  EXPECT_GT(CallsHit("rndv_get.read", {5}, "PEER_DIED"), 0);
  EXPECT_GT(CallsHit("rndv_get.read", {7}, "NODE_UNREACHABLE"), 0);
}

}  // namespace
}  // namespace ferry::faults
