#include "shm/counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

TEST(CounterTest, ReachesItsThreshold) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Add(2);
  EXPECT_FALSE(counter.Reached(3));
  counter.Add(1);
  EXPECT_TRUE(counter.Reached(3));
  EXPECT_EQ(counter.Value(), 3U);
  EXPECT_EQ(counter.error(), ErrorCode::kOk);
}

TEST(CounterTest, FailureFiresEveryWaitAndSaysWhy) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Add(5);
  counter.Fail(ErrorCode::kPeerDied);
  EXPECT_TRUE(counter.Reached(kCounterFailure - 1));
  EXPECT_EQ(counter.error(), ErrorCode::kPeerDied);
  EXPECT_EQ(counter.Value(), kCounterFailure + 5);
}

TEST(CounterTest, SecondFailureChangesNothing) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Fail(ErrorCode::kPeerDied);
  counter.Fail(ErrorCode::kDaemonDied);
  EXPECT_EQ(counter.error(), ErrorCode::kPeerDied);
  EXPECT_EQ(counter.Value(), kCounterFailure);
}

TEST(CounterTest, FailureLeftHalfDoneByAKilledProcessIsCompleted) {
  Shared<CounterLayout> layout;
  layout->error = static_cast<int32_t>(ErrorCode::kTimeout);
  Counter counter(layout.get());
  EXPECT_EQ(counter.error(), ErrorCode::kOk) << "not failed before the value says so";
  counter.Fail(ErrorCode::kDaemonDied);
  EXPECT_EQ(counter.error(), ErrorCode::kTimeout);
  EXPECT_EQ(counter.Value(), kCounterFailure);
}

TEST(CounterTest, ManyThreadsAddAndFailWithoutLoss) {
  constexpr uint64_t kAdds = 20'000;
  Shared<CounterLayout> layout;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Counter counter(layout.get());
      for (uint64_t n = 0; n < kAdds; ++n) {
        counter.Add(1);
        if (n == kAdds / 2) {
          counter.Fail(ErrorCode::kAborted);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(Counter(layout.get()).Value(), kCounterFailure + 4 * kAdds);
}

}  // namespace
}  // namespace ferry::shm
