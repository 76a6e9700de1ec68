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
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kStreams[] = "tests/faults/ranks/streams";
constexpr char kCollectives[] = "tests/faults/ranks/collective_streams";
constexpr int kPeerDied = 14;
constexpr int kDaemonDied = 15;
constexpr int kNodeUnreachable = 16;
constexpr int kTimeout = 17;

struct Case {
  int nodes;
  int waits;  // the rank whose stream waits; for collectives, the only one whose stream does not
};

class StreamsTest : public testing::TestWithParam<Case> {};

TEST_P(StreamsTest, TheOtherRankIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(2, tested.nodes, {}, {kStreams, std::to_string(tested.waits)}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<pid_t> ranks = RankPids(job, kStreams, 2);
  ASSERT_THAT(ranks, SizeIs(2));
  const uint64_t killed_ns = MonotonicNs();
  kill(ranks[static_cast<size_t>(1 - tested.waits)], SIGKILL);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(1)) << result.out << result.err;
  EXPECT_EQ(errors[0].rank, tested.waits);
  EXPECT_EQ(errors[0].code, kPeerDied) << result.out;
  std::printf("told after %.0f ms\n", LatestMs(errors, killed_ns));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

TEST_P(StreamsTest, ADaemonIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(2, tested.nodes, {}, {kStreams, "2"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(tested.nodes));
  kill(*std::max_element(daemons.begin(), daemons.end()), SIGKILL);
  const CommandResult result = job.Wait();
  EXPECT_NE(result.exit_code, 0);
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(2)) << result.out << result.err;
  int own = 0;
  for (const RankError& error : errors) {
    own += error.code == kDaemonDied ? 1 : 0;
    EXPECT_TRUE(error.code == kDaemonDied || error.code == kNodeUnreachable) << result.out;
  }
  EXPECT_EQ(own, tested.nodes == 1 ? 2 : 1) << result.out;
}

// The network card moves the messages, and forgets one of its operations on each node. The rank
// that notices first ends, and the other may hear of that before its own time is over.
TEST(StreamsOfTheNicTest, ALostOperationTimesOutOnBothSides) {
  Command job(PrivateJob(
      2, 2, {"--provider=sockets", "--faults=nic.arm:7:lose", "--operation_timeout_ms=1500"},
      {kStreams, "exchange"}));
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(2)) << result.out << result.err;
  EXPECT_TRUE(errors[0].code == kTimeout || errors[1].code == kTimeout) << result.out;
  for (const RankError& error : errors) {
    EXPECT_TRUE(error.code == kTimeout || error.code == kPeerDied) << result.out;
  }
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

TEST(StreamsOfTheNicTest, DaemonsDieWithOperationsInTheNic) {
  Command job(
      PrivateJob(2, 2, {"--provider=sockets", "--faults=nic.arm:7:kill"}, {kStreams, "exchange"}));
  const CommandResult result = job.Wait();
  EXPECT_NE(result.exit_code, 0) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(2)) << result.out << result.err;
  for (const RankError& error : errors) {
    EXPECT_TRUE(error.code == kDaemonDied || error.code == kNodeUnreachable) << result.out;
  }
}

// The remaining rank may be helping with a message, or be helped, at that moment.
TEST(LongMessagesTest, ARankIsKilledWhileStreamsMoveThem) {
  Command job(PrivateJob(2, 1, {}, {kStreams, "flood"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<pid_t> ranks = RankPids(job, kStreams, 2);
  ASSERT_THAT(ranks, SizeIs(2));
  const uint64_t killed_ns = MonotonicNs();
  kill(ranks[1], SIGKILL);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, SizeIs(1)) << result.out << result.err;
  EXPECT_EQ(errors[0].rank, 0);
  EXPECT_EQ(errors[0].code, kPeerDied) << result.out;
  std::printf("told after %.0f ms\n", LatestMs(errors, killed_ns));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
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
  const std::vector<pid_t> ranks = RankPids(job, kCollectives, 5);
  ASSERT_THAT(ranks, SizeIs(5));
  const uint64_t killed_ns = MonotonicNs();
  kill(ranks[static_cast<size_t>(absent)], SIGKILL);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.out << result.err;
  const std::vector<RankError> errors = ErrorsIn(result.out);
  EXPECT_THAT(errors, SizeIs(4)) << result.out << result.err;
  for (const RankError& error : errors) {
    EXPECT_NE(error.code, 0) << result.out;  // MPI_SUCCESS
  }
  std::printf("told after %.0f ms\n", LatestMs(errors, killed_ns));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

// The absent rank's daemon: a rank that waits for one that lives waits on.
class CollectiveDaemonsTest : public testing::TestWithParam<Case> {};

TEST_P(CollectiveDaemonsTest, ADaemonIsKilled) {
  const Case& tested = GetParam();
  Command job(PrivateJob(5, tested.nodes, {}, {kCollectives, std::to_string(tested.waits)}));
  ASSERT_TRUE(UnderWay(&job, 5));
  std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(tested.nodes));
  kill(*std::max_element(daemons.begin(), daemons.end()), SIGKILL);
  const CommandResult result = job.Wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(ErrorsIn(result.out), SizeIs(5)) << result.out << result.err;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return std::to_string(info.param.nodes) + "NodesRank" + std::to_string(info.param.waits);
}
INSTANTIATE_TEST_SUITE_P(Ends, CollectiveStreamsTest,
                         testing::Values(Case{1, 0}, Case{1, 4}, Case{2, 0}, Case{2, 4}), NameOf);

INSTANTIATE_TEST_SUITE_P(Ends, CollectiveDaemonsTest,
                         testing::Values(Case{1, 0}, Case{1, 4}, Case{2, 4}), NameOf);

}  // namespace
}  // namespace ferry::faults
