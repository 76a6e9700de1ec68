// Which small messages wait for more to the same peer (client/rank/link_turns.h).
#include "client/rank/link_turns.h"

#include <gtest/gtest.h>

namespace ferry::client {
namespace {

class FakeTurns final : public LinkTurns {
 public:
  FakeTurns() : LinkTurns(8) {}
  uint32_t Turn(engine::Effects& /*effects*/) override {
    NoteTurn();
    SetWork(false);
    return 0;
  }
  void Arm() override { ++armed; }
  void Serve() override {}
  void GiveUpLinks() override {}
  // True: it is gathered; else the sender turns.
  bool Send(uint32_t peer, uint64_t size_bytes, uint64_t now_ns) {
    const bool gathers = Gathers(peer, size_bytes, now_ns);
    if (!gathers) {
      engine::Effects effects;
      Turn(effects);
    }
    return gathers;
  }

  int armed = 0;
};

constexpr uint64_t kAtOnceNs = 1'000;
constexpr uint64_t kPauseNs = 1'000'000;

TEST(LinkTurnsTest, OnlyBurstsAreGathered) {
  FakeTurns turns;
  uint64_t now_ns = kPauseNs;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.Send(1, 8, now_ns += kPauseNs));
  }
  int gathered = 0;
  for (int i = 0; i < 100; ++i) {
    gathered += turns.Send(1, 8, now_ns += kAtOnceNs) ? 1 : 0;
  }
  EXPECT_GT(gathered, 90);
  EXPECT_FALSE(turns.Send(1, 8, now_ns += kPauseNs));
}

TEST(LinkTurnsTest, MessagesToOneEachOfManyPeersGoAtOnce) {
  FakeTurns turns;
  uint64_t now_ns = kPauseNs;
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.Send(i % 7, 8, now_ns += kAtOnceNs));
  }
}

// Whoever looks whether turns are due sees that there is something.
TEST(LinkTurnsTest, WhatIsGatheredIsWork) {
  FakeTurns turns;
  uint64_t now_ns = kPauseNs;
  while (!turns.Send(1, 8, now_ns += kAtOnceNs)) {
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
  uint64_t now_ns = kPauseNs;
  uint64_t waiting_bytes = 0;
  for (int i = 0; i < 100; ++i) {
    waiting_bytes = turns.Send(1, 8192, now_ns += kAtOnceNs) ? waiting_bytes + 8192 : 0;
    EXPECT_LE(waiting_bytes, 32768U);
  }
}

}  // namespace
}  // namespace ferry::client
