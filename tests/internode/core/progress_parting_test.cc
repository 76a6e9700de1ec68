// Two ranks that have lost a direct link, and begin anew with each other (CoreEnds::PartRanks).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kLong = 1 << 20;

class ProgressPartingTest : public PlaneTest {
 protected:
  // Ranks 0 and 1 are of one node, rank 2 is of the other one.
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Start({2, 1})); }
  void Part(uint32_t rank, uint32_t peer) { plane(NodeOf(rank)).PartRanks(kJob, rank, peer); }
  void Settle(uint32_t rank, uint32_t peer) {
    EXPECT_TRUE(Meanwhile([&] { return plane(NodeOf(rank)).AreParted(kJob, rank, peer); }));
  }
  bool AreRejoined(uint32_t rank, uint32_t peer) {
    return plane(NodeOf(rank)).AreRejoined(kJob, rank, peer);
  }
  void JoinBoth(uint32_t rank, uint32_t peer) {
    EXPECT_TRUE(Meanwhile([&] { return AreRejoined(rank, peer); }));
    EXPECT_TRUE(Meanwhile([&] { return AreRejoined(peer, rank); }));
  }
  // Each rank hears of it once: by what fails, or else by its next operation with the other one.
  void ExpectMessages(uint32_t from, uint32_t to, int32_t tag) {
    ErrorCode error = Carry(from, to, tag);
    if (error == ErrorCode::kLinkDown) {
      error = Carry(from, to, tag + 1);
    }
    EXPECT_EQ(error, ErrorCode::kOk);
  }
};

TEST_F(ProgressPartingTest, WhatTheTwoHaveUnderWayFailsAndOthersGoOn) {
  ASSERT_EQ(Carry(0, 2, 1), ErrorCode::kOk);
  ASSERT_EQ(Carry(2, 0, 1), ErrorCode::kOk);
  uint64_t word = 0;
  uint64_t other = 0;
  std::vector<std::byte> data(kLong);
  const uint32_t receive = rank(2).Receive(0, 5, Private(&word), sizeof(word));
  const uint32_t untouched = rank(2).Receive(1, 5, Private(&other), sizeof(other));
  const uint32_t announced = rank(0).SendFrom(2, 6, Private(data.data()), kLong);
  ProgressAll();
  Part(0, 2);
  Part(2, 0);
  EXPECT_EQ(WaitTogether(2, receive), ErrorCode::kLinkDown);
  EXPECT_EQ(WaitTogether(0, announced), ErrorCode::kLinkDown);
  const uint32_t refused = rank(0).SendFrom(2, 7, Private(data.data()), kLong);
  EXPECT_EQ(WaitTogether(0, refused), ErrorCode::kLinkDown);
  Settle(0, 2);
  Settle(2, 0);
  JoinBoth(0, 2);
  ExpectMessages(0, 2, 10);
  ExpectMessages(2, 0, 20);
  uint64_t sent = 7;
  const uint32_t send = rank(1).Send(2, 5, &sent, sizeof(sent));
  EXPECT_EQ(WaitTogether(2, untouched), ErrorCode::kOk);
  EXPECT_EQ(other, 7U);
  if (send != 0) {
    EXPECT_EQ(WaitTogether(1, send), ErrorCode::kOk);
  }
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
  EXPECT_TRUE(told_.Get(&Told::violations).empty());
}

