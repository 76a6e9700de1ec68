#include "transports/api/operation_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::transport {
namespace {

struct Peer;
struct Region {
  uint32_t users = 0;
};
struct Operation : OperationRecord<Peer, Region> {};
struct Peer : OperationPeer<Operation> {};
using Table = OperationTable<Operation>;

class OperationTableTest : public testing::Test {
 protected:
  Operation* Accept(Peer* peer, uint64_t context, uint64_t now_ns = 0) {
    Operation* op = nullptr;
    EXPECT_EQ(table_.Accept(peer, &region_, context, now_ns, &op), ErrorCode::kOk);
    return op;
  }
  ErrorCode TryAccept(Peer* peer) {
    Operation* op = nullptr;
    return table_.Accept(peer, &region_, 0, 0, &op);
  }
  std::vector<uint64_t> TakeAllEnded(ErrorCode expected) {
    std::vector<uint64_t> contexts;
    Table::Ended ended;
    while (table_.TakeEnded(&ended)) {
      EXPECT_EQ(ended.code, expected);
      contexts.push_back(ended.context);
    }
    return contexts;
  }

  Statistics statistics_;
  Peer a_;
  Peer b_;
  Region region_;
  Table table_{{.slots = 6, .outstanding = 4, .outstanding_per_peer = 3, .timeout_ns = 100},
               &statistics_};
};

TEST_F(OperationTableTest, BoundsPerPeerAndInAll) {
  Operation* first = Accept(&a_, 1);
  Accept(&a_, 2);
  Accept(&a_, 3);
  EXPECT_EQ(TryAccept(&a_), ErrorCode::kWouldBlock);
  Accept(&b_, 4);  // the last of all,
  Accept(&b_, 5);  // then up to its part
  Accept(&b_, 6);
  EXPECT_EQ(TryAccept(&b_), ErrorCode::kWouldBlock);
  EXPECT_EQ(statistics_.would_block, 2U);
  table_.Finish(first);
  EXPECT_EQ(TryAccept(&b_), ErrorCode::kWouldBlock);
  Accept(&a_, 7);
}

// However many peers take nothing: each of the others can have some operations under way.
TEST_F(OperationTableTest, PeersThatTakeNothingLeaveTheOthersTheirPart) {
  Table table({.slots = 64, .outstanding = 16, .outstanding_per_peer = 12, .timeout_ns = 100},
              &statistics_);
  const auto accepted = [&](Peer* peer) {
    uint32_t count = 0;
    for (Operation* op = nullptr; table.Accept(peer, &region_, 0, 0, &op) == ErrorCode::kOk;) {
      ++count;
    }
    return count;
  };
  std::vector<Peer> silent(8);
  EXPECT_EQ(accepted(&silent[0]), 12U);  // no other peer wants any
  EXPECT_EQ(accepted(&silent[1]), 8U);   // the other 4, and up to its half
  for (size_t i = 2; i < silent.size(); ++i) {
    EXPECT_GE(accepted(&silent[i]), kLeastOfPeer) << i;
  }
  Peer other;
  Operation* op = nullptr;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(table.Accept(&other, &region_, 0, 0, &op), ErrorCode::kOk);
    table.Finish(op);
  }
}

TEST_F(OperationTableTest, CountsTheUsersOfARegion) {
  Operation* op = Accept(&a_, 1);
  EXPECT_EQ(region_.users, 1U);
  table_.Finish(op);
  EXPECT_EQ(region_.users, 0U);
}

TEST_F(OperationTableTest, KeepsTheOrderOfAPeersQueue) {
  Operation* ops[] = {Accept(&a_, 1), Accept(&a_, 2), Accept(&a_, 3)};
  for (Operation* op : ops) {
    table_.Enqueue(op);
  }
  EXPECT_TRUE(table_.AnyWaiting());
  for (Operation* op : ops) {
    EXPECT_EQ(&a_.queue.front(), op);
    table_.Dequeue(op);
  }
  EXPECT_FALSE(table_.AnyWaiting());
}

TEST_F(OperationTableTest, QueuedOperationFailsAsUnreachableAndHeldOneAsTimeout) {
  table_.Enqueue(Accept(&a_, 1));
  EXPECT_EQ(table_.EndOverdue(99), nullptr);
  EXPECT_FALSE(table_.AnyEnded());
  EXPECT_NE(table_.EndOverdue(100), nullptr);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kNodeUnreachable), std::vector<uint64_t>{1});
  EXPECT_FALSE(table_.AnyWaiting());

  Operation* held = Accept(&a_, 2, 200);
  held->held = true;
  EXPECT_EQ(table_.EndOverdue(300), held);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kTimeout), std::vector<uint64_t>{2});
  EXPECT_EQ(statistics_.timeouts, 2U);
}

