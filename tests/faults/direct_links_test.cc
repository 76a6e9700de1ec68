// Ranks, daemons and moments: kills and stops at random times while ranks of two nodes get direct
// links, use them and give them back. Survivors get an error soon, or go on as if nothing had been;
// no message of theirs is lost, doubled or out of order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ostream>
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

constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr int kRanks = 4;
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// FERRY_FAULT_ROUNDS: the number of moments (the long run has 200).
int Rounds() { return Setting("FERRY_FAULT_ROUNDS", 8); }

struct Links {
  const char* name;
  e2e::Words variables;
};

void PrintTo(const Links& links, std::ostream* out) { *out << links.name; }

const Links kKept = {"Kept", {"FERRY_DIRECT_LINKS=always"}};
// A direction goes back to the daemons when nothing has been sent for a moment.
const Links kRestless = {
    "Restless",
    {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=2", "FERRY_DIRECT_LINK_IDLE_MS=1"}};

class DirectLinkFaultTest : public testing::TestWithParam<Links> {
 protected:
  // `rounds`: of its messages; "0": for ever.
  Command Job(const std::string& rounds) {
    return Command(PrivateJob(kRanks, 2, {}, {kMixed, rounds}), GetParam().variables);
  }
  // A moment at which links may just come or go: within 20 ms.
  void LetTimePass() {
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random_)));
  }
  pid_t AnyOf(const std::vector<pid_t>& pids) {
    return pids.at(std::uniform_int_distribution<size_t>(0, pids.size() - 1)(random_));
  }

  std::mt19937 random_{27};
};

TEST_P(DirectLinkFaultTest, AKilledRankIsAnErrorForItsPeers) {
  double worst_ms = 0;
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    Command job = Job("0");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    const std::vector<pid_t> pids = RankPids(job, kMixed, kRanks);
    ASSERT_THAT(pids, SizeIs(kRanks));
    LetTimePass();
    const uint64_t killed_ns = MonotonicNs();
    kill(AnyOf(pids), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    // What was on its way by a link ends with it, perhaps before anybody knows of the death.
    worst_ms =
        std::max(worst_ms,
                 LatestMs(ExpectErrors(result.out, kRanks - 1, {kPeerDied, kLinkDown}), killed_ns));
  }
  std::printf("%d kills: the last peer knew after at most %.1f ms (promised: %.0f)\n", Rounds(),
              worst_ms, kPromisedMs);
  EXPECT_LT(worst_ms, kAllowed * kPromisedMs);
}

TEST_P(DirectLinkFaultTest, AKilledDaemonIsAnErrorForAllRanks) {
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    Command job = Job("0");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    LetTimePass();
    kill(AnyOf(DaemonPids(job, 2)), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 3);
    ExpectErrors(result.out, kRanks, {kDaemonDied, kNodeUnreachable, kPeerDied});
  }
}

// Stopped processes lose nothing: all messages come, in their order.
TEST_P(DirectLinkFaultTest, StoppedProcessesGoOnWhereTheyWere) {
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    Command job = Job("400");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    std::vector<pid_t> pids = RankPids(job, kMixed, kRanks);
    const std::vector<pid_t> daemons = DaemonPids(job, 2);
    pids.insert(pids.end(), daemons.begin(), daemons.end());
    LetTimePass();
    const pid_t stopped = AnyOf(pids);
    kill(stopped, SIGSTOP);
    LetTimePass();
    kill(stopped, SIGCONT);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    ExpectAllRight(result.out, kRanks);
  }
}

INSTANTIATE_TEST_SUITE_P(Links, DirectLinkFaultTest, testing::Values(kKept, kRestless),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::faults
