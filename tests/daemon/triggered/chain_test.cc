// Sends that follow receives: b passes on to a what has come from a, by the NICs alone.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "common/clock.h"
#include "shm/atomic.h"
#include "tests/daemon/triggered/nic_nodes.h"

namespace ferry::daemon {
namespace {

constexpr size_t kThere = 0;
constexpr size_t kBack = 1;

// Pair 0 goes from a to b, pair 1 back. The ends of b share a doorbell.
class ChainTest : public testing::Test {
 protected:
  void Make(uint64_t bytes, const NodeSettings& settings = {}) {
    nodes_ = std::make_unique<NicNodes>(settings, settings);
    nodes_->Add(bytes);
    nodes_->MakeReturn(kThere);
  }
  void OpenReturn() {
    ASSERT_TRUE(nodes_->Open(nodes_->receives[kBack], /*is_send=*/false, /*is_ready=*/false));
    ASSERT_TRUE(nodes_->Open(nodes_->sends[kBack], /*is_send=*/true, /*is_ready=*/false));
    nodes_->Follow(kBack, kThere);
  }
  void MakeBoth(uint64_t bytes, const NodeSettings& settings = {}) {
    Make(bytes, settings);
    ASSERT_NO_FATAL_FAILURE(OpenReturn());
    ASSERT_TRUE(nodes_->Settle());
  }
  void Share() {
    nodes_->receives[kThere].Share(NicNodes::kDoorbell);
    nodes_->sends[kBack].Share(NicNodes::kDoorbell);
  }
  void Announce(uint64_t round) {
    for (const size_t i : {kThere, kBack}) {
      nodes_->receives[i].Announce(round);
      nodes_->sends[i].Announce(round);
    }
  }
  void Start(uint64_t round) {
    nodes_->Fill(kThere, round);
    Announce(round);
    nodes_->receives[kBack].Start(round);
    nodes_->sends[kThere].Start(round);
    if (nodes_->sends[kBack].words->shares != 0) {
      shm::StoreRelease(nodes_->doorbell_of_b().value, round);
    } else {
      nodes_->receives[kThere].Start(round);
      nodes_->sends[kBack].Start(round);
    }
  }
  bool CameBack() {
    const auto sent = nodes_->sends[kThere].data();
    return std::ranges::equal(sent, nodes_->receives[kBack].data());
  }
  void ExpectRound(uint64_t round) {
    ASSERT_TRUE(nodes_->PollUntil([&] {
      return nodes_->Done(kThere, round) && nodes_->Done(kBack, round);
    })) << "round "
        << round;
    EXPECT_TRUE(CameBack()) << "round " << round;
  }
  // All rounds are known to be over.
  bool Rest(uint64_t round) {
    return nodes_->PollUntil([&] {
      return nodes_->sends[kThere].pair().rounds == round &&
             nodes_->receives[kThere].pair().rounds == round &&
             nodes_->sends[kBack].pair().rounds == round &&
             nodes_->receives[kBack].pair().rounds == round;
    });
  }
  uint64_t AdditionsOfB() { return nodes_->b->deferred().statistics().rings; }

  std::unique_ptr<NicNodes> nodes_;
};

TEST_F(ChainTest, PassesEachMessageOn) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{8}, uint64_t{5000}, kNicChunkBytes + 3}) {
    for (const bool shares : {false, true}) {
      SCOPED_TRACE(std::to_string(bytes) + (shares ? " bytes, shared" : " bytes"));
      ASSERT_NO_FATAL_FAILURE(MakeBoth(bytes));
      if (shares) {
        Share();
      }
      const uint64_t rounds = bytes > kNicChunkBytes ? 2 : 12;  // this network is slow
      for (uint64_t round = 1; round <= rounds; ++round) {
        Start(round);
        ASSERT_NO_FATAL_FAILURE(ExpectRound(round));
      }
      EXPECT_EQ(nodes_->b->counts().in_software, 0U);
      EXPECT_TRUE(nodes_->b->failed.empty() && nodes_->a->failed.empty());
    }
  }
}

// Once both daemons have rung, none of them has a turn until the message is back.
TEST_F(ChainTest, NobodyTakesPartBetweenTheStartAndTheEnd) {
  ASSERT_NO_FATAL_FAILURE(MakeBoth(4096));
  Share();
  Start(1);
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  for (uint64_t round = 2; round <= 20; ++round) {
    ASSERT_TRUE(Rest(round - 1));
    Announce(round);
    nodes_->a->Poll();
    nodes_->b->Poll();  // armed
    const uint64_t before = AdditionsOfB();
    Start(round);
    nodes_->b->Poll();
    nodes_->a->Poll();
    EXPECT_EQ(AdditionsOfB(), before + 1);
    const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
    while (!(nodes_->Done(kThere, round) && nodes_->Done(kBack, round))) {
      ASSERT_LT(MonotonicNs(), give_up_ns) << "round " << round;
      sched_yield();
    }
    EXPECT_TRUE(CameBack()) << "round " << round;
  }
}

