// kill -9 of a rank at many random moments of its traffic: its peers get an error soon, the daemon
// serves a second job meanwhile that notices nothing, and nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::SizeIs;

constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr char kSurvivors[] = "tests/faults/ranks/survivors";
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// FERRY_FAULT_ROUNDS: the number of moments (the long run has 200).
int Rounds() { return Setting("FERRY_FAULT_ROUNDS", 8); }

// Waits up to 20 ms.
void LetTimePass(std::mt19937* random) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(*random)));
}

// Kills one rank of `job` and returns the time until the others knew.
double KillOne(Command* job, int ranks, std::mt19937* random) {
  const std::vector<pid_t> pids = RankPids(*job, kMixed, ranks);
  EXPECT_THAT(pids, SizeIs(ranks));
  LetTimePass(random);
  const auto victim =
      static_cast<size_t>(std::uniform_int_distribution<int>(0, ranks - 1)(*random));
  const uint64_t killed_ns = MonotonicNs();
  kill(pids.at(victim), SIGKILL);
  const CommandResult result = job->WaitCleanly();
  EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
  return LatestMs(ExpectErrors(result.out, static_cast<size_t>(ranks - 1), {kPeerDied}), killed_ns);
}

TEST(KilledRankTest, IsAnErrorForItsPeersAndNothingForAnotherJob) {
  DaemonForTest daemon;
  std::mt19937 random(20'25);
  const size_t memfds = daemon.CountMemfds();
  double worst_ms = 0;
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    Command broken(JobOn(daemon, 3, {kMixed, "0"}));
    ASSERT_TRUE(UnderWay(&broken, 3));
    Command other(JobOn(daemon, 2, {kMixed, "150"}));
    ASSERT_TRUE(UnderWay(&other, 2));
    worst_ms = std::max(worst_ms, KillOne(&broken, 3, &random));
    const CommandResult result = other.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    ExpectAllRight(result.out, 2);
  }
  std::printf("%d kills: the last peer knew after at most %.1f ms (promised: %.0f)\n", Rounds(),
              worst_ms, kPromisedMs);
  EXPECT_LT(worst_ms, kAllowed * kPromisedMs);
  EXPECT_TRUE(e2e::Eventually([&] { return daemon.CountMemfds() <= memfds; }))
      << daemon.CountMemfds() << " memfds are left of " << memfds;
  daemon.Stop();
}

// Those who have direct links to it: direct_links_test.
TEST(KilledRankTest, IsAnErrorForPeersOnOtherNodes) {
  std::mt19937 random(7);
  double worst_ms = 0;
  for (int round = 0; round < Rounds() / 2 && !HasFailure(); ++round) {
    Command broken(PrivateJob(4, 2, {e2e::kByDaemons}, {kMixed, "0"}));
    ASSERT_TRUE(UnderWay(&broken, 4));
    worst_ms = std::max(worst_ms, KillOne(&broken, 4, &random));
  }
  std::printf("two nodes: the last peer knew after at most %.1f ms (promised: %.0f)\n", worst_ms,
              kPromisedMs);
  EXPECT_LT(worst_ms, kAllowed * kPromisedMs);
}

// In each round of the barrier some wait for those who have failed in an earlier one.
TEST(KilledRankTest, IsAnErrorForAllWhoMeetAfterwards) {
  DaemonForTest daemon;
  for (const int ranks : {3, 4, 7, 8}) {
    Command job(JobOn(daemon, ranks, {kSurvivors}));
    ExpectErrors(job.WaitCleanly().out, static_cast<size_t>(ranks - 1), {kPeerDied});
  }
  for (const int nodes : {2, 4}) {
    Command job(PrivateJob(8, nodes, {}, {kSurvivors}));
    ExpectErrors(job.WaitCleanly().out, 7, {kPeerDied});
  }
  daemon.Stop();
}

}  // namespace
}  // namespace ferry::faults
