// The quick clock tells the time of the kernel's clock, on all threads.
#include "client/api/quick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "common/clock.h"

namespace ferry::client {
namespace {

constexpr uint64_t kErrorNs = 1'000;
constexpr uint64_t kWholeNs = 100'000'000;  // many readings of the kernel's clock

// Returns by how much the quick clock was outside of the two readings around it, at most.
uint64_t WorstError() {
  uint64_t worst = 0;
  const uint64_t end = MonotonicNs() + kWholeNs;
  for (uint64_t after = 0; after < end;) {
    const uint64_t before = MonotonicNs();
    const uint64_t quick = QuickMonotonicNs();
    after = MonotonicNs();
    worst =
        std::max({worst, quick < before ? before - quick : 0, quick > after ? quick - after : 0});
  }
  return worst;
}

TEST(QuickClockTest, IsTheTimeOfTheKernelsClock) { EXPECT_LE(WorstError(), kErrorNs); }

TEST(QuickClockTest, IsTheSameOnAllThreads) {
  std::vector<uint64_t> worst(4);
  std::vector<std::thread> threads;
  for (uint64_t& own : worst) {
    threads.emplace_back([&own] { own = WorstError(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(*std::max_element(worst.begin(), worst.end()), kErrorNs);
}

TEST(QuickClockTest, IsRightAfterAPause) {
  (void)WorstError();
  const uint64_t end = MonotonicNs() + 3 * kWholeNs / 10;
  while (MonotonicNs() < end) {
  }
  const uint64_t before = MonotonicNs();
  const uint64_t quick = QuickMonotonicNs();
  const uint64_t after = MonotonicNs();
  EXPECT_GE(quick, before - kErrorNs);
  EXPECT_LE(quick, after + kErrorNs);
}

}  // namespace
}  // namespace ferry::client
