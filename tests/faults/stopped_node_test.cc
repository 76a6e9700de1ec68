// The daemon of one node is stopped while all that may be under way is with it: long messages from
// another node pass meanwhile, and when it goes on, nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Eventually;

constexpr char kNeighbours[] = "tests/faults/ranks/neighbours";
constexpr char kMessages[] = "30";
// Longer than any test waits: so what passes has waited for no time limit.
constexpr char kPatience[] = "200000";

class StoppedNodeTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, StoppedNodeTest, testing::Values("host", "private"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(StoppedNodeTest, OthersAreServedMeanwhile) {
  Command job(PrivateJob(3, 3,
                         {e2e::kByDaemons, std::string("--peer_timeout_ms=") + kPatience,
                          std::string("--operation_timeout_ms=") + kPatience},
                         {kNeighbours, GetParam(), kMessages}));
  ASSERT_TRUE(UnderWay(&job, 1));
  const std::vector<pid_t> ranks = RankPids(job, kNeighbours, 3);
  const std::vector<pid_t> daemons = DaemonPids(job, 3);
  ASSERT_EQ(ranks.size(), 3U);
  const pid_t stopped = *std::max_element(daemons.begin(), daemons.end());
  ASSERT_EQ(kill(stopped, SIGSTOP), 0);
  kill(ranks[0], SIGUSR1);
  int left = 0;
  unsigned long long took_ns = 0;
  const bool served = Eventually([&] {
    const std::string out = job.Output();
    const size_t at = out.find("rank 0: served ");
    return at != std::string::npos &&
           std::sscanf(out.c_str() + at, "rank 0: served %d %llu", &left, &took_ns) == 2;
  });
  kill(stopped, SIGCONT);
  EXPECT_TRUE(served) << job.Output();
  EXPECT_GT(left, 0) << "nothing was under way";
  std::printf("%s messages of 2 MiB passed in %.1f ms, while %d of the stopped node were open\n",
              kMessages, static_cast<double>(took_ns) / 1e6, left);
  kill(ranks[0], SIGUSR2);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ExpectAllRight(result.out, 3);
}

}  // namespace
}  // namespace ferry::faults
