// The work of one turn of the daemon for a ring, whatever the ring asks for.
//
// There is no network, so whatever is asked of ranks of the other node is held; or that rank is
// said to be dead, and it fails at once.
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "daemon/device_rings/ring_operations.h"
#include "tests/internode/core/progress_parts_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNowNs = 1;
constexpr uint32_t kPeers = 1000;
constexpr uint32_t kBudget = 256;  // of what is held, in one turn

// Rank 0, which has the ring, is alone on its node.
class RingTurnsTest : public ProgressPartsTest {
 protected:
  void SetUp() override {
    ServeRank(kPeers);
    ring_ = std::make_unique<RingOperations>(
        one_sided_.rings(), *rank_, 1, kTimeoutNs,
        [this](const RingOperations::Ended& ended) { ++ended_[peer_of_ticket_[ended.ticket]]; });
  }

  void Begin(shm::RingOperation request) {
    peer_of_ticket_.push_back(request.rank);
    ring_->Begin(request, peer_of_ticket_.size() - 1, kNowNs);
  }
  void PutTo(uint32_t peer) {
    shm::RingOperation put{};
    put.kind = static_cast<uint32_t>(shm::RingKind::kPutValue);
    put.width = 8;
    put.rank = peer;
    put.segment = kHeapRegion;
    Begin(put);
  }
  void Fence() {
    shm::RingOperation fence{};
    fence.kind = static_cast<uint32_t>(shm::RingKind::kFence);
    Begin(fence);
  }
  void EndPeers() {
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      job_->ended[peer] = ErrorCode::kPeerDied;
    }
  }
  // How many peers' worth of looks that takes.
  template <typename Action>
  uint64_t LooksOf(Action&& action) {
    const uint64_t before = ring_->looks();
    action();
    return ring_->looks() - before;
  }

  std::unique_ptr<RingOperations> ring_;
  std::vector<uint32_t> peer_of_ticket_;
  std::map<uint32_t, uint32_t> ended_;  // by peer: how many that failed
};

TEST_F(RingTurnsTest, AFenceLooksAtNobody) {
  for (uint32_t peer = 1; peer <= kPeers; ++peer) {
    PutTo(peer);
  }
  EXPECT_EQ(LooksOf([&] {
              for (int i = 0; i < 256; ++i) {
                Fence();
              }
            }),
            0U);
  EXPECT_LE(LooksOf([&] { PutTo(7); }), 3U);
}

TEST_F(RingTurnsTest, PeersShareWhatIsDoneOfWhatIsHeld) {
  constexpr uint32_t kSome = 8;
  constexpr uint32_t kEach = 300;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (uint32_t peer = 1; peer <= kSome; ++peer) {
      PutTo(peer);
    }
  }
  EndPeers();
  EXPECT_EQ(ring_->Advance(kNowNs), kBudget);
  for (uint32_t peer = 1; peer <= kSome; ++peer) {
    EXPECT_EQ(ended_[peer], kBudget / kSome) << peer;
  }
  uint32_t turns = 1;
  for (; ring_->is_busy(); ++turns) {
    ASSERT_LE(ring_->Advance(kNowNs), kBudget);
  }
  EXPECT_EQ(turns, (kEach * kSome + kBudget - 1) / kBudget);
  EXPECT_EQ(ended_[kSome], kEach);
}

TEST_F(RingTurnsTest, OnePeerHasTheWholeTurn) {
  for (uint32_t i = 0; i < kBudget + 1; ++i) {
    PutTo(3);
  }
  job_->ended[3] = ErrorCode::kPeerDied;
  EXPECT_EQ(ring_->Advance(kNowNs), kBudget);
  EXPECT_EQ(ring_->Advance(kNowNs), 1U);
  EXPECT_FALSE(ring_->is_busy());
}

// No peer is forgotten, and no turn looks at all of them.
TEST_F(RingTurnsTest, PeersThatAreStuckTakeTurns) {
  for (uint32_t peer = 1; peer <= kPeers; ++peer) {
    PutTo(peer);
  }
  EXPECT_LE(LooksOf([&] { EXPECT_EQ(ring_->Advance(kNowNs), 0U); }), 2 * kBudget);
  EndPeers();
  uint32_t turns = 0;
  for (; ring_->is_busy(); ++turns) {
    ASSERT_NE(LooksOf([&] { ring_->Advance(kNowNs); }), 0U);
    ASSERT_LE(ended_.size(), (turns + 1) * kBudget);
  }
  EXPECT_EQ(ended_.size(), kPeers);
  EXPECT_EQ(turns, (kPeers + kBudget - 1) / kBudget);
}

// ---- Numbers of RTSs

TEST_F(RingTurnsTest, NumbersOfRtsAreGivenBackAndTakenAgain) {
  std::set<uint32_t> numbers;
  for (uint32_t i = 0; i < kPeers; ++i) {
    numbers.insert(rank_->TakeRts());
  }
  EXPECT_EQ(numbers.size(), kPeers);
  EXPECT_EQ(*numbers.begin(), progress::kFirstOneSidedRts + shm::kAnswers)
      << "the others are the answers'";
  for (const uint32_t number : numbers) {
    ASSERT_NE(rank_->FindRts(number), nullptr);
    rank_->GiveRts(number);
  }
  for (uint32_t i = 0; i < kPeers; ++i) {
    ASSERT_EQ(numbers.erase(rank_->TakeRts()), 1U);
  }
  EXPECT_EQ(rank_->one_sided.sent_rts.size(), shm::kAnswers + kPeers);
}

TEST_F(RingTurnsTest, WhateverEndsAnRtsGivesItsNumberBackOnce) {
  const auto lend = [this] {
    progress::SentRts rts;
    rts.state = progress::SentRts::State::kPrivate;
    rts.generation = ++rank_->one_sided.lent_generation;
    rts.destination = 5;
    const uint32_t number = rts.lent = rank_->TakeRts();
    staged_sends_.OnRts(*rank_, number, std::move(rts));
    return progress::WireResult{number, rank_->one_sided.lent_generation, 0, 0};
  };
  for (int i = 0; i < 10; ++i) {
    const progress::WireResult first = lend();
    const progress::WireResult second = lend();
    EXPECT_NE(first.send_request, second.send_request);
    staged_sends_.OnResult(*job_, 0, 5, first, kNowNs);
    staged_sends_.OnResult(*job_, 0, 5, first, kNowNs);  // said twice
    staged_sends_.OnPeerEnded(*job_, 5, kNowNs);
    (void)lend();
    staged_sends_.FailOf(*rank_, ErrorCode::kPeerDied, kNowNs);
  }
  EXPECT_EQ(rank_->one_sided.sent_rts.size(), shm::kAnswers + 2U);
  EXPECT_EQ(rank_->one_sided.free_rts_numbers.size(), 2U);
}

}  // namespace
}  // namespace ferry::daemon
