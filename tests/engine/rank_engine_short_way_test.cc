// The short ways inside a node, which need no request: small messages, and RTSs of one chunk.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/message_watch.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

constexpr uint64_t kCell = shm::kCellBytes;
constexpr uint64_t kLarge = 300'000;  // three chunks

// ---- Small messages: TrySendLocal and TryTakeEager

constexpr uint32_t kReceiver = 2;

class RankEngineLocalTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t sender = 0; sender < kReceiver; ++sender) {
      node_[sender].engine().sends().OpenLane(kReceiver);
    }
  }
  bool Send(uint32_t sender, int32_t tag, const std::string& data) {
    const bool sent = node_[sender].engine().sends().TrySendLocal({kReceiver, 0, tag, data.size()},
                                                                  data.data(), shm::kNoCell);
    if (sent) {
      shm::Wake(node_.view(kReceiver).inbox.wake()).PublishLane(sender);
    }
    return sent;
  }
  bool Take(int32_t source, int32_t tag, uint64_t capacity_bytes = 64) {
    RankEngine& engine = receiver().engine();
    return engine.receives().TryTakeEager(engine.LaneOf(source), {0, source, tag}, capacity_bytes,
                                          &message_);
  }
  std::string Inline() const {
    return {reinterpret_cast<const char*>(message_.payload), message_.size_bytes};
  }
  uint64_t Received() const {
    return node_.view(kReceiver)
        .layout->counters[static_cast<uint32_t>(shm::Statistic::kMessagesReceived)];
  }
  TestRank& receiver() { return node_[kReceiver]; }

  TestNode node_{NodeOptions{.local_ranks = 3, .remote_ranks = 1}};
  EagerMessage message_{};
};

TEST_F(RankEngineLocalTest, TakesWhatItAsksFor) {
  EXPECT_FALSE(Take(1, 7)) << "nothing is there";
  ASSERT_TRUE(Send(1, 7, "hello"));
  EXPECT_TRUE(receiver().engine().HasMessage(receiver().engine().LaneOf(1)));
  ASSERT_TRUE(Take(1, 7));
  EXPECT_EQ(message_.source, 1U);
  EXPECT_EQ(message_.tag, 7);
  EXPECT_EQ(Inline(), "hello");
  EXPECT_EQ(message_.cell, shm::kNoCell);
  EXPECT_FALSE(Take(1, 7)) << "it is gone";
  EXPECT_EQ(receiver().Progress(), 0U);
  EXPECT_EQ(Received(), 1U);
}

TEST_F(RankEngineLocalTest, TakesACellThatGoesBackWhenReleased) {
  SendEngine& sender = node_[0].engine().sends();
  const std::string data = Pattern(1000, 1);
  for (uint32_t i = 0; i < 2 * shm::kLaneCells; ++i) {
    const uint32_t cell = sender.TryTakeCell(kReceiver);
    ASSERT_NE(cell, shm::kNoCell) << i;
    std::memcpy(sender.CellBytes(kReceiver, cell), data.data(), data.size());
    ASSERT_TRUE(sender.TrySendLocal({kReceiver, 0, 7, data.size()}, data.data(), cell));
    if (!Take(0, 7)) {  // it is the turn of the other lanes
      EXPECT_EQ(receiver().Receive(0, 7, 1000).data, data);
      continue;
    }
    ASSERT_EQ(message_.cell, cell);
    EXPECT_EQ(
        std::memcmp(receiver().engine().receives().CellBytes(message_), data.data(), data.size()),
        0);
    receiver().engine().receives().ReleaseCell(message_);
  }
}

TEST_F(RankEngineLocalTest, WildcardsTakeFromTheLaneThatSpokeLast) {
  ASSERT_TRUE(Send(1, 3, "a"));
  EXPECT_EQ(receiver().Receive(shm::kAnySource, 3, 8).data, "a");
  ASSERT_TRUE(Send(1, 4, "b"));
  ASSERT_TRUE(Take(shm::kAnySource, shm::kAnyTag));
  EXPECT_EQ(message_.source, 1U);
  EXPECT_EQ(message_.tag, 4);
}

