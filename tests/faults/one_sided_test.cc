// kill -9 of a rank, and of a daemon, while others work in the memory of all: an error by name for
// each of them, soon, whatever it waits for.
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
using testing::ContainsRegex;
using testing::SizeIs;

constexpr char kProgram[] = "tests/faults/ranks/one_sided";
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// The parameter names the operation of the ranks.
class OneSidedFaultTest : public testing::TestWithParam<std::string> {
 protected:
  // A moment of its own for each case.
  void LetTimePass() {
    std::mt19937 random(static_cast<unsigned>(GetParam().size()));
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random)));
  }
  // Kills rank 1 of a job; the others learn of it.
  void KillARank(int ranks, int nodes, const e2e::Words& variables = {}) {
    Command job(PrivateJob(ranks, nodes, {}, {kProgram, GetParam()}), variables);
    ASSERT_TRUE(UnderWay(&job, ranks));
    const std::vector<pid_t> pids = RankPids(job, kProgram, ranks);
    ASSERT_THAT(pids, SizeIs(ranks));
    LetTimePass();
    const uint64_t killed_ns = MonotonicNs();
    kill(pids.at(1), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    const std::vector<RankError> errors =
        ExpectErrors(result.out, static_cast<size_t>(ranks - 1), {kPeerDied});
    EXPECT_LT(LatestMs(errors, killed_ns), kAllowed * kPromisedMs);
    // The rank that finds out first ends, too, so a third rank may learn of another death.
    EXPECT_THAT(result.out, ContainsRegex("ferry_[a-z_]+: rank 1 has died"));
  }
};

TEST_P(OneSidedFaultTest, AKilledRankOfTheNode) { KillARank(3, 1); }

TEST_P(OneSidedFaultTest, AKilledRankOfAnotherNode) { KillARank(4, 2); }

// Its connection goes first: what is under way waits to hear why.
TEST_P(OneSidedFaultTest, AKilledRankAtTheOtherEndOfALink) {
  KillARank(2, 2, {"FERRY_DIRECT_LINKS=always"});
  KillARank(4, 2, {"FERRY_DIRECT_LINKS=always"});
}

TEST_P(OneSidedFaultTest, AKilledDaemon) {
  Command job(PrivateJob(4, 2, {}, {kProgram, GetParam()}));
  ASSERT_TRUE(UnderWay(&job, 4));
  const std::vector<pid_t> daemons = DaemonPids(job, 2);
  LetTimePass();
  const uint64_t killed_ns = MonotonicNs();
  kill(*std::ranges::max_element(daemons), SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 3);
  const std::vector<RankError> errors =
      ExpectErrors(result.out, 4, {kDaemonDied, kNodeUnreachable, kPeerDied, kLinkDown});
  EXPECT_LT(LatestMs(errors, killed_ns), 5 * kAllowed * kPromisedMs);
}

INSTANTIATE_TEST_SUITE_P(Operations, OneSidedFaultTest,
                         testing::Values("put", "get", "atomic", "strided", "accumulate"),
                         [](const auto& what) { return what.param; });

}  // namespace
}  // namespace ferry::faults
