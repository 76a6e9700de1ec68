// Messages inside a node: each path, order, wildcards, truncation.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>

#include "shm/histograms.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

// ---- Each path

constexpr uint64_t kInline = shm::kInlineBytes;
constexpr uint64_t kCell = shm::kCellBytes;
constexpr uint64_t kLarge = 300'000;  // three chunks

uint64_t Count(TestRank& rank, shm::Statistic id) {
  return shm::Statistics(rank.view().layout->counters).Read(id);
}

// One size per path, and the sizes where one path ends.
class PathTest : public testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, PathTest,
                         testing::Values(0, 1, kInline, kInline + 1, kCell, kCell + 1, kLarge));

TEST_P(PathTest, ArrivesAtAPostedReceive) {
  TestNode node;
  const std::string data = Pattern(GetParam(), 1);
  const uint32_t receive = node[1].Irecv(0, 7, kLarge);
  EXPECT_EQ(node[1].state(receive), RequestState::kPosted);
  const uint32_t send = node[0].Isend(1, 7, data);
  const Outcome received = node[1].Wait(receive);
  EXPECT_EQ(received.error, ErrorCode::kOk);
  EXPECT_EQ(received.source, 0);
  EXPECT_EQ(received.tag, 7);
  EXPECT_EQ(received.message_bytes, data.size());
  EXPECT_EQ(received.data, data);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
  EXPECT_EQ(Count(node[1], shm::Statistic::kUnexpectedMessages), 0U);
  EXPECT_EQ(Count(node[1], shm::Statistic::kBytesReceived), data.size());
  shm::Histograms sent;
  sent.Add(shm::HistogramsOf(*node[0].view().layout));
  EXPECT_EQ(std::accumulate(sent.sizes.begin(), sent.sizes.end(), uint64_t{0}), 1U);
  EXPECT_EQ(sent.sizes[shm::SizeEntry(data.size())], 1U);
}