// Messages that one has sent before it was parted come to the other one too late.
TEST_F(ProgressPartingTest, MessagesOfBeforeAreDroppedAndCostNoCredit) {
  for (int round = 0; round < 3; ++round) {
    Part(2, 0);
    uint64_t word = 99;
    for (int32_t i = 0; i < 20; ++i) {
      (void)rank(0).Send(2, 3, &word, sizeof(word));  // it knows of nothing yet
    }
    Settle(2, 0);
    EXPECT_FALSE(AreRejoined(2, 0));  // the other one may have said more
    Part(0, 2);
    Settle(0, 2);
    JoinBoth(0, 2);
    ExpectMessages(0, 2, 10);
    ExpectMessages(2, 0, 20);
    for (int32_t i = 0; i < 200; ++i) {  // more than there is credit for
      ASSERT_EQ(Carry(0, 2, 30), ErrorCode::kOk) << i;
      ASSERT_EQ(Carry(2, 0, 30), ErrorCode::kOk) << i;
    }
    const uint32_t stale = rank(2).Receive(0, 3, Private(&word), sizeof(word));
    ProgressAll();
    EXPECT_FALSE(rank(2).Test(stale));
    EXPECT_TRUE(rank(2).Cancel(stale));
    EXPECT_TRUE(Meanwhile([&] { return rank(2).Test(stale); }));
  }
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

// One of the two is joined first, and sends at once. A rank that gets a message can answer it.
TEST_F(ProgressPartingTest, WhatTheFirstOneSendsIsKeptAndCanBeAnswered) {
  std::vector<std::byte> source(kLong, std::byte{5});
  std::vector<std::byte> destination(kLong);
  for (int round = 0; round < 3; ++round) {
    Part(2, 0);
    Settle(2, 0);
    Part(0, 2);
    Settle(0, 2);
    EXPECT_TRUE(Meanwhile([&] { return AreRejoined(0, 2); }));
    uint64_t word = 7;
    uint64_t found = 0;
    for (bool is_told = false; !is_told;) {  // of the cut, by its first operation
      const uint32_t send = rank(0).Send(2, 3, &word, sizeof(word));
      is_told = send == 0 || WaitTogether(0, send) == ErrorCode::kOk;
    }
    const uint32_t announced = rank(0).SendFrom(2, 6, Private(source.data()), kLong);
    ProgressAll();
    EXPECT_TRUE(Meanwhile([&] {  // it is told of the cut, too, until it is joined
      return WaitTogether(2, rank(2).Receive(0, 3, Private(&found), sizeof(found))) ==
             ErrorCode::kOk;
    }));
    EXPECT_EQ(found, 7U);
    EXPECT_TRUE(AreRejoined(2, 0));
    EXPECT_EQ(Carry(2, 0, 4), ErrorCode::kOk);
    const uint32_t received = rank(2).Receive(0, 6, Private(destination.data()), kLong);
    EXPECT_EQ(WaitTogether(2, received), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, announced), ErrorCode::kOk);
    EXPECT_EQ(destination, source);
    ExpectMessages(2, 0, 20);
    std::fill(destination.begin(), destination.end(), std::byte{0});
  }
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

TEST_F(ProgressPartingTest, ATransferUnderWayEnds) {
  std::vector<std::byte> source(kLong);
  std::vector<std::byte> destination(kLong);
  for (int round = 0; round < 10; ++round) {
    const Passage passage = Begin(0, 2, Private(source.data()), Private(destination.data()), kLong);
    for (int i = 0; i < round; ++i) {
      ProgressAll();
    }
    Part(2, 0);
    Part(0, 2);
    // It may have been through.
    const ErrorCode received = WaitTogether(2, passage.receive);
    const ErrorCode sent = WaitTogether(0, passage.send);
    EXPECT_TRUE(received == ErrorCode::kLinkDown || received == ErrorCode::kOk);
    EXPECT_TRUE(sent == ErrorCode::kLinkDown || sent == ErrorCode::kOk);
    Settle(2, 0);
    Settle(0, 2);
    JoinBoth(0, 2);
    ExpectMessages(0, 2, 10);
    ExpectMessages(2, 0, 20);
  }
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

TEST_F(ProgressPartingTest, ARankThatDiesMeanwhileIsDead) {
  Part(0, 2);
  plane(0).RankEnded(kJob, 2, ErrorCode::kPeerDied);
  Settle(0, 2);
  EXPECT_TRUE(AreRejoined(0, 2));
  uint64_t word = 0;
  // If it has noticed that it was parted, it hears of that first.
  ErrorCode error = ErrorCode::kLinkDown;
  for (int i = 0; i < 2 && error == ErrorCode::kLinkDown; ++i) {
    const uint32_t send = rank(0).Send(2, 3, &word, sizeof(word));
    ASSERT_NE(send, 0U);
    error = WaitTogether(0, send);
  }
  EXPECT_EQ(error, ErrorCode::kPeerDied);
}

TEST_F(ProgressPartingTest, ACutOfTheNodesIsTheEndOfIt) {
  Part(0, 2);
  Part(2, 0);
  Cut();
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  ExpectMessages(0, 2, 10);
  ExpectMessages(2, 0, 20);
  EXPECT_TRUE(AreRejoined(0, 2));  // they are
}

TEST_F(ProgressPartingTest, UnknownOnesAreIgnored) {
  Part(0, 1);   // of one node
  Part(0, 17);  // no rank
  plane(0).PartRanks("other", 0, 2);
  EXPECT_TRUE(plane(0).AreParted("other", 0, 2));
  EXPECT_TRUE(plane(0).AreRejoined("other", 0, 2));
  EXPECT_EQ(Carry(0, 2, 1), ErrorCode::kOk);
}

}  // namespace
}  // namespace ferry::daemon
