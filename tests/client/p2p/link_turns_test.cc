// Which small messages wait for more to the same peer (client/p2p/link_turns.h).
#include "client/p2p/link_turns.h"

#include <gtest/gtest.h>

namespace ferry::client {
namespace {

constexpr uint64_t kAtOnceNs = 1'000;
constexpr uint64_t kPauseNs = 1'000'000;

class FakeTurns final : public LinkTurns {
 public:
  FakeTurns() : LinkTurns(8) {}
  uint32_t Turn(engine::Effects& /*effects*/) override {
    const bool is_of_burst = BeginTurn();
    now_ns += turn_ns;
    SetWork(false);
    if (is_of_burst) {
      EndTurnOfBurst(now_ns);
    }
    return 0;
  }
  void Arm() override { ++armed; }
  void Serve() override {}
  uint32_t Expose(std::byte* /*base*/, uint64_t /*size_bytes*/,
                  shm::ElementLock* /*lock*/) override {
    return 0;
  }
  void Unexpose(uint32_t /*segment*/) override {}
  void GiveUpLinks() override {}
  // True: it is gathered; else the sender turns.
  bool Send(uint32_t peer, uint64_t size_bytes, uint64_t after_ns) {
    now_ns += after_ns;
    const bool gathers = Gathers(peer, size_bytes, now_ns);
    if (!gathers) {
      engine::Effects effects;
      Turn(effects);
    }
    return gathers;
  }
  // How many of a hundred messages of 8 bytes to one peer are gathered.
  int GatheredOf100(uint64_t after_ns) {
    int gathered = 0;
    for (int i = 0; i < 100; ++i) {
      gathered += Send(1, 8, after_ns) ? 1 : 0;
    }
    return gathered;
  }

  int armed = 0;
  uint64_t now_ns = kPauseNs;
  uint64_t turn_ns = 0;
};

TEST(LinkTurnsTest, OnlyBurstsAreGathered) {
  FakeTurns turns;
  EXPECT_EQ(turns.GatheredOf100(kPauseNs), 0);
  EXPECT_GT(turns.GatheredOf100(kAtOnceNs), 90);
  EXPECT_FALSE(turns.Send(1, 8, kPauseNs));
}

// Where each write takes long, gathering is worth most.
TEST(LinkTurnsTest, ATurnIsNoPause) {
  FakeTurns turns;
  turns.turn_ns = kPauseNs;
  EXPECT_GT(turns.GatheredOf100(kAtOnceNs), 90);
  EXPECT_EQ(turns.GatheredOf100(kPauseNs), 0);
}

// As in an exchange with a peer whose answers come at once.
TEST(LinkTurnsTest, WhatARankWaitsBetweenIsNoBurst) {
  FakeTurns turns;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.Send(1, 8, kAtOnceNs));
    engine::Effects effects;
    turns.Turn(effects);
  }
}

TEST(LinkTurnsTest, MessagesToOneEachOfManyPeersGoAtOnce) {
  FakeTurns turns;
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.Send(i % 7, 8, kAtOnceNs));
  }
}

// A thread that asks if turns are due sees that messages are gathered.
TEST(LinkTurnsTest, WhatIsGatheredIsWork) {
  FakeTurns turns;
  while (!turns.Send(1, 8, kAtOnceNs)) {
    ASSERT_FALSE(turns.HasWork());
    ASSERT_EQ(turns.armed, 0);
  }
  EXPECT_TRUE(turns.HasWork());
  EXPECT_EQ(turns.armed, 1);
  engine::Effects effects;
  turns.Turn(effects);
  EXPECT_FALSE(turns.HasWork());
}

TEST(LinkTurnsTest, MuchDoesNotWait) {
  FakeTurns turns;
  uint64_t waiting_bytes = 0;
  for (int i = 0; i < 100; ++i) {
    waiting_bytes = turns.Send(1, 8192, kAtOnceNs) ? waiting_bytes + 8192 : 0;
    EXPECT_LE(waiting_bytes, 65536U);
  }
}

}  // namespace
}  // namespace ferry::client
