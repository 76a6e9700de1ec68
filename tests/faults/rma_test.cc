// kill -9 of a rank, and of a daemon, in each kind of epoch of a window: the others get an error by
// name, soon, whichever call of MPI they are in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::SizeIs;

constexpr char kProgram[] = "tests/mpi/ranks/rma_deaths";
constexpr int kRanks = 3;
constexpr int kProcAborted = 58;  // MPI_ERR_PROC_ABORTED
constexpr int kOther = 16;        // MPI_ERR_OTHER: the rank's own daemon, or the link
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// The parameter names the operation of the ranks.
class RmaFaultTest : public testing::TestWithParam<std::string> {
 protected:
  static void KillTheLastRank(int nodes) {
    Command job(PrivateJob(kRanks, nodes, {}, {kProgram, GetParam()}));
    ASSERT_TRUE(UnderWay(&job, kRanks)) << job.Wait().err;
    const std::vector<pid_t> pids = RankPids(job, kProgram, kRanks);
    ASSERT_THAT(pids, SizeIs(kRanks));
    const uint64_t killed_ns = MonotonicNs();
    kill(pids.back(), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    const std::vector<RankError> errors = ExpectErrors(result.out, kRanks - 1, {kProcAborted});
    EXPECT_LT(LatestMs(errors, killed_ns), kAllowed * kPromisedMs) << result.err;
  }
};

TEST_P(RmaFaultTest, AKilledRankOfTheNode) { KillTheLastRank(1); }

TEST_P(RmaFaultTest, AKilledRankOfAnotherNode) { KillTheLastRank(2); }

INSTANTIATE_TEST_SUITE_P(States, RmaFaultTest,
                         testing::Values("alone", "shared", "fence", "start", "wait", "test",
                                         "operate", "ordinary", "free"),
                         [](const auto& what) { return what.param; });

// The owner's program has asked for nothing: it is not to end because another rank wants much.
TEST(RmaMemoryTest, AnOwnerWithoutMemoryRefusesAndGoesOn) {
  const CommandResult result =
      e2e::RunCleanly(PrivateJob(2, 2, {e2e::kByDaemons}, {"tests/mpi/ranks/rma_no_memory"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

class RmaDaemonFaultTest : public testing::TestWithParam<std::string> {};

TEST_P(RmaDaemonFaultTest, AKilledDaemonOfTwo) {
  Command job(PrivateJob(2, 2, {}, {kProgram, GetParam()}));
  ASSERT_TRUE(UnderWay(&job, 2)) << job.Wait().err;
  const std::vector<pid_t> daemons = DaemonPids(job, 2);
  const uint64_t killed_ns = MonotonicNs();
  kill(*std::ranges::max_element(daemons), SIGKILL);
  const CommandResult result = job.WaitCleanly();
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_FALSE(errors.empty()) << result.out << result.err;
  for (const RankError& error : errors) {
    EXPECT_THAT(error.code, testing::AnyOf(kProcAborted, kOther)) << result.out;
  }
  EXPECT_LT(LatestMs(errors, killed_ns), 5 * kAllowed * kPromisedMs) << result.err;
}

INSTANTIATE_TEST_SUITE_P(States, RmaDaemonFaultTest, testing::Values("all_fences", "all_operate"),
                         [](const auto& what) { return what.param; });

}  // namespace
}  // namespace ferry::faults
