// Jobs whose daemons are a tree (ferryrun --tree-radix): all ranks reach each other, and all hear
// of deaths, though most daemons have no link to each other, and though one that passes on news
// dies or stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Eventually;
using testing::HasSubstr;

constexpr char kTraffic[] = "tests/faults/ranks/traffic";
constexpr int kNodes = 12;  // node 1 has 3 and 4 below it, these 7 to 10

e2e::Words TreeJob(int ranks, e2e::Words flags, const e2e::Words& program) {
  flags.insert(flags.end(), {e2e::kByDaemons, "--tree-radix", "2"});
  return PrivateJob(ranks, kNodes, flags, program);
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(TreeJobTest, EachRankReachesEachOther) {
  const CommandResult result =
      e2e::RunCleanly(TreeJob(2 * kNodes, {}, {"tests/faults/ranks/all_to_all"}), {}, "", 240);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(CountOf(result.out, ": all right\n"), 2 * kNodes) << result.out;
}

TEST(TreeJobTest, RanksThatHaveHadNothingToDoWithADeadOneHearOfIt) {
  Command job(TreeJob(kNodes, {"--keep-going"}, {kTraffic, "wait"}), {}, "", 240);
  ASSERT_TRUE(UnderWay(&job, kNodes));
  const std::vector<pid_t> ranks = RankPids(job, kTraffic, kNodes);
  ASSERT_EQ(ranks.size(), size_t{kNodes});
  kill(ranks[0], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectErrors(result.out, kNodes - 1, {kPeerDied});
}

TEST(TreeJobTest, ADaemonThatDiesAmongTheOthersIsKnownToAllRanks) {
  Command job(TreeJob(kNodes, {"--keep-going"}, {kTraffic, "exchange", "8"}), {}, "", 240);
  ASSERT_TRUE(UnderWay(&job, kNodes));
  const std::vector<pid_t> daemons = DaemonPids(job, kNodes);
  ASSERT_EQ(daemons.size(), size_t{kNodes});
  std::vector<pid_t> sorted = daemons;  // by node: they were started in that order
  std::sort(sorted.begin(), sorted.end());
  kill(sorted[1], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_THAT(result.err, HasSubstr("ferryd of node 1 "));
  ExpectErrors(result.out, kNodes, {kDaemonDied, kNodeUnreachable, kPeerDied, kLinkDown});
}

// Ranks below it hear by another way while it stands still; its own rank, once it goes on.
TEST(TreeJobTest, ADaemonThatStandsStillHoldsUpNoNews) {
  Command job(TreeJob(kNodes, {"--keep-going", "--peer_timeout_ms=40000"}, {kTraffic, "wait"}), {},
              "", 240);
  ASSERT_TRUE(UnderWay(&job, kNodes));
  std::vector<pid_t> daemons = DaemonPids(job, kNodes);
  ASSERT_EQ(daemons.size(), size_t{kNodes});
  std::sort(daemons.begin(), daemons.end());
  const std::vector<pid_t> ranks = RankPids(job, kTraffic, kNodes);
  ASSERT_EQ(ranks.size(), size_t{kNodes});
  ASSERT_EQ(kill(daemons[1], SIGSTOP), 0);
  kill(ranks[0], SIGKILL);
  const bool others_know =
      Eventually([&] { return CountOf(job.Output(), ": error ") >= kNodes - 2; });
  kill(daemons[1], SIGCONT);
  EXPECT_TRUE(others_know) << job.Output();
  const CommandResult result = job.WaitCleanly();
  ExpectErrors(result.out, kNodes - 1, {kPeerDied});
}

// ---- Programs that follow each other ----

e2e::Words OneAfterTheOther(const e2e::Words& programs) {
  std::string script;
  for (const std::string& program : programs) {
    script += (&program == &programs.back() ? "exec " : "") + program + " && ";
  }
  script.resize(script.size() - std::string(" && ").size());
  return {"bash", "-c", script};
}

TEST(TreeJobTest, ProgramsThatFollowEachOtherMeetAgain) {
  const std::string once = "tests/faults/ranks/all_to_all";
  const CommandResult result =
      e2e::RunCleanly(TreeJob(kNodes, {}, OneAfterTheOther({once, once, once})), {}, "", 240);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(CountOf(result.out, ": all right\n"), 3 * kNodes) << result.out;
}

TEST(TreeJobTest, ARankThatDiesInTheSecondProgramIsKnownToAll) {
  const e2e::Words programs = {"tests/faults/ranks/all_to_all", std::string(kTraffic) + " wait"};
  Command job(TreeJob(kNodes, {"--keep-going"}, OneAfterTheOther(programs)), {}, "", 240);
  ASSERT_TRUE(UnderWay(&job, kNodes));
  const std::vector<pid_t> ranks = RankPids(job, kTraffic, kNodes);
  ASSERT_EQ(ranks.size(), size_t{kNodes});
  kill(ranks[0], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectErrors(result.out, kNodes - 1, {kPeerDied});
}

TEST(TreeJobTest, ADaemonThatDiesInTheSecondProgramIsKnownToAll) {
  const e2e::Words programs = {"tests/faults/ranks/all_to_all",
                               std::string(kTraffic) + " exchange 8"};
  Command job(TreeJob(kNodes, {"--keep-going"}, OneAfterTheOther(programs)), {}, "", 240);
  ASSERT_TRUE(UnderWay(&job, kNodes));
  std::vector<pid_t> daemons = DaemonPids(job, kNodes);
  ASSERT_EQ(daemons.size(), size_t{kNodes});
  std::sort(daemons.begin(), daemons.end());
  kill(daemons[1], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectErrors(result.out, kNodes, {kDaemonDied, kNodeUnreachable, kPeerDied, kLinkDown});
}

}  // namespace
}  // namespace ferry::faults
