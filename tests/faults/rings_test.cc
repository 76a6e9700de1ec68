// Rings of devices when their rank, or the daemon, is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kRings[] = "tests/faults/ranks/rings";
constexpr int kDaemonDied = 15;

// The daemon is serving its ring, which is half written.
TEST(RingFaultsTest, AKilledRankTakesItsRingsWithItAndNobodyNotices) {
  DaemonForTest daemon;
  {
    Command before(JobOn(daemon, 1, {kRings, "loop", "200"}));
    EXPECT_EQ(before.Wait().exit_code, 0);
  }
  const size_t memfds = daemon.CountMemfds();
  for (int round = 0; round < 3; ++round) {
    Command job(JobOn(daemon, 1, {kRings, "stall"}));
    ASSERT_TRUE(UnderWay(&job, 1));
    Command beside(JobOn(daemon, 1, {kRings, "loop", "1000"}));
    ASSERT_TRUE(UnderWay(&beside, 1));
    const std::vector<pid_t> ranks = RankPids(job, "stall", 1);
    ASSERT_THAT(ranks, SizeIs(1));
    kill(ranks[0], SIGKILL);
    EXPECT_NE(job.Wait().exit_code, 0);
    const CommandResult result = beside.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(daemon.CountMemfds(), memfds);
  }
  EXPECT_EQ(daemon.Stop(), "");
}

TEST(RingFaultsTest, AStoppedDaemonIsWaitedForAgain) {
  Command job(PrivateJob(1, 1, {}, {kRings, "again"}), {"FERRY_ATTACH_TIMEOUT_MS=300"});
  ASSERT_TRUE(UnderWay(&job, 1));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  kill(daemons[0], SIGSTOP);
  EXPECT_TRUE(job.WaitForOutput("timed out"));
  kill(daemons[0], SIGCONT);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

TEST(RingFaultsTest, AKilledDaemonEndsTheWaitsOfDevices) {
  Command job(PrivateJob(1, 1, {}, {kRings, "wait"}));
  ASSERT_TRUE(UnderWay(&job, 1));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  kill(daemons[0], SIGKILL);
  const CommandResult result = job.Wait();
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(1)) << result.out << result.err;
  EXPECT_EQ(errors[0].code, kDaemonDied);
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