TEST_F(RankEngineLocalTest, LeavesWhatIsForOthers) {
  ASSERT_TRUE(Send(1, 7, "first"));
  EXPECT_FALSE(Take(1, 8)) << "another tag";
  EXPECT_FALSE(Take(0, 7)) << "another source";
  const uint32_t posted = receiver().Irecv(shm::kAnySource, 7, 8);
  EXPECT_FALSE(Take(1, 7)) << "a receive that was posted earlier comes first";
  EXPECT_EQ(receiver().Wait(posted).data, "first");
  const uint32_t other = receiver().Irecv(1, 9, 8);
  ASSERT_TRUE(Send(1, 7, "second"));
  EXPECT_TRUE(Take(1, 7)) << "that receive is for other messages";
  ASSERT_TRUE(Send(1, 9, "third"));
  EXPECT_EQ(receiver().Wait(other).data, "third");
}

TEST_F(RankEngineLocalTest, OvertakesNoUnexpectedMessage) {
  ASSERT_TRUE(Send(1, 7, "first"));
  receiver().Progress();
  ASSERT_TRUE(Send(1, 7, "second"));
  EXPECT_FALSE(Take(1, 7));
  EXPECT_EQ(receiver().Receive(1, 7, 8).data, "first");
  EXPECT_TRUE(Take(1, 7));
  EXPECT_EQ(Inline(), "second");
}

TEST_F(RankEngineLocalTest, OvertakesNoQueuedSend) {
  for (uint32_t i = 0; i < shm::kLaneSlots; ++i) {
    ASSERT_TRUE(Send(1, 7, "x"));
  }
  EXPECT_FALSE(Send(1, 7, "y")) << "the lane is full";
  const uint32_t queued = node_[1].Isend(kReceiver, 7, "queued");
  EXPECT_EQ(node_[1].state(queued), shm::RequestState::kQueued);
  receiver().Progress();
  EXPECT_FALSE(Send(1, 7, "y")) << "another one waits before it";
}

TEST_F(RankEngineLocalTest, GivesTheOtherLanesTheirTurn) {
  ASSERT_TRUE(Send(0, 5, "patient"));
  uint32_t taken = 0;
  for (; taken <= 2 * kHotStreak; ++taken) {
    ASSERT_TRUE(Send(1, 7, "x"));
    if (!receiver().engine().TakeTurn() || !Take(1, 7)) {
      break;
    }
  }
  EXPECT_LE(taken, kHotStreak);
  receiver().Progress();
  EXPECT_EQ(receiver().view().match()->unexpected_count, 2U) << "the patient one among them";
}

TEST_F(RankEngineLocalTest, LeavesDeathsToProgress) {
  ASSERT_TRUE(Send(1, 7, "x"));
  node_.MarkDead(kReceiver, 0);
  EXPECT_FALSE(Take(1, 7));
  receiver().Progress();
  EXPECT_EQ(receiver().Receive(1, 7, 8).data, "x");
}

TEST_F(RankEngineLocalTest, CutsWhatIsTooLong) {
  ASSERT_TRUE(Send(1, 7, "longer than that"));
  ASSERT_TRUE(Take(1, 7, 4));
  EXPECT_EQ(message_.size_bytes, 16U) << "the caller sees that it was truncated";
  EXPECT_EQ(
      node_.view(kReceiver).layout->counters[static_cast<uint32_t>(shm::Statistic::kBytesReceived)],
      4U);
}

TEST_F(RankEngineLocalTest, LeavesCorruptDescriptorsToProgress) {
  for (const auto& corrupt : {+[](shm::Descriptor& d) { d.size_bytes = shm::kInlineBytes + 1; },
                              +[](shm::Descriptor& d) {
                                d.flags = shm::kFlagCell;
                                d.cell = shm::kLaneCells;
                              },
                              +[](shm::Descriptor& d) {
                                d.flags = shm::kFlagCell;
                                d.size_bytes = shm::kCellBytes + 1;
                              },
                              +[](shm::Descriptor& d) { d.tag = -1; }}) {
    TestNode node(NodeOptions{.local_ranks = 2});
    node[0].engine().sends().OpenLane(1);
    ASSERT_TRUE(node[0].engine().sends().TrySendLocal({1, 0, 7, 1}, "x", shm::kNoCell));
    corrupt(node.view(1).inbox.lane(0)->slots[0]);
    EXPECT_FALSE(node[1].engine().receives().TryTakeEager(0, {0, 0, shm::kAnyTag}, 64, &message_));
    shm::Wake(node.view(1).inbox.wake()).PublishLane(0);
    node[1].Progress();
    EXPECT_EQ(
        node[1].view().layout->counters[static_cast<uint32_t>(shm::Statistic::kMessagesReceived)],
        0U);
    EXPECT_FALSE(node[1].engine().HasMessage(0)) << "the lane is not read any more";
  }
}

