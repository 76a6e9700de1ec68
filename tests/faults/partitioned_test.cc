// kill -9 of a rank, and of a daemon, in the middle of a round of partitioned messages: the others
// get an error by name, soon, whichever call of MPI they are in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::SizeIs;

constexpr char kProgram[] = "tests/mpi/ranks/partitioned_deaths";
constexpr int kProcAborted = 58;  // MPI_ERR_PROC_ABORTED
constexpr int kOther = 16;        // MPI_ERR_OTHER: the rank's own daemon, or the link
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// The parameter names the operation of the ranks.
class PartitionedFaultTest : public testing::TestWithParam<std::string> {
 protected:
  // Ranks that go on are met at a moment of their own; the others stand still.
  static void LetTimePass() {
    std::mt19937 random(static_cast<unsigned>(GetParam().size()));
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random)));
  }

  static void KillARank(int nodes) {
    Command job(PrivateJob(2, nodes, {}, {kProgram, GetParam()}));
    ASSERT_TRUE(UnderWay(&job, 2)) << job.Wait().err;
    const std::vector<pid_t> pids = RankPids(job, kProgram, 2);
    ASSERT_THAT(pids, SizeIs(2));
    LetTimePass();
    const uint64_t killed_ns = MonotonicNs();
    kill(pids.at(1), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    const std::vector<RankError> errors = ExpectErrors(result.out, 1, {kProcAborted});
    EXPECT_LT(LatestMs(errors, killed_ns), kAllowed * kPromisedMs) << result.err;
  }

  static void KillADaemon(int ranks, int nodes) {
    Command job(PrivateJob(ranks, nodes, {}, {kProgram, GetParam()}));
    ASSERT_TRUE(UnderWay(&job, ranks)) << job.Wait().err;
    const std::vector<pid_t> daemons = DaemonPids(job, static_cast<size_t>(nodes));
    LetTimePass();
    const uint64_t killed_ns = MonotonicNs();
    kill(*std::ranges::max_element(daemons), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
    const std::vector<RankError> errors =
        ExpectErrors(result.out, static_cast<size_t>(ranks), {kProcAborted, kOther});
    EXPECT_LT(LatestMs(errors, killed_ns), 5 * kAllowed * kPromisedMs) << result.err;
  }
};

TEST_P(PartitionedFaultTest, AKilledRankOfTheNode) { KillARank(1); }

TEST_P(PartitionedFaultTest, AKilledRankOfAnotherNode) { KillARank(2); }

TEST_P(PartitionedFaultTest, AKilledDaemonOfOneNode) { KillADaemon(2, 1); }

TEST_P(PartitionedFaultTest, AKilledDaemonOfTwo) { KillADaemon(2, 2); }

INSTANTIATE_TEST_SUITE_P(States, PartitionedFaultTest,
                         testing::Values("parrived", "wait", "waitany", "send", "prepare",
                                         "unmatched_send", "unmatched_receive", "rounds",
                                         "large_rounds", "ordinary_rounds", "device_rounds"),
                         [](const auto& what) { return what.param; });

}  // namespace
}  // namespace ferry::faults