// Neither the start, nor the other end's, nor the message that it follows is enough.
TEST_F(ChainTest, ASendWaitsForAllThree) {
  ASSERT_NO_FATAL_FAILURE(MakeBoth(8));
  const auto settle = [&] {
    const uint64_t until_ns = MonotonicNs() + 5'000'000;
    return nodes_->PollUntil([&] { return MonotonicNs() > until_ns; });
  };
  const auto start = [&](int which, uint64_t round) {
    switch (which) {
      case 0:
        nodes_->receives[kBack].Start(round);
        break;
      case 1:
        nodes_->sends[kBack].Start(round);
        break;
      default:
        nodes_->receives[kThere].Start(round);
        nodes_->sends[kThere].Start(round);
    }
  };
  uint64_t round = 0;
  for (const auto& order : {std::array{0, 1, 2}, std::array{1, 2, 0}, std::array{2, 0, 1},
                            std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    ++round;
    nodes_->Fill(kThere, round);
    start(order[0], round);
    start(order[1], round);
    ASSERT_TRUE(settle());
    EXPECT_LT(nodes_->receives[kBack].Done(), round);
    start(order[2], round);
    ASSERT_NO_FATAL_FAILURE(ExpectRound(round));
  }
}

// The daemon adds what has come before the NIC could.
TEST_F(ChainTest, ASendThatIsReadyLaterCatchesUp) {
  Make(64);
  nodes_->Start(kThere, 1);
  ASSERT_TRUE(nodes_->PollUntil([&] { return nodes_->Done(kThere, 1); }));
  ASSERT_NO_FATAL_FAILURE(OpenReturn());
  nodes_->receives[kBack].Start(1);
  nodes_->sends[kBack].Start(1);
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  for (uint64_t round = 2; round <= 10; ++round) {
    Start(round);
    ASSERT_NO_FATAL_FAILURE(ExpectRound(round));
  }
}

TEST_F(ChainTest, ThePartThatFindsNoEntryIsDoneBySoftware) {
  for (const uint32_t entries : {1U, 3U, 5U}) {
    ASSERT_NO_FATAL_FAILURE(MakeBoth(300, {.entries = entries}));
    Share();
    for (uint64_t round = 1; round <= 10; ++round) {
      Start(round);
      ASSERT_NO_FATAL_FAILURE(ExpectRound(round)) << entries << " entries";
    }
    EXPECT_GT(nodes_->b->counts().in_software, 0U);
    EXPECT_GT(nodes_->b->counts().on_nic, 0U);
  }
}

// From a doorbell of their own to a shared one and back, as when the rank makes some starts itself.
TEST_F(ChainTest, TheDoorbellMayChange) {
  ASSERT_NO_FATAL_FAILURE(MakeBoth(16));
  uint64_t rings = 0;
  for (uint64_t round = 1; round <= 24; ++round) {
    const bool shares = round / 3 % 2 == 1;
    for (const Request* end : {&nodes_->receives[kThere], &nodes_->sends[kBack]}) {
      if (shares) {
        end->Share(NicNodes::kDoorbell, round - 1 - rings, round);
      }
    }
    nodes_->Fill(kThere, round);
    nodes_->receives[kBack].Start(round);
    nodes_->sends[kThere].Start(round);
    if (shares) {
      nodes_->receives[kThere].Announce(round);
      nodes_->sends[kBack].Announce(round);
      shm::StoreRelease(nodes_->doorbell_of_b().value, ++rings);
    } else {
      nodes_->receives[kThere].Start(round);
      nodes_->sends[kBack].Start(round);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectRound(round));
    ASSERT_TRUE(Rest(round));
  }
}

// A follower that goes is nothing to the receive.
TEST_F(ChainTest, TheReceiveGoesOnWithoutItsFollower) {
  ASSERT_NO_FATAL_FAILURE(MakeBoth(32));
  Start(1);
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  ASSERT_TRUE(Rest(1));
  Announce(3);
  nodes_->a->Poll();
  nodes_->b->Poll();  // rounds 2 and 3 are armed
  nodes_->b->Fail(nodes_->sends[kBack].number, ErrorCode::kPeerDied);
  for (uint64_t round = 2; round <= 5; ++round) {
    nodes_->Start(kThere, round);
    ASSERT_NO_FATAL_FAILURE(nodes_->ExpectArrives(kThere, round));
  }
  EXPECT_FALSE(nodes_->b->failed.contains(nodes_->receives[kThere].number));
  EXPECT_LT(nodes_->receives[kBack].Done(), 2U);
}

}  // namespace
}  // namespace ferry::daemon
