#include "shm/wait_policy.h"

#include <gtest/gtest.h>

namespace ferry::shm {
namespace {

TEST(WaiterTest, SpinsAsOftenAsThePolicySaysThenAsksToSleep) {
  Waiter waiter({.spin_pauses = 10, .idle_before_sleep_ns = 0});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(waiter.Idle()) << "poll " << i;
  }
  EXPECT_TRUE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle()) << "it goes on asking";
}

TEST(WaiterTest, YieldsUntilTheIdleTimeHasPassed) {
  Waiter waiter({.spin_pauses = 0, .idle_before_sleep_ns = 1'000'000});
  EXPECT_FALSE(waiter.Idle()) << "the idle time starts with the first yield";
  while (!waiter.Idle()) {
  }
}

TEST(WaiterTest, NeverAsksToSleepWithoutALimit) {
  Waiter waiter({.spin_pauses = 1, .idle_before_sleep_ns = ~uint64_t{0}});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(waiter.Idle());
  }
}

TEST(WaiterTest, ResetStartsOver) {
  Waiter waiter({.spin_pauses = 1, .idle_before_sleep_ns = 0});
  EXPECT_FALSE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle());
  waiter.Reset();
  EXPECT_FALSE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle());
}

}  // namespace
}  // namespace ferry::shm