TEST_F(OperationTableTest, AbandonedOperationKeepsItsSlotAndRegionUntilItsLateEnd) {
  Operation* op = Accept(&a_, 1);
  op->held = true;
  table_.End(op, ErrorCode::kPeerDied);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kPeerDied), std::vector<uint64_t>{1});
  EXPECT_EQ(statistics_.abandoned, 1U);
  EXPECT_EQ(region_.users, 1U);
  EXPECT_NE(Accept(&a_, 2), op);
  op->held = false;
  table_.OnLateEnd(op);
  EXPECT_EQ(statistics_.abandoned, 0U);
  EXPECT_EQ(region_.users, 1U);  // context 2
  EXPECT_TRUE(TakeAllEnded(ErrorCode::kOk).empty());
}

TEST_F(OperationTableTest, LateEndBeforeTheReportIsReportedOnce) {
  Operation* op = Accept(&a_, 1);
  op->held = true;
  table_.End(op, ErrorCode::kPeerDied);
  op->held = false;
  table_.OnLateEnd(op);
  EXPECT_EQ(region_.users, 1U);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kPeerDied), std::vector<uint64_t>{1});
  EXPECT_EQ(region_.users, 0U);
  EXPECT_EQ(statistics_.abandoned, 0U);
}

TEST_F(OperationTableTest, WhatEndsWellIsReportedAndNoError) {
  Operation* op = Accept(&a_, 1);
  table_.Enqueue(op);
  table_.End(op, ErrorCode::kOk);
  EXPECT_EQ(a_.outstanding, 0U);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kOk), std::vector<uint64_t>{1});
  EXPECT_EQ(statistics_.errors, 0U);
  EXPECT_EQ(table_.At(table_.IndexOf(op)), op);
  EXPECT_EQ(table_.At(6), nullptr);
}

TEST_F(OperationTableTest, SaysWhenAllSlotsAreAbandoned) {
  for (uint64_t context = 0; context < 6; context++) {
    Operation* op = Accept(context % 2 == 0 ? &a_ : &b_, context);
    op->held = true;
    table_.End(op, ErrorCode::kTimeout);
    TakeAllEnded(ErrorCode::kTimeout);
  }
  EXPECT_EQ(TryAccept(&a_), ErrorCode::kLimitExceeded);
}

TEST_F(OperationTableTest, EndAllSparesOtherPeers) {
  Accept(&a_, 1);
  table_.Enqueue(Accept(&b_, 2));
  table_.Enqueue(Accept(&a_, 3));
  table_.EndAll(&a_, ErrorCode::kCancelled);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kCancelled), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(a_.outstanding, 0U);
  EXPECT_EQ(b_.outstanding, 1U);
  EXPECT_TRUE(a_.queue.empty());
  EXPECT_FALSE(b_.queue.empty());
}

TEST_F(OperationTableTest, RenewedDeadlineGoesBehindTheOthers) {
  Operation* first = Accept(&a_, 1, 0);
  Accept(&a_, 2, 10);
  EXPECT_EQ(table_.NextDeadlineNs(), 100U);
  table_.RenewDeadline(first, 50);
  EXPECT_EQ(table_.NextDeadlineNs(), 110U);
  EXPECT_NE(table_.EndOverdue(110), nullptr);
  EXPECT_EQ(table_.EndOverdue(110), nullptr);
  EXPECT_EQ(TakeAllEnded(ErrorCode::kNodeUnreachable), std::vector<uint64_t>{2});
  EXPECT_EQ(table_.NextDeadlineNs(), 150U);
}

TEST_F(OperationTableTest, TimeWithoutCallsDoesNotCount) {
  table_.OnCall(0);
  Accept(&a_, 1, 0);
  table_.OnCall(40);
  EXPECT_EQ(table_.NextDeadlineNs(), 100U);
  table_.OnCall(1040);
  EXPECT_EQ(table_.NextDeadlineNs(), 1100U);
  table_.OnCall(500);  // a clock that goes back changes nothing
  EXPECT_EQ(table_.NextDeadlineNs(), 1100U);
}

}  // namespace
}  // namespace ferry::transport
