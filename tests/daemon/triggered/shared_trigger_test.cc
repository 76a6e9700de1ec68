// Ready sends that start together on a NIC with deferred work: one counter, and one addition to it,
// fires the writes of all of them.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "daemon/triggered/deferred_nics.h"
#include "shm/atomic.h"
#include "tests/daemon/triggered/nic_nodes.h"

namespace ferry::daemon {
namespace {

constexpr size_t kPairs = 8;

class SharedTriggerTest : public testing::Test {
 protected:
  void Make(size_t pairs, const NodeSettings& of_a = {}) {
    nodes_ = std::make_unique<NicNodes>(of_a);
    for (size_t i = 0; i < pairs; ++i) {
      nodes_->Add(4096, /*is_ready=*/true);
    }
    ASSERT_TRUE(nodes_->Settle());
  }
  NicNode& sender() { return *nodes_->a; }
  const transport::DeferredStatistics& statistics() { return sender().deferred().statistics(); }

  std::vector<size_t> All() {
    std::vector<size_t> all(nodes_->sends.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  // The doorbell counts all their starts up to `until`.
  void Share(const std::vector<size_t>& pairs, uint64_t until = UINT64_MAX) {
    for (const size_t i : pairs) {
      nodes_->sends[i].Share(NicNodes::kDoorbell, /*base=*/0, until);
    }
  }
  void Want(const std::vector<size_t>& pairs, uint64_t round) {
    for (const size_t i : pairs) {
      nodes_->receives[i].Start(round);
      nodes_->Fill(i, round);
      nodes_->sends[i].Announce(round);
    }
    sender().Poll();
  }
  void Ring(uint64_t round) {
    shm::StoreRelease(nodes_->doorbell().value, round);
    sender().Poll();  // each one looks, one of them adds
  }
  void ExpectArrived(const std::vector<size_t>& pairs, uint64_t round) {
    for (const size_t i : pairs) {
      ASSERT_NO_FATAL_FAILURE(nodes_->ExpectArrives(i, round));
      ASSERT_TRUE(nodes_->PollUntil([&] { return nodes_->sends[i].pair().rounds >= round; }));
    }
  }

  std::unique_ptr<NicNodes> nodes_;
};

TEST_F(SharedTriggerTest, OneCounterAndOneAdditionForAll) {
  constexpr uint64_t kRounds = 10;
  Make(kPairs);
  const uint64_t counters_before = statistics().counters;
  Share(All());
  for (uint64_t round = 1; round <= kRounds; ++round) {
    Want(All(), round);
    EXPECT_EQ(statistics().rings, round - 1);
    Ring(round);
    EXPECT_EQ(statistics().rings, round);
    ExpectArrived(All(), round);
  }
  EXPECT_EQ(statistics().counters, counters_before + 1);
  EXPECT_EQ(sender().counts().on_nic, 2 * kPairs * kRounds);
  EXPECT_EQ(sender().counts().in_software, 0U);
}

TEST_F(SharedTriggerTest, OneForEachWhereTheyStartAlone) {
  Make(kPairs);
  const uint64_t counters_before = statistics().counters;
  Want(All(), 1);
  for (const size_t i : All()) {
    nodes_->sends[i].Start(1);
  }
  ExpectArrived(All(), 1);
  EXPECT_EQ(statistics().counters, counters_before + kPairs);
  EXPECT_EQ(statistics().rings, kPairs);
}

// Sends go from a shared start to their own and back, with rounds armed ahead of each other.
TEST_F(SharedTriggerTest, SendsComeAndGo) {
  Make(3);
  Share(All());
  Want(All(), 1);
  Ring(1);
  // The next round is armed ahead while round 1 is under way: its own start follows a shared one.
  Share({0}, /*until=*/1);
  for (const size_t i : All()) {
    nodes_->sends[i].Announce(2);  // the NIC still has their buffers, for round 1
  }
  sender().Poll();
  ExpectArrived(All(), 1);
  Want(All(), 2);
  Ring(2);
  ExpectArrived({1, 2}, 2);
  EXPECT_EQ(nodes_->sends[0].Done(), 1U) << "it has not been started";
  nodes_->sends[0].Start(2);
  ExpectArrived({0}, 2);
  Share(All());
  Want(All(), 3);
  Ring(3);
  ExpectArrived(All(), 3);
}

// There are more sends than entries: those on the NIC have one trigger, the others the same start.
TEST_F(SharedTriggerTest, BeyondTheEntriesInSoftware) {
  Make(50, {.entries = 16});
  Share(All());
  for (uint64_t round = 1; round <= 5; ++round) {
    Want(All(), round);
    EXPECT_LE(sender().deferred().in_use(), 16U);
    Ring(round);
    ExpectArrived(All(), round);
  }
  EXPECT_GT(sender().counts().on_nic, 0U);
  EXPECT_GT(sender().counts().in_software, 0U);
  EXPECT_EQ(sender().pool().in_use(), 0U);
}

// ---- One of them fails --------------------------------------------------------------------------

// Armed operations: a write and an increment for each pair.
TEST_F(SharedTriggerTest, WriteThatTheNicLosesFailsThatSendOnly) {
  // Long enough for those that are not lost, also on a busy machine.
  Make(3, {.fault = "nic.arm:3:lose", .timeout_ns = 3'000'000'000});
  Share(All());
  Want(All(), 1);
  Ring(1);
  ExpectArrived({0, 2}, 1);
  ASSERT_TRUE(nodes_->PollUntil([&] { return HasFailed(nodes_->sends[1].Done()); }));
  EXPECT_EQ(sender().failed.at(2), ErrorCode::kTimeout);
  for (uint64_t round = 2; round <= 4; ++round) {
    Want({0, 2}, round);
    Ring(round);
    ExpectArrived({0, 2}, round);
  }
  EXPECT_EQ(sender().pool().in_use(), 0U);
}

// The operations that a failed send has armed stay in the NIC until the others' rounds are over,
// and count.
TEST_F(SharedTriggerTest, WhatAFailedSendHasArmedGoesWithTheCounter) {
  Make(3);
  Share(All());
  Want(All(), 1);
  const uint32_t armed = sender().deferred().in_use();
  EXPECT_EQ(armed, 6U);
  sender().Fail(2, ErrorCode::kPeerDied);
  sender().Poll();
  EXPECT_EQ(sender().deferred().in_use(), armed) << "the NIC holds them still";
  nodes_->b->Fail(2, ErrorCode::kPeerDied);
  ASSERT_TRUE(nodes_->PollUntil([&] { return nodes_->receives[1].message.use_count() == 2; }))
      << "its window goes: the write hits nothing";
  Ring(1);
  ExpectArrived({0, 2}, 1);
  ASSERT_TRUE(nodes_->PollUntil([&] { return sender().deferred().in_use() == 0; }));
  EXPECT_FALSE(nodes_->Arrived(1));
  Want({0, 2}, 2);
  Ring(2);
  ExpectArrived({0, 2}, 2);
  EXPECT_TRUE(HasFailed(nodes_->sends[1].Done()));
  for (const uint64_t number : {3, 1, 2}) {
    sender().Close(number);
  }
  ASSERT_TRUE(nodes_->PollUntil([&] { return sender().leaving.empty(); }));
}

TEST_F(SharedTriggerTest, SendsThatAreFreedInAnyOrderLeaveNothing) {
  for (const std::vector<uint64_t>& order :
       {std::vector<uint64_t>{1, 2, 3}, {3, 2, 1}, {2, 1, 3}}) {
    Make(3);
    Share(All());
    Want(All(), 1);
    Ring(1);
    ExpectArrived(All(), 1);
    Want(All(), 2);  // armed, and never started
    EXPECT_EQ(sender().deferred().in_use(), 6U);
    for (const uint64_t number : order) {
      sender().Close(number);
      sender().Poll();
    }
    ASSERT_TRUE(nodes_->PollUntil([&] {
      return sender().deferred().in_use() == 0 && statistics().counters == 0 &&
             sender().leaving.empty();
    }));
    EXPECT_EQ(nodes_->sends[0].Done(), 1U);
  }
}

}  // namespace
}  // namespace ferry::daemon
