// Ranks, daemons and moments: kills, stops, and orders of the administrator at random times while
// ranks of two nodes get direct links, use them, are refused some and give them back. Survivors get
// the right error soon, or go on as if nothing had been; no message of theirs is lost, doubled or
// out of order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
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

// FERRY_FAULT_SEED: of the first round, each other one has the next. 0: a new one.
int FirstSeed() {
  const int seed = Setting("FERRY_FAULT_SEED", 27);
  return seed != 0 ? seed : static_cast<int>(std::random_device()() % 1'000'000'000 + 1);
}

struct Links {
  const char* name;
  e2e::Words variables;
  int open_ms = 0;  // until they are in use
};

void PrintTo(const Links& links, std::ostream* out) { *out << links.name; }

const Links kKept = {"Kept", {"FERRY_DIRECT_LINKS=always"}};
// A direction goes back to the daemons when nothing has been sent for a moment.
const Links kRestless = {
    "Restless",
    {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=2", "FERRY_DIRECT_LINK_IDLE_MS=1"}};
// One of the two pairs of each node is refused, until the other one has given its link back.
const Links kScarce = {"Scarce",
                       {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=2",
                        "FERRY_DIRECT_LINK_IDLE_MS=1", "FERRY_DIRECT_LINKS_PER_JOB=1"}};

// Ranks first open libfabric.
const Links kLibfabric = {
    "Libfabric", {"FERRY_DIRECT_LINKS=always", "FERRY_DIRECT_LINK_PROVIDER=net"}, 500};

class DirectLinkFaultTest : public testing::TestWithParam<Links> {
 protected:
  // `rounds`: of its messages; "0": for ever.
  Command Job(const std::string& rounds) {
    return Command(PrivateJob(kRanks, 2, {}, {kMixed, rounds}), GetParam().variables);
  }
  // A moment at which links may just come or go: within 20 ms.
  void LetTimePass() {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(GetParam().open_ms) +
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random_)));
  }
  template <typename Thing>
  Thing AnyOf(const std::vector<Thing>& things) {
    return things.at(Below(things.size()));
  }
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  // Calls `run` for each round, until one fails.
  template <typename Run>
  void ForAllRounds(Run run) {
    const int first = FirstSeed();
    std::printf("FERRY_FAULT_SEED=%d\n", first);
    for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
      SCOPED_TRACE("FERRY_FAULT_SEED=" + std::to_string(first + round) + " FERRY_FAULT_ROUNDS=1");
      random_.seed(static_cast<uint32_t>(first + round));
      run();
    }
  }
  // Once it is under way. It must not end before it is asked.
  static std::vector<pid_t> ProcessesOf(const Command& job) {
    std::vector<pid_t> pids = RankPids(job, kMixed, kRanks);
    const std::vector<pid_t> daemons = DaemonPids(job, 2);
    pids.insert(pids.end(), daemons.begin(), daemons.end());
    return pids;
  }
  void StopForAWhile(const std::vector<pid_t>& pids) {
    const pid_t stopped = AnyOf(pids);
    ASSERT_GT(stopped, 0);
    kill(stopped, SIGSTOP);
    LetTimePass();
    kill(stopped, SIGCONT);
  }
  // Kills a rank, or a daemon, and expects that the survivors hear of that.
  void Kill(Command* job, bool is_rank);
  // The administrator of one of the two daemons takes all links of the job back: for now, or until
  // an order for now comes.
  void TakeLinksBack(const Command& job, bool for_now);

  std::mt19937 random_;
  double worst_ms_ = 0;  // until the last survivor knew of a killed rank
};

void DirectLinkFaultTest::Kill(Command* job, bool is_rank) {
  const std::vector<pid_t> pids = is_rank ? RankPids(*job, kMixed, kRanks) : DaemonPids(*job, 2);
  ASSERT_THAT(pids, SizeIs(is_rank ? kRanks : 2));
  const uint64_t killed_ns = MonotonicNs();
  kill(AnyOf(pids), SIGKILL);
  const CommandResult result = job->WaitCleanly();
  if (is_rank) {
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    worst_ms_ =
        std::max(worst_ms_, LatestMs(ExpectErrors(result.out, kRanks - 1, {kPeerDied}), killed_ns));
  } else {
    EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
    ExpectErrors(result.out, kRanks, {kDaemonDied, kNodeUnreachable, kPeerDied});
  }
}

void DirectLinkFaultTest::TakeLinksBack(const Command& job, bool for_now) {
  const e2e::Words directories = e2e::Daemons(job);
  ASSERT_THAT(directories, SizeIs(2));
  e2e::Words ferryctl = {"tools/ferryctl/ferryctl", "--run_directory=" + AnyOf(directories)};
  const CommandResult status = e2e::RunCommand(e2e::Joined(ferryctl, {"status", "--json"}));
  ASSERT_EQ(status.exit_code, 0) << status.err;
  const std::string id = nlohmann::json::parse(status.out)["jobs"][0]["job_id"];
  ferryctl = e2e::Joined(ferryctl, {"links", "--take-back", id});
  if (for_now) {
    ferryctl.push_back("--for-now");
  }
  const CommandResult taken = e2e::RunCommand(ferryctl);
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
}

TEST_P(DirectLinkFaultTest, AKilledRankIsAnErrorForItsPeers) {
  ForAllRounds([&] {
    Command job = Job("0");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    LetTimePass();
    Kill(&job, true);
  });
  std::printf("%d kills: the last peer knew after at most %.1f ms (promised: %.0f)\n", Rounds(),
              worst_ms_, kPromisedMs);
  EXPECT_LT(worst_ms_, kAllowed * kPromisedMs);
}

TEST_P(DirectLinkFaultTest, AKilledDaemonIsAnErrorForAllRanks) {
  ForAllRounds([&] {
    Command job = Job("0");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    LetTimePass();
    Kill(&job, false);
  });
}

// Stopped processes lose nothing: all messages come, in their order.
TEST_P(DirectLinkFaultTest, StoppedProcessesGoOnWhereTheyWere) {
  ForAllRounds([&] {
    Command job = Job("400");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    const std::vector<pid_t> pids = ProcessesOf(job);
    LetTimePass();
    StopForAWhile(pids);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    ExpectAllRight(result.out, kRanks);
  });
}

// Links are taken back, and refused from then on, by one daemon or by both; processes stop and go
// on; then one is killed.
TEST_P(DirectLinkFaultTest, OrdersOfTheAdministratorChangeNothingButTheWay) {
  ForAllRounds([&] {
    Command job = Job("0");
    ASSERT_TRUE(UnderWay(&job, kRanks));
    const std::vector<pid_t> pids = ProcessesOf(job);
    for (size_t troubles = 1 + Below(4); troubles != 0 && !HasFailure(); --troubles) {
      LetTimePass();
      Below(3) == 0 ? StopForAWhile(pids) : TakeLinksBack(job, Below(2) == 0);
    }
    LetTimePass();
    Kill(&job, Below(2) == 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Links, DirectLinkFaultTest,
                         testing::Values(kKept, kRestless, kScarce, kLibfabric),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::faults
