// Ready sends that start together on a NIC with deferred work: one counter, and one addition to it,
// fires the writes of all of them.
#include "daemon/triggered/shared_trigger.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/clock.h"
#include "daemon/triggered/nic_channel.h"
#include "shm/atomic.h"
#include "tests/daemon/triggered/nic_pairs.h"

namespace ferry::daemon {
namespace {

constexpr size_t kPairs = 8;

class SharedTriggerTest : public testing::Test {
 protected:
  void Make(const Options& options) {
    pairs_ = std::make_unique<Pairs>(options);
    triggers_ = std::make_unique<SharedTriggers>(deferred());
  }
  static Options Ready(size_t channels = kPairs) { return {.channels = channels, .ready = true}; }
  transport::DeferredWork& deferred() { return *pairs_->sender_->transport().deferred_work(); }
  const transport::DeferredStatistics& statistics() { return deferred().statistics(); }

  std::vector<size_t> All() {
    std::vector<size_t> all(pairs_->options_.channels);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  // The doorbell counts all their starts from `base` on.
  void Share(const std::vector<size_t>& channels, uint64_t base = 0, uint64_t until = UINT64_MAX) {
    for (const size_t i : channels) {
      pairs_->sends[i]->Share(triggers_->Hold(&doorbell_), {&doorbell_, base, until});
    }
  }
  void Want(const std::vector<size_t>& channels, uint64_t round) {
    for (const size_t i : channels) {
      pairs_->receives[i]->RingTo(round);
      pairs_->Fill(i, round);
      pairs_->sends[i]->Want(round);
    }
  }
  void Ring(const std::vector<size_t>& channels, uint64_t round, uint64_t base = 0) {
    shm::StoreRelease(doorbell_.value, round - base);
    for (const size_t i : channels) {  // each one looks, one of them adds
      triggers_->Hold(&doorbell_)->Ring();
      pairs_->sends[i]->RingTo(round);
    }
  }
  void ExpectArrived(const std::vector<size_t>& channels, uint64_t round) {
    for (const size_t i : channels) {
      ASSERT_TRUE(pairs_->PollUntil([&] {
        return pairs_->Done(i, round) && pairs_->sends[i]->rounds_done() >= round;
      })) << "channel "
          << i << " round " << round;
      EXPECT_TRUE(pairs_->Arrived(i)) << "channel " << i << " round " << round;
      EXPECT_EQ(pairs_->send_memory_.DoneOf(i), round);
      EXPECT_EQ(pairs_->receive_memory_.DoneOf(i), round);
    }
  }

  shm::CounterLayout doorbell_{};
  std::unique_ptr<Pairs> pairs_;
  std::unique_ptr<SharedTriggers> triggers_;
};

TEST_F(SharedTriggerTest, OneCounterAndOneAdditionForAll) {
  constexpr uint64_t kRounds = 10;
  Make(Ready());
  const uint64_t counters_before = statistics().counters;
  Share(All());
  for (uint64_t round = 1; round <= kRounds; ++round) {
    Want(All(), round);
    EXPECT_EQ(statistics().rings, round - 1);
    Ring(All(), round);
    EXPECT_EQ(statistics().rings, round);
    ExpectArrived(All(), round);
  }
  EXPECT_EQ(statistics().counters, counters_before + 1);
  EXPECT_EQ(pairs_->sender_->pool().counts().on_nic, 2 * kPairs * kRounds);
  EXPECT_EQ(pairs_->sender_->pool().counts().in_software, 0U);
}

TEST_F(SharedTriggerTest, OneForEachWhereTheyStartAlone) {
  Make(Ready());
  const uint64_t counters_before = statistics().counters;
  Want(All(), 1);
  for (const size_t i : All()) {
    pairs_->sends[i]->RingTo(1);
  }
  ExpectArrived(All(), 1);
  EXPECT_EQ(statistics().counters, counters_before + kPairs);
  EXPECT_EQ(statistics().rings, kPairs);
}

// Sends go from a shared start to their own and back, with rounds armed ahead of each other.
TEST_F(SharedTriggerTest, SendsComeAndGo) {
  Make(Ready(3));
  Share(All());
  Want({0, 1, 2}, 1);
  Ring({0, 1, 2}, 1);
  // The next round is armed ahead while round 1 is under way: its own start follows a shared one.
  Share({0}, 0, 1);
  pairs_->sends[1]->Want(2);  // the NIC still has their buffers, for round 1
  pairs_->sends[2]->Want(2);
  ExpectArrived({0, 1, 2}, 1);
  Want({0, 1, 2}, 2);
  Ring({1, 2}, 2);
  ExpectArrived({1, 2}, 2);
  EXPECT_EQ(pairs_->send_memory_.DoneOf(0), 1U) << "it has not been started";
  pairs_->sends[0]->RingTo(2);
  ExpectArrived({0}, 2);
  Share({0, 1, 2}, 0);
  Want({0, 1, 2}, 3);
  Ring({0, 1, 2}, 3);
  ExpectArrived({0, 1, 2}, 3);
}

// There are more sends than entries: those on the NIC have one trigger, the others the same start.
TEST_F(SharedTriggerTest, BeyondTheEntriesInSoftware) {
  Options options = Ready(50);
  options.entries = 16;
  Make(options);
  Share(All());
  for (uint64_t round = 1; round <= 5; ++round) {
    Want(All(), round);
    EXPECT_LE(deferred().in_use(), 16U);
    Ring(All(), round);
    ExpectArrived(All(), round);
  }
  EXPECT_GT(pairs_->sender_->pool().counts().on_nic, 0U);
  EXPECT_GT(pairs_->sender_->pool().counts().in_software, 0U);
  EXPECT_EQ(pairs_->sender_->pool().in_use(), 0U);
}

// ---- One of them fails

TEST_F(SharedTriggerTest, WriteThatTheNicLosesFailsThatSendOnly) {
  Options options = Ready(3);
  options.timeout_ns = 300'000'000;
  options.sender_fault =
      "nic.arm:3:lose";  // armed operations: a write and an increment for each channel
  Make(options);
  Share(All());
  Want(All(), 1);
  Ring(All(), 1);
  ExpectArrived({0, 2}, 1);
  ASSERT_TRUE(pairs_->PollUntil([&] { return HasFailed(pairs_->send_memory_.DoneOf(1)); }));
  EXPECT_EQ(pairs_->sends[1]->error(), ErrorCode::kTimeout);
  for (uint64_t round = 2; round <= 4; ++round) {
    Want({0, 2}, round);
    Ring({0, 2}, round);
    ExpectArrived({0, 2}, round);
  }
  EXPECT_EQ(pairs_->sender_->pool().in_use(), 0U);
}

// The operations that a failed send has armed stay in the NIC until the others' rounds are over,
// and count.
TEST_F(SharedTriggerTest, WhatAFailedSendHasArmedGoesWithTheCounter) {
  Make(Ready(3));
  Share(All());
  Want(All(), 1);
  const uint32_t armed = deferred().in_use();
  EXPECT_EQ(armed, 6U);
  const transport::RegionHandle memory = pairs_->send_memory_.data_region.handle;
  pairs_->sends[1]->Fail(ErrorCode::kPeerDied);
  pairs_->sender_->Poll();
  EXPECT_EQ(deferred().in_use(), armed) << "the NIC holds them still";
  pairs_->receives[1]->Fail(ErrorCode::kPeerDied);  // its window is gone: the write hits nothing
  Ring({0, 2}, 1);
  ExpectArrived({0, 2}, 1);
  ASSERT_TRUE(pairs_->PollUntil([&] { return deferred().in_use() == 0; }));
  EXPECT_FALSE(pairs_->Arrived(1));
  Want({0, 2}, 2);
  Ring({0, 2}, 2);
  ExpectArrived({0, 2}, 2);
  EXPECT_TRUE(HasFailed(pairs_->send_memory_.DoneOf(1)));
  for (const size_t i : {2, 0, 1}) {
    pairs_->sender_->Remove(pairs_->sends[i]);
  }
  ASSERT_TRUE(pairs_->PollUntil(
      [&] { return pairs_->sender_->transport().DeregisterMemory(memory).ok(); }));
}

TEST_F(SharedTriggerTest, SendsThatAreFreedInAnyOrderLeaveNothing) {
  for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    Make(Ready(3));
    Share(All());
    Want(All(), 1);
    Ring(All(), 1);
    ExpectArrived(All(), 1);
    Want(All(), 2);  // armed, and never started
    EXPECT_EQ(deferred().in_use(), 6U);
    for (const size_t i : order) {
      pairs_->sender_->Remove(pairs_->sends[i]);
      pairs_->sender_->Poll();
    }
    ASSERT_TRUE(
        pairs_->PollUntil([&] { return deferred().in_use() == 0 && statistics().counters == 0; }));
    EXPECT_EQ(pairs_->send_memory_.DoneOf(0), 1U);
    shm::StoreRelease(doorbell_.value, 0);
  }
}

}  // namespace
}  // namespace ferry::daemon
