// How the clocks of nodes are brought together: by questions, whose answers take long and go
// different ways, and by messages.
#include "tools/profile/node_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

namespace ferry::tools {
namespace {

constexpr uint64_t kMicrosecond = 1'000;
constexpr uint64_t kSecond = 1'000'000'000;

// A node whose clock shows `ahead_ns` more than the launcher's, and runs slower by `drift`.
struct Node {
  int64_t ahead_ns = 0;
  double drift = 0;

  uint64_t TimeAt(uint64_t launcher_ns) const {
    return static_cast<uint64_t>(
        static_cast<int64_t>(launcher_ns) + ahead_ns -
        std::llround(drift * static_cast<double>(launcher_ns) / (1 + drift)));
  }
  ClockSample Ask(uint64_t at_ns, uint64_t there_ns, uint64_t back_ns) const {
    return {at_ns, TimeAt(at_ns + there_ns), at_ns + there_ns + back_ns};
  }
};

uint64_t ErrorAt(const NodeClock& clock, const Node& node, uint64_t launcher_ns) {
  return static_cast<uint64_t>(
      std::llabs(clock.ToLauncher(node.TimeAt(launcher_ns)) - static_cast<int64_t>(launcher_ns)));
}

// ---- By questions -------------------------------------------------------------------------------

TEST(NodeClockTest, TheLaunchersOwnIsRight) {
  const NodeClock clock;
  EXPECT_EQ(clock.ToLauncher(12345), 12345);
  EXPECT_EQ(clock.error_ns(), 0U);
}

TEST(NodeClockTest, AnswersNoneIsOfUnknownError) {
  const NodeClock clock = NodeClock::Of({});
  EXPECT_EQ(clock.ToLauncher(12345), 12345);
  EXPECT_EQ(clock.error_ns(), UINT64_MAX);
}

TEST(NodeClockTest, TakesTheFastestAnswer) {
  const Node node{.ahead_ns = -400 * static_cast<int64_t>(kSecond)};
  const std::vector<ClockSample> samples = {
      node.Ask(1000 * kSecond, 900 * kMicrosecond, 100 * kMicrosecond),
      node.Ask(1000 * kSecond + 5'000'000, 30 * kMicrosecond, 30 * kMicrosecond),
      node.Ask(1000 * kSecond + 9'000'000, 100 * kMicrosecond, 4000 * kMicrosecond)};
  const NodeClock clock = NodeClock::Of(samples);
  EXPECT_EQ(clock.error_ns(), 30 * kMicrosecond);
  EXPECT_EQ(ErrorAt(clock, node, 1000 * kSecond), 0U);
  EXPECT_EQ(clock.drift(), 0);
}

// The way there may take all of the time, or the way back: then the error is half of it, as told.
TEST(NodeClockTest, OneWayDelaysStayWithinTheErrorThatItTells) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 1000; ++round) {
    const Node node{.ahead_ns = static_cast<int64_t>(random() % (1000 * kSecond)) -
                                static_cast<int64_t>(500 * kSecond)};
    std::vector<ClockSample> samples;
    for (uint64_t i = 0; i < 1 + random() % 8; ++i) {
      samples.push_back(node.Ask(1000 * kSecond + i * 1'000'000,
                                 random() % 500'000 * (random() % 2), random() % 500'000));
    }
    const NodeClock clock = NodeClock::Of(samples);
    EXPECT_LE(clock.error_ns(), 500'000U);
    EXPECT_LE(ErrorAt(clock, node, 1000 * kSecond), clock.error_ns() + 1);
  }
}

TEST(NodeClockTest, FollowsAClockThatRunsFaster) {
  for (const double drift : {50e-6, -50e-6, 400e-6}) {
    const Node node{.ahead_ns = 12'345'678'901, .drift = drift};
    std::vector<ClockSample> samples;
    for (const uint64_t at_ns : {1000 * kSecond, 4600 * kSecond}) {  // an hour between
      for (uint64_t i = 0; i < 5; ++i) {
        samples.push_back(
            node.Ask(at_ns + i * 10'000'000, (20 + 100 * i) * kMicrosecond, 20 * kMicrosecond));
      }
    }
    const NodeClock clock = NodeClock::Of(samples);
    EXPECT_EQ(clock.error_ns(), 20 * kMicrosecond);
    EXPECT_NEAR(clock.drift(), drift, 1e-9);
    for (uint64_t at_ns = 1000 * kSecond; at_ns <= 4600 * kSecond; at_ns += 100 * kSecond) {
      EXPECT_LE(ErrorAt(clock, node, at_ns), 21 * kMicrosecond) << at_ns;
    }
    // Without the second look it would be wrong by more than 100 ms at the end.
    const NodeClock first = NodeClock::Of(std::span(samples).first(5));
    EXPECT_EQ(first.drift(), 0);
    EXPECT_GT(ErrorAt(first, node, 4600 * kSecond), 100'000'000U);
  }
}

// Answers that are all slow, and close to each other, would make a clock of wild speed.
TEST(NodeClockTest, DoesNotBelieveInWildClocks) {
  const Node node;
  const std::vector<ClockSample> close = {node.Ask(kSecond, 90'000'000, 0),
                                          node.Ask(kSecond + 500'000'000, 0, 90'000'000)};
  EXPECT_EQ(NodeClock::Of(close).drift(), 0);
  const std::vector<ClockSample> apart = {node.Ask(kSecond, 90'000'000, 0),
                                          node.Ask(3 * kSecond, 0, 90'000'000)};
  EXPECT_LE(std::abs(NodeClock::Of(apart).drift()), 1e-3);
}

// ---- By messages --------------------------------------------------------------------------------

TEST(ShiftsByMessagesTest, WithoutMessagesNothingMoves) {
  const ClockShifts shifts = ShiftsByMessages(std::vector<uint64_t>{0, 100, 200}, {});
  EXPECT_EQ(shifts.shift_ns, (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(shifts.error_ns, (std::vector<uint64_t>{0, 100, 200}));
}

// Node 1 is shown 80 us late: messages to it seem to take 85 us, those from it to come 75 us before
// they left.
TEST(ShiftsByMessagesTest, MessagesBothWaysAreMoreExactThanQuestions) {
  const ClockShifts shifts = ShiftsByMessages(
      std::vector<uint64_t>{0, 100'000}, std::vector<NodeDelay>{{0, 1, 85'000}, {1, 0, -75'000}});
  EXPECT_EQ(shifts.shift_ns, (std::vector<int64_t>{0, -80'000}));
  EXPECT_EQ(shifts.error_ns, (std::vector<uint64_t>{0, 5'000}));
}

TEST(ShiftsByMessagesTest, MessagesOfOneWayProveNothing) {
  const ClockShifts shifts =
      ShiftsByMessages(std::vector<uint64_t>{0, 100'000}, std::vector<NodeDelay>{{0, 1, 85'000}});
  EXPECT_EQ(shifts.shift_ns, (std::vector<int64_t>{0, 0}));
}

TEST(ShiftsByMessagesTest, SlowMessagesDoNotReplaceFastQuestions) {
  const ClockShifts shifts = ShiftsByMessages(
      std::vector<uint64_t>{0, 100}, std::vector<NodeDelay>{{0, 1, 85'000}, {1, 0, 75'000}});
  EXPECT_EQ(shifts.shift_ns, (std::vector<int64_t>{0, 0}));
}

// Clocks of eight nodes, in a ring whose neighbours exchange messages: each is compared with its
// neighbours in turn.
TEST(ShiftsByMessagesTest, GoesFromNodeToNode) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 200; ++round) {
    constexpr uint32_t kNodes = 8;
    std::vector<int64_t> wrong_ns(kNodes);
    std::vector<uint64_t> errors_ns(kNodes);
    for (uint32_t i = 1; i < kNodes; ++i) {
      errors_ns[i] = 200'000;
      wrong_ns[i] = static_cast<int64_t>(random() % 400'000) - 200'000;
    }
    std::vector<NodeDelay> delays;
    for (uint32_t i = 0; i < kNodes; ++i) {
      const uint32_t next = (i + 1) % kNodes;
      delays.push_back({i, next, 4'000 + wrong_ns[next] - wrong_ns[i]});
      delays.push_back({next, i, 6'000 + wrong_ns[i] - wrong_ns[next]});
    }
    const ClockShifts shifts = ShiftsByMessages(errors_ns, delays);
    for (uint32_t i = 0; i < kNodes; ++i) {
      // Each of up to seven steps adds 1 us: half of what the two ways differ by.
      EXPECT_LE(std::llabs(wrong_ns[i] + shifts.shift_ns[i]), 7'001) << i;
    }
    for (const NodeDelay& delay : delays) {
      EXPECT_GT(delay.least_ns + shifts.shift_ns[delay.to] - shifts.shift_ns[delay.from], -7'001);
    }
  }
}

TEST(ShiftsByMessagesTest, NodesThatDoNotExistAreLeftOut) {
  const ClockShifts shifts = ShiftsByMessages(
      std::vector<uint64_t>{0}, std::vector<NodeDelay>{{0, 7, 5}, {7, 0, 5}, {0, 0, -3}});
  EXPECT_EQ(shifts.shift_ns, (std::vector<int64_t>{0}));
  EXPECT_TRUE(ShiftsByMessages({}, {}).shift_ns.empty());
}

}  // namespace
}  // namespace ferry::tools
