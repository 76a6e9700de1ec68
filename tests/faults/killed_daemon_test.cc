// kill -9 of a daemon: its ranks, sleeping ones too, and their peers get an error, ferryrun ends
// soon, and nothing stays behind. Also kill -9 of ferryrun itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;

constexpr char kTraffic[] = "tests/faults/ranks/traffic";
constexpr double kPromisedMs = 5000;  // until ferryrun has ended
constexpr double kAllowed = 10;       // times the promised time

void ExpectPrompt(uint64_t killed_ns) {
  const double took_ms = static_cast<double>(MonotonicNs() - killed_ns) / 1e6;
  std::printf("ferryrun ended %.0f ms after the kill (promised: %.0f)\n", took_ms, kPromisedMs);
  EXPECT_LT(took_ms, kAllowed * kPromisedMs);
}

uint64_t KillDaemon(const Command& job, size_t daemons) {
  const std::vector<pid_t> pids = DaemonPids(job, daemons);
  const uint64_t killed_ns = MonotonicNs();
  kill(*std::max_element(pids.begin(), pids.end()), SIGKILL);
  return killed_ns;
}

class KilledDaemonTest : public testing::TestWithParam<e2e::Words> {};

TEST_P(KilledDaemonTest, IsAnErrorForAllRanks) {
  Command job(PrivateJob(4, 2, {e2e::kByDaemons}, e2e::Joined({kTraffic}, GetParam())));
  ASSERT_TRUE(UnderWay(&job, 4));
  const uint64_t killed_ns = KillDaemon(job, 2);
  const CommandResult result = job.WaitCleanly();
  ExpectPrompt(killed_ns);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
  ExpectErrors(result.out, 4, {kDaemonDied, kNodeUnreachable, kPeerDied});
}

INSTANTIATE_TEST_SUITE_P(Traffic, KilledDaemonTest,
                         testing::Values(e2e::Words{"exchange", "8"},
                                         e2e::Words{"exchange", "1000000"}));

TEST(KilledDaemonTest, WakesRanksThatSleep) {
  // Rank 0 never calls Ferry again: ferryrun ends it, after the grace.
  Command job(PrivateJob(3, 1, {"--grace-ms", "1000"}, {kTraffic, "wait"}));
  ASSERT_TRUE(UnderWay(&job, 3));
  const uint64_t killed_ns = KillDaemon(job, 1);
  const CommandResult result = job.WaitCleanly();
  ExpectPrompt(killed_ns);
  ExpectErrors(result.out, 2, {kDaemonDied});
}

TEST(KilledFerryrunTest, EndsRanksAndDaemons) {
  Command job(PrivateJob(4, 2, {}, {kTraffic, "exchange", "1000"}));
  ASSERT_TRUE(UnderWay(&job, 4));
  job.Signal(SIGKILL);
  job.WaitCleanly();
}

}  // namespace
}  // namespace ferry::faults
