// Time that a daemon loses by being late itself, with a clock of the test's; and how often daemons
// exchange heartbeats.
#include "daemon/peers/late_ticks.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "daemon/peers/link_timing.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStartNs = 1000 * kMs;
constexpr uint64_t kIntervalMs = 250;
constexpr uint64_t kTimeoutMs = 15'000;

TEST(LateTicksTest, TicksThatAreInTimeLoseNothing) {
  LateTicks late(kIntervalMs);
  uint64_t now_ns = kStartNs;
  EXPECT_EQ(late.Tick(now_ns), 0U) << "the first";
  for (const uint64_t step_ms : {250, 260, 400, 500, 1, 0, 250}) {
    now_ns += step_ms * kMs;
    EXPECT_EQ(late.Tick(now_ns), 0U) << step_ms;
  }
}

TEST(LateTicksTest, WhatIsMoreThanTwoIntervalsIsLost) {
  LateTicks late(kIntervalMs);
  late.Tick(kStartNs);
  EXPECT_EQ(late.Tick(kStartNs + 501 * kMs), 1 * kMs);
  EXPECT_EQ(late.Tick(kStartNs + 3501 * kMs), 2500 * kMs);
  EXPECT_EQ(late.Tick(kStartNs + 3501 * kMs), 0U) << "once only";
}

TEST(LateTicksTest, BetweenTicksItIsKnownToo) {
  LateTicks late(kIntervalMs);
  EXPECT_EQ(late.LostSince(kStartNs), 0U);
  late.Tick(kStartNs);
  EXPECT_EQ(late.LostSince(kStartNs + 2500 * kMs), 2000 * kMs);
  EXPECT_EQ(late.Tick(kStartNs + 2500 * kMs), 2000 * kMs) << "it is taken once, by the tick";
}

TEST(LateTicksTest, NoWaitBeginsAfterNow) {
  uint64_t since_ns = 0;
  LateTicks::Forgive(5 * kMs, kStartNs, &since_ns);
  EXPECT_EQ(since_ns, 0U) << "nothing is waited for";
  since_ns = kStartNs - 8 * kMs;
  LateTicks::Forgive(5 * kMs, kStartNs, &since_ns);
  EXPECT_EQ(since_ns, kStartNs - 3 * kMs);
  LateTicks::Forgive(5 * kMs, kStartNs, &since_ns);
  EXPECT_EQ(since_ns, kStartNs);
}

// The milliseconds that pass until a silence of kTimeoutMs is counted, if a tick comes every
// `step_ms`.
uint64_t TimeUntilCut(uint64_t step_ms) {
  LateTicks late(kIntervalMs);
  uint64_t now_ns = kStartNs;
  uint64_t since_ns = now_ns;
  late.Tick(now_ns);
  while (now_ns - since_ns < kTimeoutMs * kMs) {
    now_ns += step_ms * kMs;
    LateTicks::Forgive(late.Tick(now_ns), now_ns, &since_ns);
  }
  return (now_ns - kStartNs) / kMs;
}

TEST(LateTicksTest, OneThatIsInTimeWaitsAsLongAsItIsTold) {
  EXPECT_EQ(TimeUntilCut(kIntervalMs), kTimeoutMs);
  EXPECT_EQ(TimeUntilCut(2 * kIntervalMs), kTimeoutMs);
}

// At a load of a thousand a daemon of such a machine gets a core every few seconds, and so do the
// others whose answers it waits for.
TEST(LateTicksTest, OneThatIsAlwaysLateWaitsLongerInProportion) {
  EXPECT_EQ(TimeUntilCut(2000), 4 * kTimeoutMs);
  EXPECT_EQ(TimeUntilCut(5000), 10 * kTimeoutMs);
}

TEST(LateTicksTest, AnHourOfStandstillCountsAsAMoment) {
  LateTicks late(kIntervalMs);
  uint64_t since_ns = kStartNs;
  late.Tick(kStartNs);
  const uint64_t now_ns = kStartNs + 3'600'000 * kMs;
  LateTicks::Forgive(late.Tick(now_ns), now_ns, &since_ns);
  EXPECT_EQ(now_ns - since_ns, 2 * kIntervalMs * kMs);
}

TEST(LinkTimingTest, ManyLinksTakeTurnsButNoneIsSilentForLong) {
  const LinkTiming timing{.heartbeat_interval_ms = 250, .peer_timeout_ms = 15'000};
  EXPECT_EQ(timing.BeatPeriodMs(1), 250U);
  EXPECT_EQ(timing.BeatPeriodMs(8), 250U);
  EXPECT_EQ(timing.BeatPeriodMs(9), 500U);
  EXPECT_EQ(timing.BeatPeriodMs(31), 1000U);
  EXPECT_EQ(timing.BeatPeriodMs(1000), 3000U);
  const LinkTiming tight{.heartbeat_interval_ms = 250, .peer_timeout_ms = 500};
  EXPECT_EQ(tight.BeatPeriodMs(1000), 250U);
}

TEST(LinkTimingTest, SlowAnswersAreAskedForLessOftenAndAwaitedForLonger) {
  const LinkTiming timing{.heartbeat_interval_ms = 250, .peer_timeout_ms = 15'000};
  EXPECT_EQ(timing.BeatPeriodMs(1, 25), 250U);
  EXPECT_EQ(timing.BeatPeriodMs(1, 100), 1000U);
  EXPECT_EQ(timing.BeatPeriodMs(1000, 100), 3000U);
  EXPECT_EQ(timing.BeatPeriodMs(1, 60'000), 5000U);
  EXPECT_EQ(timing.BeatTimeoutMs(0), 3000U);
  EXPECT_EQ(timing.BeatTimeoutMs(400), 4000U);
  EXPECT_EQ(timing.BeatTimeoutMs(60'000), 9000U);
  EXPECT_GE(timing.BeatTimeoutMs(60'000) + timing.RetryTimeoutMs(), timing.peer_timeout_ms);
}

}  // namespace
}  // namespace ferry::daemon
