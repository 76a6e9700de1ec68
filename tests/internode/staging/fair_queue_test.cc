#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "internode/staging/staging_pool.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kBlock = 65536;

// `blocks` that flows hold for a while, and get again in the order of the queue.
class Contest {
 public:
  explicit Contest(size_t blocks, progress::FlowWeights weights = {})
      : queue_(std::move(weights)), free_(blocks) {}

  // The flow has so many transfers that each want one block after the other.
  void Join(uint32_t flow, uint32_t transfers, uint64_t bytes = kBlock) {
    bytes_[flow] = bytes;
    for (uint32_t i = 0; i < transfers; ++i) {
      queue_.Push(flow, flow);
    }
  }
  // Gives out what is free, then takes back the block that was lent for longest.
  void Step() {
    while (free_ > 0 && !queue_.empty()) {
      const auto flow = static_cast<uint32_t>(queue_.Pop());
      queue_.Charge(flow, bytes_[flow]);
      moved_[flow] += bytes_[flow];
      lent_.push_back(flow);
      --free_;
    }
    queue_.Push(lent_.front(), lent_.front());
    lent_.pop_front();
    ++free_;
  }
  void Run(int steps) {
    moved_.clear();
    for (int i = 0; i < steps; ++i) {
      Step();
    }
  }
  double Moved(uint32_t flow) { return static_cast<double>(moved_[flow]); }

 private:
  progress::FairQueue queue_;
  size_t free_;
  std::map<uint32_t, uint64_t> bytes_;
  std::map<uint32_t, uint64_t> moved_;
  std::deque<uint32_t> lent_;
};

TEST(FairQueueTest, AFlowIsFirstComeFirstServed) {
  progress::FairQueue queue;
  for (const uint64_t id : {7, 3, 9}) {
    queue.Push(5, id);
  }
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_THAT(queue.PopAll(), ElementsAre(7, 3, 9));
  EXPECT_TRUE(queue.empty());
  EXPECT_THAT(queue.PopAll(), IsEmpty());
}

TEST(FairQueueTest, ManyTransfersOfOneFlowDoNotHoldUpAnother) {
  Contest contest(4);
  contest.Join(0, 1000);
  contest.Join(1, 4);
  contest.Run(400);
  EXPECT_NEAR(contest.Moved(0) / contest.Moved(1), 1, 0.05);
}

TEST(FairQueueTest, FlowsMoveBytesByTheirWeights) {
  Contest contest(8, {{0, 4}, {2, 2}});
  for (const uint32_t flow : {0, 1, 2}) {
    contest.Join(flow, 20 * (flow + 1));
  }
  contest.Run(700);
  EXPECT_NEAR(contest.Moved(0) / contest.Moved(1), 4, 0.2);
  EXPECT_NEAR(contest.Moved(2) / contest.Moved(1), 2, 0.1);
}

TEST(FairQueueTest, ShortBlocksCountByTheirLength) {
  Contest contest(4);
  contest.Join(0, 50, kBlock / 4);
  contest.Join(1, 50, kBlock);
  contest.Run(500);
  EXPECT_NEAR(contest.Moved(0) / contest.Moved(1), 1, 0.05);
}

TEST(FairQueueTest, WhoComesLateIsOwedNothingAndOwesNothing) {
  Contest contest(4);
  contest.Join(0, 10);
  contest.Run(1000);
  contest.Join(1, 10);
  contest.Run(100);
  EXPECT_NEAR(contest.Moved(0), contest.Moved(1), 5 * kBlock);
}

TEST(FairQueueTest, WhatIsTakenWithoutWaitingCountsToo) {
  progress::FairQueue queue;
  queue.Charge(1, kBlock);
  queue.Charge(0, kBlock);
  queue.Charge(0, kBlock);
  queue.Push(0, 100);
  queue.Push(1, 101);
  EXPECT_EQ(queue.Pop(), 101U);
}

TEST(FairQueueTest, NobodyWaitsForEver) {
  progress::FairQueue queue(progress::FlowWeights{{0, 100}});
  queue.Charge(1, kBlock);
  queue.Push(1, 1);
  int before = 0;
  for (queue.Push(0, 0); queue.Pop() != 1; ++before) {
    queue.Charge(0, kBlock);
    queue.Push(0, 0);
  }
  EXPECT_NEAR(before, 100, 2);
}

TEST(FairQueueTest, SharesAmongThoseWhoHoldOrWant) {
  progress::FairQueue queue(progress::FlowWeights{{0, 3}});
  EXPECT_EQ(queue.ShareOf(0, 8), 8U);
  queue.Hold(0);
  EXPECT_EQ(queue.ShareOf(1, 8), 2U);
  queue.Push(1, 1);
  EXPECT_EQ(queue.ShareOf(0, 8), 6U);
  queue.Push(2, 2);
  EXPECT_EQ(queue.ShareOf(0, 10), 6U);
  EXPECT_EQ(queue.ShareOf(2, 10), 2U);
  queue.Drop(0);
  EXPECT_EQ(queue.ShareOf(2, 10), 5U);
}

// Those who may go keep their turns, and the others their places.
TEST(FairQueueTest, WhoseNodeHasItsPartHoldsUpNobodyElse) {
  progress::FairQueue queue;
  const progress::SlotFlow stuck;
  const progress::SlotFlow other;
  queue.Push(1, 11, &stuck);
  queue.Push(1, 12, &other);
  queue.Push(2, 21, &stuck);
  queue.Push(2, 22, &other);
  const auto is_other = [&](const progress::SlotFlow* part) { return part == &other; };
  EXPECT_EQ(queue.PopIf(is_other), 12U);
  queue.Charge(1, kBlock);
  EXPECT_EQ(queue.PopIf(is_other), 22U);
  EXPECT_EQ(queue.PopIf(is_other), std::nullopt);
  EXPECT_THAT(queue.PopAll(), ElementsAre(21, 11));
}

}  // namespace
}  // namespace ferry::daemon
