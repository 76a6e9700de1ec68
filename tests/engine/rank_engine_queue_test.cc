// Waiting: sends without room, receives without a message, messages without a receive.
#include <gtest/gtest.h>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

// Sends until the lane from rank 0 to rank 1 is full; returns how many fitted.
uint32_t FillLane(TestNode& node) {
  Effects effects;
  node[0].engine().sends().OpenLane(1);
  uint32_t sent = 0;
  while (node[0].engine().sends().TrySendInline({1, 0, 7, 4}, "fill", effects)) {
    ++sent;
  }
  node[0].Perform(effects);
  return sent;
}

void DrainFill(TestNode& node, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(node[1].Receive(0, 7, 16).data, "fill");
  }
}

TEST(RankEngineQueueTest, QueuesWhatDoesNotFitAndSendsItInOrder) {
  TestNode node;
  const uint32_t filled = FillLane(node);
  EXPECT_EQ(filled, shm::kLaneSlots);
  std::vector<uint32_t> sends;
  std::vector<std::string> messages;
  for (uint32_t i = 0; i < 100; ++i) {
    constexpr uint64_t kSizes[] = {0, 32, 33, 8192, 20'000};
    messages.push_back(Pattern(kSizes[i % 5], i));
    sends.push_back(node[0].Isend(1, 7, messages.back()));
    EXPECT_EQ(node[0].state(sends.back()), RequestState::kQueued);
  }
  EXPECT_EQ(node.view(0).layout->queued_sends, 100U);
  EXPECT_TRUE(node[0].engine().WaitsForRoom());
  EXPECT_TRUE(node[0].urgent.Has(1)) << "a full lane needs somebody to drain it";
  DrainFill(node, filled);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(node[1].Receive(0, 7, 20'000).data, messages[i]) << "message " << i;
    ASSERT_EQ(node[0].Wait(sends[i]).error, ErrorCode::kOk);
  }
  EXPECT_EQ(node.view(0).layout->queued_sends, 0U);
  EXPECT_FALSE(node[0].engine().WaitsForRoom());
}

TEST(RankEngineQueueTest, LetsNothingOvertakeTheQueue) {
  TestNode node;
  const uint32_t filled = FillLane(node);
  node[0].Isend(1, 7, "queued");
  node[1].Progress();  // now there is room again, but the queue has not moved yet
  Effects effects;
  EXPECT_FALSE(node[0].engine().sends().TrySendInline({1, 0, 7, 4}, "late", effects));
  EXPECT_EQ(node[0].engine().sends().TryTakeCell(1), shm::kNoCell);
  node[0].Isend(1, 7, "after");
  DrainFill(node, filled);
  EXPECT_EQ(node[1].Receive(0, 7, 16).data, "queued");
  EXPECT_EQ(node[1].Receive(0, 7, 16).data, "after");
}

TEST(RankEngineQueueTest, WakesTheProducerThatWaitsForRoom) {
  TestNode node;
  FillLane(node);
  node[0].Isend(1, 7, "queued");
  EXPECT_FALSE(node[1].wakes.Has(0));
  node.Settle();
  EXPECT_TRUE(node[1].wakes.Has(0));
  EXPECT_TRUE(node[1].urgent.Has(0));
}

TEST(RankEngineQueueTest, WakesNobodyWithoutNeed) {
  TestNode node;
  for (uint32_t i = 0; i < 2 * shm::kLaneSlots; ++i) {
    node[0].Isend(1, 7, "x");
    node[1].Progress();
  }
  EXPECT_TRUE(node[1].wakes.empty());
}

TEST(RankEngineQueueTest, FullOwnLaneEmptiesItself) {
  TestNode node(NodeOptions{.local_ranks = 1});
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < shm::kLaneSlots + 50; ++i) {
    sends.push_back(node[0].Isend(0, 1, std::to_string(i)));
  }
  for (uint32_t i = 0; i < sends.size(); ++i) {
    ASSERT_EQ(node[0].Receive(0, 1, 16).data, std::to_string(i));
    ASSERT_EQ(node[0].Wait(sends[i]).error, ErrorCode::kOk);
  }
}

// ---- Cancelling what is announced ---------------------------------------------------------------

constexpr uint64_t kAnnouncedBytes = 20'000;

// Parameter: true if the receiver has put the RTS among its unexpected messages before the cancel.
class CancelAnnouncedTest : public testing::TestWithParam<bool> {
 protected:
  uint32_t Rts(int32_t tag, uint32_t seed) {
    const uint32_t send = node_[0].Isend(1, tag, Pattern(kAnnouncedBytes, seed));
    EXPECT_EQ(node_[0].state(send), shm::RequestState::kTransferring);
    if (GetParam()) {
      node_[1].Progress();
    }
    return send;
  }
  void CancelIt(uint32_t send) {
    EXPECT_TRUE(node_[0].Cancel(send));
    EXPECT_FALSE(node_[0].Cancel(send)) << "it is complete already";
    EXPECT_EQ(node_[0].Finish(send).error, ErrorCode::kCancelled);
    EXPECT_TRUE(IsReusable(*node_.view(0).inbox.transfer(send)));
  }
  bool Finds(int32_t tag) {
    ProbeResult result;
    node_[1].Progress();
    return node_[1].engine().receives().Probe({0, 0, tag}, &result) == ErrorCode::kOk;
  }

  TestNode node_;
};

INSTANTIATE_TEST_SUITE_P(Places, CancelAnnouncedTest, testing::Bool());

TEST_P(CancelAnnouncedTest, IsAsIfItHadNotBeenSent) {
  CancelIt(Rts(7, 1));
  const uint32_t receive = node_[1].Irecv(0, 7, kAnnouncedBytes);
  node_.Settle();
  EXPECT_EQ(node_[1].state(receive), shm::RequestState::kPosted);
  // The slot is used again, under the same index.
  const uint32_t send = Rts(7, 2);
  EXPECT_EQ(node_[1].Wait(receive).data, Pattern(kAnnouncedBytes, 2));
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(CancelAnnouncedTest, OthersKeepTheirOrder) {
  const uint32_t sends[] = {Rts(7, 0), Rts(7, 1), Rts(7, 2), Rts(7, 3)};
  CancelIt(sends[0]);
  CancelIt(sends[2]);
  EXPECT_EQ(node_[1].Receive(0, 7, kAnnouncedBytes).data, Pattern(kAnnouncedBytes, 1));
  EXPECT_EQ(node_[1].Receive(0, 7, kAnnouncedBytes).data, Pattern(kAnnouncedBytes, 3));
  EXPECT_EQ(node_[0].Wait(sends[1]).error, ErrorCode::kOk);
  EXPECT_EQ(node_[0].Wait(sends[3]).error, ErrorCode::kOk);
  EXPECT_FALSE(Finds(7));
}

TEST_P(CancelAnnouncedTest, IsNotProbed) {
  const uint32_t send = Rts(7, 1);
  const uint32_t other = Rts(8, 2);
  EXPECT_TRUE(Finds(8));
  CancelIt(send);
  EXPECT_FALSE(Finds(7));
  EXPECT_TRUE(Finds(8));
  EXPECT_EQ(node_[1].Receive(0, 8, kAnnouncedBytes).data, Pattern(kAnnouncedBytes, 2));
  EXPECT_EQ(node_[0].Wait(other).error, ErrorCode::kOk);
}

TEST_P(CancelAnnouncedTest, IsPossibleOnceItWasProbed) {
  const uint32_t sends[] = {Rts(7, 0), Rts(7, 1)};
  EXPECT_TRUE(Finds(7));
  CancelIt(sends[0]);
  EXPECT_EQ(node_[1].Receive(0, 7, kAnnouncedBytes).data, Pattern(kAnnouncedBytes, 1));
  EXPECT_EQ(node_[0].Wait(sends[1]).error, ErrorCode::kOk);
  EXPECT_FALSE(Finds(7));
}

TEST_P(CancelAnnouncedTest, ComesTooLateOnceAProbeHasTakenIt) {
  const uint32_t send = Rts(7, 1);
  node_[1].Progress();
  ProbeResult result;
  ASSERT_EQ(node_[1].engine().receives().Probe({0, 0, 7}, &result, ReceiveEngine::Use::kTake),
            ErrorCode::kOk);
  EXPECT_FALSE(node_[0].Cancel(send));
  EXPECT_EQ(node_[1].Receive(0, 7, kAnnouncedBytes).data, Pattern(kAnnouncedBytes, 1));
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(CancelAnnouncedTest, ComesTooLateOnceItIsMatched) {
  const uint32_t send = Rts(7, 1);
  const uint32_t receive = node_[1].Irecv(0, 7, kAnnouncedBytes);
  node_[1].Progress();
  EXPECT_FALSE(node_[0].Cancel(send));
  EXPECT_EQ(node_[1].Wait(receive).data, Pattern(kAnnouncedBytes, 1));
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

TEST_P(CancelAnnouncedTest, DirectReceivesPassItBy) {
  CancelIt(Rts(7, 1));
  const uint32_t receive = node_[1].IrecvDirect(0, 7, kAnnouncedBytes);
  const uint32_t send = Rts(7, 2);
  EXPECT_EQ(node_[1].Wait(receive).data, Pattern(kAnnouncedBytes, 2));
  EXPECT_EQ(node_[0].Wait(send).error, ErrorCode::kOk);
}

// Cancels the k-th of five queued sends.
class CancelQueuedTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Places, CancelQueuedTest, testing::Values(0, 2, 4));

TEST_P(CancelQueuedTest, TakesItOutOfTheQueue) {
  for (const uint64_t size_bytes : {8, 20'000}) {
    TestNode node(NodeOptions{.request_limit = 64});
    const uint32_t filled = FillLane(node);
    std::vector<uint32_t> sends;
    for (uint32_t i = 0; i < 5; ++i) {
      sends.push_back(node[0].Isend(1, 7, Pattern(size_bytes, i)));
    }
    EXPECT_TRUE(node[0].Cancel(sends[GetParam()]));
    EXPECT_FALSE(node[0].Cancel(sends[GetParam()])) << "it is complete already";
    EXPECT_EQ(node.view(0).layout->queued_sends, 4U);
    EXPECT_EQ(node[0].Finish(sends[GetParam()]).error, ErrorCode::kCancelled);
    EXPECT_TRUE(IsReusable(*node.view(0).inbox.transfer(sends[GetParam()])))
        << "a cancelled RTS that nobody saw must not keep its transfer slot";
    // A sixth goes to the end of the queue, wherever the cancelled one was.
    sends.push_back(node[0].Isend(1, 7, Pattern(size_bytes, 5)));
    DrainFill(node, filled);
    for (uint32_t i = 0; i < 6; ++i) {
      if (i != GetParam()) {
        ASSERT_EQ(node[1].Receive(0, 7, 20'000).data, Pattern(size_bytes, i));
        ASSERT_EQ(node[0].Wait(sends[i]).error, ErrorCode::kOk);
      }
    }
    EXPECT_EQ(node.view(0).layout->queued_sends, 0U);
  }
}

TEST(RankEngineQueueTest, CancelsTheOnlyQueuedSend) {
  TestNode node;
  const uint32_t filled = FillLane(node);
  EXPECT_TRUE(node[0].Cancel(node[0].Isend(1, 7, "gone")));
  EXPECT_EQ(node.view(0).by_rank.peers[1].queue_first, 0U);
  EXPECT_EQ(node.view(0).by_rank.peers[1].queue_last, 0U);
  node[0].Isend(1, 7, "kept");
  DrainFill(node, filled);
  EXPECT_EQ(node[1].Receive(0, 7, 16).data, "kept");
}

TEST(RankEngineQueueTest, CancelsAPostedReceive) {
  TestNode node;
  const uint32_t first = node[1].Irecv(0, 7, 16);
  const uint32_t second = node[1].Irecv(0, 7, 16);
  EXPECT_TRUE(node[1].Cancel(first));
  EXPECT_EQ(node[1].Finish(first).error, ErrorCode::kCancelled);
  node[0].Isend(1, 7, "x");
  EXPECT_EQ(node[1].Wait(second).data, "x");
}

TEST(RankEngineQueueTest, CannotCancelWhatHasMatched) {
  TestNode node;
  const uint32_t landed = node[1].Irecv(0, 7, 16);
  const uint32_t transferring = node[1].Irecv(0, 8, 20'000);
  node[0].Isend(1, 7, "x");
  const uint32_t announced = node[0].Isend(1, 8, Pattern(20'000, 1));
  node[1].Progress();
  EXPECT_FALSE(node[0].Cancel(announced));
  EXPECT_FALSE(node[1].Cancel(landed));
  EXPECT_FALSE(node[1].Cancel(transferring));
  EXPECT_EQ(node[1].Wait(landed).data, "x");
  EXPECT_EQ(node[1].Wait(transferring).data, Pattern(20'000, 1));
}

TEST(RankEngineQueueTest, ProbeLeavesTheMessage) {
  TestNode node;
  ProbeResult result;
  EXPECT_EQ(node[1].engine().receives().Probe({0, shm::kAnySource, shm::kAnyTag}, &result),
            ErrorCode::kWouldBlock);
  node[0].Isend(1, 7, "first");
  node[0].Isend(1, 8, Pattern(20'000, 1));
  node[1].Progress();
  ASSERT_EQ(node[1].engine().receives().Probe({0, shm::kAnySource, shm::kAnyTag}, &result),
            ErrorCode::kOk);
  EXPECT_EQ(result.source, 0);
  EXPECT_EQ(result.tag, 7);
  EXPECT_EQ(result.size_bytes, 5U);
  ASSERT_EQ(node[1].engine().receives().Probe({0, 0, 8}, &result), ErrorCode::kOk);
  EXPECT_EQ(result.size_bytes, 20'000U);
  EXPECT_EQ(node[1].engine().receives().Probe({0, 0, 9}, &result), ErrorCode::kWouldBlock);
  EXPECT_EQ(node[1].engine().receives().Probe({1, 0, 8}, &result), ErrorCode::kWouldBlock);
  EXPECT_EQ(node[1].Receive(0, 7, 16).data, "first");
}

TEST(RankEngineQueueTest, ManyUnexpectedMessagesDoNotBlockTheAwaitedOne) {
#ifdef FERRY_STRESS
  constexpr uint32_t kMessages = 1'000'000;
#else
  constexpr uint32_t kMessages = 20'000;
#endif
  TestNode node(NodeOptions{.unexpected_limit = kMessages + 10});
  const uint32_t awaited = node[1].Irecv(0, 8, 16);
  for (uint32_t i = 0; i < kMessages; ++i) {
    const uint32_t send = node[0].Isend(1, 7, std::to_string(i));
    node[1].Progress();
    node[0].Finish(send);
  }
  node[0].Isend(1, 8, "awaited");
  EXPECT_EQ(node[1].Wait(awaited).data, "awaited");
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(node[1].Receive(0, 7, 16).data, std::to_string(i));
  }
}

TEST(RankEngineQueueTest, TooManyUnexpectedMessagesPoisonTheRank) {
  TestNode node(NodeOptions{.unexpected_limit = 65});
  for (uint32_t i = 0; i < 64; ++i) {
    node[0].Isend(1, 7, "x");
  }
  node.Settle();
  EXPECT_EQ(node[1].poison(), ErrorCode::kOk);
  node[0].Isend(1, 7, "one too many");
  node[1].Progress();
  EXPECT_EQ(node[1].poison(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(node[0].poison(), ErrorCode::kOk);
}

TEST(RankEngineQueueTest, TooManyPostedReceivesAreRefused) {
  TestNode node(NodeOptions{.unexpected_limit = 17});
  for (uint32_t i = 0; i < 16; ++i) {
    node[1].Irecv(0, 7, 16);
    EXPECT_EQ(node[1].start_error(), ErrorCode::kOk);
  }
  node[1].Irecv(0, 7, 16);
  EXPECT_EQ(node[1].start_error(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(node[1].poison(), ErrorCode::kOk);
}

}  // namespace
}  // namespace ferry::engine