// ---- Watching

struct SeenMessage {
  bool matched;
  bool expected;
  shm::MessageSeen message;
};

class Seen final : public shm::MessageWatch {
 public:
  void Arrived(const shm::MessageSeen& message, bool is_expected) override {
    all.push_back({false, is_expected, message});
  }
  void Matched(const shm::MessageSeen& message, bool was_expected) override {
    all.push_back({true, was_expected, message});
  }
  void QueuesAre(uint32_t posted, uint32_t unexpected) override {
    most_posted = std::max(most_posted, posted);
    most_unexpected = std::max(most_unexpected, unexpected);
  }

  std::vector<SeenMessage> all;
  uint32_t most_posted = 0;
  uint32_t most_unexpected = 0;
};

TEST_F(RankEngineLocalTest, TellsOfAllMessagesWhileSomebodyWatches) {
  static Seen& seen = *new Seen();
  WatchMessages(&seen);
  ASSERT_TRUE(Send(1, 7, "hello"));
  EXPECT_FALSE(Take(1, 7)) << "only Progress tells of messages";
  EXPECT_EQ(receiver().Receive(1, 7, 64).data, "hello");
  ASSERT_TRUE(Send(1, 8, "abc"));
  ASSERT_TRUE(Send(1, 9, "defg"));
  EXPECT_EQ(receiver().Receive(1, 9, 64).data, "defg");
  EXPECT_EQ(receiver().Receive(1, 8, 64).data, "abc");
  WatchMessages(nullptr);
  ASSERT_EQ(seen.all.size(), 6U);
  EXPECT_FALSE(seen.all[0].matched);
  EXPECT_TRUE(seen.all[1].matched);
  EXPECT_EQ(seen.all[1].message.tag, 7);
  EXPECT_EQ(seen.all[1].message.source, 1);
  EXPECT_EQ(seen.all[1].message.size_bytes, 5U);
  EXPECT_EQ(seen.all[2].message.tag, 8);  // it came before its receive
  EXPECT_FALSE(seen.all[2].expected);
  EXPECT_EQ(seen.all[5].message.tag, 8);
  EXPECT_TRUE(seen.all[5].matched);
  EXPECT_FALSE(seen.all[5].expected);
  EXPECT_EQ(seen.most_unexpected, 1U);
  ASSERT_TRUE(Send(1, 7, "again"));
  EXPECT_TRUE(Take(1, 7)) << "nobody watches any more";
  EXPECT_EQ(seen.all.size(), 6U);
}

// ---- RTSs: FindRts and TakeWhole

class RankEngineRtsTest : public testing::Test {
 protected:
  bool Find(int32_t tag = 7) {
    RankEngine& engine = node_[1].engine();
    return engine.receives().FindRts(engine.LaneOf(0), {0, 0, tag}, &rts_);
  }
  bool Take(uint64_t capacity_bytes) {
    return node_[1].engine().receives().TakeWhole(rts_, capacity_bytes);
  }
  std::string Announced(size_t bytes) const {
    return {reinterpret_cast<const char*>(rts_.where.address), bytes};
  }
  uint64_t Received() {
    return node_.view(1).layout->counters[static_cast<uint32_t>(shm::Statistic::kMessagesReceived)];
  }

  TestNode node_;
  AnnouncedMessage rts_{};
};

