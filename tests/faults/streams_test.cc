// Streams wait for a matched request, or a collective, when another rank or a daemon dies: the wait
// ends, and the next call of the rank says why.
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
using e2e::RunCleanly;
using e2e::RunCommand;
using testing::SizeIs;

constexpr char kStreams[] = "tests/faults/ranks/streams";
constexpr char kCollectives[] = "tests/faults/ranks/collective_streams";

struct Case {
  int nodes;
  int waits;  // the rank whose stream waits; for collectives, the only one whose stream does not
};

// Kills a rank of the job, and returns the errors of the others.
std::vector<RankError> KillRank(Command* job, const char* program, int ranks, int victim) {
  const std::vector<pid_t> pids = RankPids(*job, program, ranks);
  EXPECT_THAT(pids, SizeIs(ranks));
  const uint64_t killed_ns = MonotonicNs();
  kill(pids.at(static_cast<size_t>(victim)), SIGKILL);
  const CommandResult result = job->WaitCleanly();
  EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  EXPECT_THAT(errors, SizeIs(ranks - 1)) << result.out << result.err;
  std::printf("told after %.0f ms\n", LatestMs(errors, killed_ns));
  return errors;
}

// Kills the last daemon. Returns the ranks' output.
std::string KillDaemon(Command* job, int nodes) {
  std::vector<pid_t> daemons = DaemonPids(*job, static_cast<size_t>(nodes));
  kill(*std::max_element(daemons.begin(), daemons.end()), SIGKILL);
  const CommandResult result = job->Wait();
  EXPECT_NE(result.exit_code, 0);
  return result.out;
}

class StreamsTest : public testing::TestWithParam<Case> {};

TEST_P(StreamsTest, TheOtherRankIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(2, tested.nodes, {}, {kStreams, std::to_string(tested.waits)}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<RankError> errors = KillRank(&job, kStreams, 2, 1 - tested.waits);
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_EQ(errors[0].rank, tested.waits);
  EXPECT_EQ(errors[0].code, kPeerDied);
}

TEST_P(StreamsTest, ADaemonIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(2, tested.nodes, {}, {kStreams, "2"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::string out = KillDaemon(&job, tested.nodes);
  const std::vector<RankError> errors = ExpectErrors(out, 2, {kDaemonDied, kNodeUnreachable});
  EXPECT_EQ(std::count_if(errors.begin(), errors.end(),
                          [](const RankError& error) { return error.code == kDaemonDied; }),
            tested.nodes == 1 ? 2 : 1)
      << out;
}

// The network card moves the messages, and forgets one of its operations on each node. The rank
// that notices first ends, and the other may hear of that before its own time is over.
TEST(StreamsOfTheNicTest, ALostOperationTimesOutOnBothSides) {
  const CommandResult result = RunCleanly(PrivateJob(
      2, 2, {"--provider=sockets", "--faults=nic.arm:7:lose", "--operation_timeout_ms=1500"},
      {kStreams, "exchange"}));
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  const std::vector<RankError> errors = ExpectErrors(result.out, 2, {kTimeout, kPeerDied});
  ASSERT_THAT(errors, SizeIs(2)) << result.err;
  EXPECT_TRUE(errors[0].code == kTimeout || errors[1].code == kTimeout) << result.out;
}

TEST(StreamsOfTheNicTest, DaemonsDieWithOperationsInTheNic) {
  const CommandResult result = RunCommand(
      PrivateJob(2, 2, {"--provider=sockets", "--faults=nic.arm:7:kill"}, {kStreams, "exchange"}));
  EXPECT_NE(result.exit_code, 0) << result.out << result.err;
  ExpectErrors(result.out, 2, {kDaemonDied, kNodeUnreachable});
}

// The remaining rank may be helping with a message, or be helped, at that moment.
TEST(LongMessagesTest, ARankIsKilledWhileStreamsMoveThem) {
  Command job(PrivateJob(2, 1, {}, {kStreams, "flood"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<RankError> errors = KillRank(&job, kStreams, 2, 1);
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_EQ(errors[0].rank, 0);
  EXPECT_EQ(errors[0].code, kPeerDied);
}

INSTANTIATE_TEST_SUITE_P(Ends, StreamsTest,
                         testing::Values(Case{1, 0}, Case{1, 1}, Case{2, 0}, Case{2, 1}),
                         [](const auto& info) {
                           return std::to_string(info.param.nodes) + "Nodes" +
                                  (info.param.waits == 0 ? "Sender" : "Receiver");
                         });

// Five ranks compute a sum: most of them exchange nothing with the one that dies, and are told by
// those that do.
class CollectiveStreamsTest : public testing::TestWithParam<Case> {};

TEST_P(CollectiveStreamsTest, ARankIsKilled) {
  const Case& tested = GetParam();
  const int absent = tested.waits;
  Command job(PrivateJob(5, tested.nodes, {}, {kCollectives, std::to_string(absent)}));
  ASSERT_TRUE(UnderWay(&job, 5));
  for (const RankError& error : KillRank(&job, kCollectives, 5, absent)) {
    EXPECT_NE(error.code, 0);  // MPI_SUCCESS
  }
}

// The absent rank's daemon: a rank that waits for one that lives waits on.
class CollectiveDaemonsTest : public testing::TestWithParam<Case> {};

TEST_P(CollectiveDaemonsTest, ADaemonIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(5, tested.nodes, {}, {kCollectives, std::to_string(tested.waits)}));
  ASSERT_TRUE(UnderWay(&job, 5));
  EXPECT_THAT(ErrorsIn(KillDaemon(&job, tested.nodes)), SizeIs(5));
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return std::to_string(info.param.nodes) + "NodesRank" + std::to_string(info.param.waits);
}
INSTANTIATE_TEST_SUITE_P(Ends, CollectiveStreamsTest,
                         testing::Values(Case{1, 0}, Case{1, 4}, Case{2, 0}, Case{2, 4}), NameOf);

INSTANTIATE_TEST_SUITE_P(Ends, CollectiveDaemonsTest,
                         testing::Values(Case{1, 0}, Case{1, 4}, Case{2, 4}), NameOf);

// ---- Rings of devices when their rank, or the daemon, is killed

constexpr char kRings[] = "tests/faults/ranks/rings";

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
    // The daemon closes what ranks have passed on a thread of its own.
    EXPECT_TRUE(e2e::Eventually([&] { return daemon.CountMemfds() <= memfds; }))
        << daemon.CountMemfds() << " memfds are left of " << memfds;
  }
  daemon.Stop();
}

TEST(RingFaultsTest, AStoppedDaemonIsWaitedForAgain) {
  Command job(PrivateJob(1, 1, {}, {kRings, "again"}), {"FERRY_ATTACH_TIMEOUT_MS=300"});
  ASSERT_TRUE(UnderWay(&job, 1));
  const pid_t daemon = DaemonPids(job, 1)[0];
  kill(daemon, SIGSTOP);
  EXPECT_TRUE(job.WaitForOutput("timed out"));
  kill(daemon, SIGCONT);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(RingFaultsTest, AKilledDaemonEndsTheWaitsOfDevices) {
  for (const char* const mode : {"wait", "quiet"}) {
    Command job(PrivateJob(1, 1, {}, {kRings, mode}));
    ASSERT_TRUE(UnderWay(&job, 1));
    kill(DaemonPids(job, 1)[0], SIGKILL);
    ExpectErrors(job.WaitCleanly().out, 1, {kDaemonDied});
  }
}

}  // namespace
}  // namespace ferry::faults