TEST_P(PathTest, ArrivesUnexpected) {
  TestNode node;
  const std::string data = Pattern(GetParam(), 2);
  const uint32_t send = node[0].Isend(1, 7, data);
  node.Settle();
  EXPECT_EQ(Count(node[1], shm::Statistic::kUnexpectedMessages), 1U);
  const Outcome received = node[1].Receive(0, 7, kLarge);
  EXPECT_EQ(received.error, ErrorCode::kOk);
  EXPECT_EQ(received.data, data);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(PathTest, ArrivesAtADirectReceive) {
  TestNode node;
  const std::string data = Pattern(GetParam(), 6);
  const uint32_t send = node[0].Isend(1, 7, data);
  const uint32_t receive = node[1].IrecvDirect(0, 7, kLarge);
  EXPECT_EQ(Count(node[1], shm::Statistic::kUnexpectedMessages), 0U);
  EXPECT_EQ(node[1].Wait(receive).data, data);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(PathTest, TellsTruncationAndKeepsWhatFits) {
  if (GetParam() == 0) {
    GTEST_SKIP() << "an empty message fits everywhere";
  }
  for (const bool posted : {true, false}) {
    TestNode node;
    const std::string data = Pattern(GetParam(), 3);
    uint32_t receive = 0;
    uint32_t send = 0;
    if (posted) {
      receive = node[1].Irecv(0, 7, data.size() - 1);
      send = node[0].Isend(1, 7, data);
    } else {
      send = node[0].Isend(1, 7, data);
      node.Settle();
      receive = node[1].Irecv(0, 7, data.size() - 1);
    }
    const Outcome received = node[1].Wait(receive);
    EXPECT_EQ(received.error, ErrorCode::kTruncated);
    EXPECT_EQ(received.message_bytes, data.size());
    EXPECT_EQ(received.data, data.substr(0, data.size() - 1));
    EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
  }
}

TEST_P(PathTest, TruncatesToNothing) {
  TestNode node;
  const uint32_t send = node[0].Isend(1, 7, Pattern(GetParam(), 4));
  const Outcome received = node[1].Receive(0, 7, 0);
  EXPECT_EQ(received.error, GetParam() == 0 ? ErrorCode::kOk : ErrorCode::kTruncated);
  EXPECT_EQ(received.data, "");
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(PathTest, ReachesTheSenderItself) {
  TestNode node(NodeOptions{.local_ranks = 1});
  const std::string data = Pattern(GetParam(), 5);
  const uint32_t send = node[0].Isend(0, 1, data);
  const uint32_t receive = node[0].Irecv(0, 1, kLarge);
  EXPECT_EQ(node[0].Wait(receive).data, data);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST(RankEngineTest, CountsTheMessagesOfEachPath) {
  TestNode node;
  for (const uint64_t size_bytes : {kInline, kCell, kLarge}) {
    const uint32_t send = node[0].Isend(1, 7, Pattern(size_bytes, 1));
    node[1].Receive(0, 7, kLarge);
    node[0].Wait(send);
  }
  EXPECT_EQ(Count(node[0], shm::Statistic::kMessagesSent), 3U);
  EXPECT_EQ(Count(node[0], shm::Statistic::kBytesSent), kInline + kCell + kLarge);
  EXPECT_EQ(Count(node[1], shm::Statistic::kPathInlineMessages), 1U);
  EXPECT_EQ(Count(node[1], shm::Statistic::kPathCellBytes), kCell);
  EXPECT_EQ(Count(node[1], shm::Statistic::kPathProcessVmBytes), kLarge);
  EXPECT_EQ(Count(node[1], shm::Statistic::kWorkerMatches), 0U);
}

TEST(RankEngineTest, WakesTheSenderOfALargeMessageToHelp) {
  TestNode node;
  const uint32_t send = node[0].Isend(1, 7, Pattern(kLarge, 1));
  EXPECT_TRUE(node[0].urgent.Has(1)) << "a rendezvous cannot wait for the receiver's next call";
  node[1].Irecv(0, 7, kLarge);
  node[1].Progress();
  EXPECT_TRUE(node[1].wakes.Has(0));
  EXPECT_TRUE(node[0].Test(send)) << "the sender alone can copy it";
}

TEST(RankEngineTest, KeepsTheOrderAcrossPaths) {
  // More medium messages than cells: the later ones go by RTS, and must not overtake nor be
  // overtaken.
  TestNode node;
  std::vector<std::string> messages;
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < 200; ++i) {
    constexpr uint64_t kSizes[] = {100, kCell, 8, 5000, kCell + 1};
    messages.push_back(Pattern(kSizes[i % 5], i));
    sends.push_back(node[0].Isend(1, 7, messages.back()));
  }
  EXPECT_EQ(node[0].engine().sends().TryTakeCell(1), shm::kNoCell)
      << "the test wants the cells used up";
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(node[1].Receive(0, 7, kLarge).data, messages[i]) << "message " << i;
  }
  for (const uint32_t send : sends) {
    EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
  }
  EXPECT_NE(node[0].engine().sends().TryTakeCell(1), shm::kNoCell);
}

TEST(RankEngineTest, KeepsTheOrderOfReceivesToo) {
  TestNode node;
  std::vector<uint32_t> receives;
  for (int32_t i = 0; i < 6; ++i) {
    receives.push_back(
        node[1].Irecv(i % 2 == 0 ? shm::kAnySource : 0, i % 3 == 0 ? shm::kAnyTag : 7, 16));
  }
  for (uint32_t i = 0; i < 6; ++i) {
    node[0].Isend(1, 7, std::to_string(i));
  }
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(node[1].Wait(receives[i]).data, std::to_string(i));
  }
}

TEST(RankEngineTest, DirectReceiveTakesItsTurn) {
  // The receives come behind earlier receives, and behind earlier messages.
  TestNode node;
  const uint32_t posted = node[1].Irecv(shm::kAnySource, shm::kAnyTag, 16);
  for (const char* message : {"1", "2", "3"}) {
    node[0].Isend(1, 7, message);
  }
  EXPECT_EQ(node[1].Wait(node[1].IrecvDirect(0, 7, 16)).data, "2");
  EXPECT_EQ(node[1].Wait(posted).data, "1");
  EXPECT_EQ(node[1].Wait(node[1].IrecvDirect(shm::kAnySource, 7, 16)).data, "3");
  const uint32_t waiting = node[1].IrecvDirect(0, 8, 16);
  EXPECT_EQ(node[1].state(waiting), RequestState::kPosted);
  Effects effects;
  const uint32_t other = node[1].NewRequest(shm::RequestKind::kReceive, 0, 9, 0, "");
  EXPECT_FALSE(node[1].engine().receives().ReceiveNow(other, effects));
  node[0].Isend(1, 9, "for nobody yet");
  node[1].Progress();
  EXPECT_EQ(node[1].state(other), RequestState::kInactive) << "it asked for then only";
}

TEST(RankEngineTest, ReceiveOfAMessageThatIsThereIsNotPosted) {
  TestNode node;
  node[0].Isend(1, 7, "here");
  node[0].Isend(1, 7, Pattern(20'000, 1));
  const uint32_t small = node[1].Irecv(0, 7, 16);
  const uint32_t large = node[1].Irecv(0, 7, 20'000);
  EXPECT_EQ(node[1].state(small), RequestState::kLanded);
  EXPECT_EQ(node[1].state(large), RequestState::kTransferring);
  EXPECT_EQ(node.view(1).match()->fresh, 1U) << "an entry of the table was used";
  EXPECT_EQ(node[1].Wait(small).data, "here");
  EXPECT_EQ(node[1].Wait(large).data, Pattern(20'000, 1));
}

TEST(RankEngineTest, ReceiveOfAMessageThatIsThereTakesItsTurn) {
  TestNode node;
  const uint32_t any = node[1].Irecv(shm::kAnySource, shm::kAnyTag, 16);
  for (const char* message : {"1", "2", "3"}) {
    node[0].Isend(1, 7, message);
  }
  node[0].Isend(1, 8, "4");
  node[0].Isend(1, 7, "5");
  const uint32_t exact = node[1].Irecv(0, 7, 16);
  EXPECT_EQ(node[1].state(any), RequestState::kLanded);
  EXPECT_EQ(node[1].state(exact), RequestState::kLanded);
  const uint32_t other = node[1].Irecv(0, 8, 16);
  EXPECT_EQ(node[1].state(other), RequestState::kPosted) << "\"3\" comes first and is nobody's";
  EXPECT_EQ(node.view(1).match()->unexpected_count, 0U) << "\"3\" was moved";
  EXPECT_EQ(node[1].Wait(any).data, "1");
  EXPECT_EQ(node[1].Wait(exact).data, "2");
  EXPECT_EQ(node[1].Receive(0, 7, 16).data, "3");
  EXPECT_EQ(node[1].Wait(other).data, "4");
  EXPECT_EQ(node[1].Receive(shm::kAnySource, shm::kAnyTag, 16).data, "5");
}

TEST(RankEngineTest, MatchesWildcards) {
  TestNode node(NodeOptions{.local_ranks = 3});
  node[0].Isend(2, 5, "from 0");
  node.Settle();
  node[1].Isend(2, 6, "from 1");
  node.Settle();
  const Outcome tagged = node[2].Receive(shm::kAnySource, 6, 16);
  EXPECT_EQ(tagged.data, "from 1");
  EXPECT_EQ(tagged.source, 1);
  const Outcome any = node[2].Receive(shm::kAnySource, shm::kAnyTag, 16);
  EXPECT_EQ(any.data, "from 0");
  EXPECT_EQ(any.source, 0);
  EXPECT_EQ(any.tag, 5);
}

TEST(RankEngineTest, KeepsContextsApart) {
  TestNode node;
  const uint32_t other = node[1].Irecv(shm::kAnySource, shm::kAnyTag, 16, 1);
  node[0].Isend(1, 7, "zero", 0);
  node.Settle();
  EXPECT_EQ(node[1].state(other), RequestState::kPosted);
  EXPECT_EQ(node[1].Receive(0, 7, 16, 0).data, "zero");
  node[0].Isend(1, 7, "one", 1);
  EXPECT_EQ(node[1].Wait(other).data, "one");
}

TEST(RankEngineTest, BelievesTheLaneNotTheDescriptorAboutTheSource) {
  TestNode node(NodeOptions{.local_ranks = 3});
  shm::Descriptor forged{};
  forged.kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
  forged.source = 1;
  forged.tag = 7;
  shm::LaneProducer(node.view(2).inbox.lane(0)).TryPush(forged);
  shm::Wake(node.view(2).inbox.wake()).PublishLane(0);
  node[2].Progress();
  EXPECT_EQ(node[2].Receive(shm::kAnySource, 7, 16).source, 0);
}

TEST(RankEngineTest, HandlesAtMostABudgetAtOnceAndForgetsNothing) {
  TestNode node(NodeOptions{.local_ranks = 4});
  for (uint32_t source = 0; source < 3; ++source) {
    for (uint32_t i = 0; i < 100; ++i) {
      node[source].Isend(3, 7, "x");
    }
  }
  uint32_t handled = 0;
  for (uint32_t step = 0; node[3].engine().HasWork(); ++step) {
    ASSERT_LT(step, 100U);
    const uint32_t now = node[3].Progress();
    EXPECT_LE(now, kDrainBudget);
    handled += now;
  }
  EXPECT_EQ(handled, 300U);
  EXPECT_FALSE(node[3].engine().HasArrivals());
}

// Two threads of a rank go to sleep. One has forgotten the lanes, and the other looks before it has
// looked again: the other sees nothing, and the first finds what both wait for. The first may have
// no use for it, so that the other must not sleep on.
TEST(RankEngineTest, WakesWhoHasLookedWhileLanesWereForgotten) {
  TestNode node(NodeOptions{.local_ranks = 2});
  RankEngine& engine = node[1].engine();
  shm::Wake wake(node.view(1).inbox.wake());
  node[0].Isend(1, 7, "for the other");
  const LaneSet forgotten = engine.ForgetLanes();
  EXPECT_FALSE(forgotten.empty());
  const uint32_t other_sleeps_on = wake.PrepareToSleep();
  EXPECT_FALSE(engine.HasWork(engine.ForgetLanes()));
  const uint32_t sequence = wake.PrepareToSleep();
  EXPECT_TRUE(engine.HasWork(forgotten));
  wake.CancelSleep();
  ASSERT_NE(shm::Load(wake.layout()->sequence, std::memory_order_seq_cst), other_sleeps_on);
  wake.Sleep(other_sleeps_on, 0);  // returns at once
  EXPECT_TRUE(engine.HasWork());
  EXPECT_EQ(sequence, other_sleeps_on);
}

// A thread alone makes no system call for it.
TEST(RankEngineTest, WakesNobodyWhereNobodyElseSleeps) {
  TestNode node(NodeOptions{.local_ranks = 2});
  node[0].Isend(1, 7, "x");
  const LaneSet forgotten = node[1].engine().ForgetLanes();
  shm::Wake wake(node.view(1).inbox.wake());
  const uint32_t sequence = wake.PrepareToSleep();
  EXPECT_TRUE(node[1].engine().HasWork(forgotten));
  wake.CancelSleep();
  EXPECT_EQ(shm::Load(wake.layout()->sequence, std::memory_order_seq_cst), sequence);
}

TEST(RankEngineTest, StarvesNoLaneWhileAnotherStaysBusy) {
  TestNode node(NodeOptions{.local_ranks = 3});
  node[0].Isend(2, 1, "busy");
  node[2].Progress();  // lane 0 has spoken last
  node[1].Isend(2, 2, "patient");
  const uint32_t receive = node[2].Irecv(1, 2, 16);
  for (uint32_t i = 0; i < 100 && node[2].state(receive) == RequestState::kPosted; ++i) {
    node[0].Isend(2, 1, "busy");
    node[2].Progress();
  }
  EXPECT_EQ(node[2].state(receive), RequestState::kLanded);
}

TEST(RankEngineTest, ReusesRequestSlotsAndTransferSlots) {
  TestNode node(NodeOptions{.request_limit = 8});
  for (uint32_t i = 0; i < 100; ++i) {
    const std::string data = Pattern(kCell + 1 + i, i);
    const uint32_t send = node[0].Isend(1, 7, data);
    ASSERT_EQ(node[1].Receive(0, 7, kLarge).data, data);
    ASSERT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
  }
}

}  // namespace
}  // namespace ferry::engine