TEST_F(RankEngineRtsTest, IsTheReceiversAlone) {
  const std::string data = Pattern(kCell + 100, 1);
  const uint32_t send = node_[0].IsendByRequest(1, 7, data);
  ASSERT_TRUE(Find());
  EXPECT_EQ(rts_.source, 0U);
  EXPECT_EQ(rts_.tag, 7);
  EXPECT_EQ(Announced(rts_.size_bytes), data);
  ASSERT_TRUE(Take(kLarge));
  EXPECT_FALSE(node_[0].Test(send)) << "its sender has no chunk to copy";
  EXPECT_FALSE(Find()) << "it is gone";
  EXPECT_EQ(EndChunk(*rts_.transfer, rts_.generation, 1, ErrorCode::kOk), ChunkResult::kFinished);
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
  EXPECT_EQ(Received(), 1U);
}

TEST_F(RankEngineRtsTest, IsCutToTheCapacity) {
  const uint32_t send = node_[0].IsendByRequest(1, 7, Pattern(kCell + 100, 1));
  EXPECT_EQ(node_[1].Finish(node_[1].IrecvDirect(0, 7, 50)).error, ErrorCode::kTruncated);
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

TEST_F(RankEngineRtsTest, FailsWithTheCopy) {
  const uint32_t send = node_[0].IsendByRequest(1, 7, Pattern(kCell + 100, 1));
  ASSERT_TRUE(Find() && Take(kLarge));
  (void)EndChunk(*rts_.transfer, rts_.generation, 1, ErrorCode::kInvalidBuffer);
  Release(*rts_.transfer, rts_.generation);
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kInvalidBuffer);
}

TEST_F(RankEngineRtsTest, FoundAndNotTakenGoesTheOtherWay) {
  const std::string data = Pattern(kCell + 100, 1);
  const uint32_t send = node_[0].IsendByRequest(1, 7, data);
  ASSERT_TRUE(Find());
  EXPECT_FALSE(node_[0].Cancel(send)) << "it was decided for";
  EXPECT_EQ(node_[1].Receive(0, 7, kLarge).data, data);
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
  EXPECT_EQ(Received(), 1U);
}

TEST_F(RankEngineRtsTest, IsNotThereForOthersOrInParts) {
  const std::string data = Pattern(kCell + 100, 1);
  const uint32_t cancelled = node_[0].IsendByRequest(1, 7, data);
  ASSERT_TRUE(node_[0].Cancel(cancelled));
  EXPECT_FALSE(Find()) << "its sender took it back";
  EXPECT_NE(node_[1].Progress(), 0U) << "which drops it";
  const uint32_t first = node_[0].IsendByRequest(1, 7, data);
  EXPECT_FALSE(Find(8)) << "another tag";
  const uint32_t posted = node_[1].Irecv(0, 8, kLarge);
  const uint32_t second = node_[0].IsendByRequest(1, 8, data);
  EXPECT_EQ(node_[1].Receive(0, 7, kLarge).data, data);
  EXPECT_FALSE(Find(8)) << "a receive was posted for it";
  EXPECT_EQ(node_[1].Wait(posted).data, data);
  EXPECT_EQ(node_[0].Wait(first).error, ErrorCode::kOk);
  EXPECT_EQ(node_[0].Wait(second).error, ErrorCode::kOk);
  const std::string longer = Pattern(node_.engine_options().single_chunk_max_bytes + 1, 2);
  const uint32_t third = node_[0].IsendByRequest(1, 7, longer);
  EXPECT_FALSE(Find()) << "worth help";
  EXPECT_EQ(node_[1].Receive(0, 7, longer.size()).data, longer);
  EXPECT_EQ(node_[0].Wait(third).error, ErrorCode::kOk);
}

TEST_F(RankEngineRtsTest, MayHaveMoved) {
  const std::string data = Pattern(kCell + 100, 1);
  const std::string copy = Pattern(kCell + 100, 2);
  const uint32_t send = node_[0].IsendByRequest(1, 7, data);
  const shm::RequestLayout& slot = node_[0].slot(send);
  ASSERT_TRUE(MoveAnnounced(*node_.view(0).inbox.transfer(send), slot.transfer_generation,
                            {0, 0, reinterpret_cast<uint64_t>(copy.data())}));
  ASSERT_TRUE(Find() && Take(kLarge));
  EXPECT_EQ(Announced(rts_.size_bytes), copy);
  (void)EndChunk(*rts_.transfer, rts_.generation, 1, ErrorCode::kOk);
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

}  // namespace
}  // namespace ferry::engine
