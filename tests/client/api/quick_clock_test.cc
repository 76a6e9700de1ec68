// The quick clock tells the time of the kernel's clock, on all threads.
#include "client/api/quick_clock.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <thread>
#include <vector>

#include "common/clock.h"

namespace {

using ClockGettime = int (*)(clockid_t, timespec*);

// Of this thread: ticks that each reading of the kernel's clock takes at least, and readings made.
thread_local uint64_t reading_ticks = 0;
thread_local uint64_t readings = 0;

}  // namespace

// In place of the C library's, for this whole program.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real = reinterpret_cast<ClockGettime>(dlsym(RTLD_NEXT, "clock_gettime"));
  ++readings;
#if defined(__x86_64__)  // elsewhere no ticks are counted, however long a reading takes
  const uint64_t begin = __rdtsc();
  while (__rdtsc() - begin < reading_ticks) {
  }
#endif
  return real(clock, now);
}

namespace ferry::client {
namespace {

constexpr uint64_t kErrorNs = 1'000;
constexpr uint64_t kSlowTicks = 20'000;
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

// Returns how often so many calls read the kernel's clock.
constexpr int kCalls = 1'000;
uint64_t ReadingsOfCalls() {
  readings = 0;
  for (int i = 0; i < kCalls; ++i) {
    (void)QuickMonotonicNs();
  }
  return readings;
}

// As under valgrind, or where the kernel reads a slow timer.
TEST(QuickClockTest, IsThePlainClockWhereReadingsAreSlow) {
  std::thread thread([] {
    reading_ticks = kSlowTicks;
    (void)ReadingsOfCalls();
    EXPECT_EQ(ReadingsOfCalls(), kCalls);
    reading_ticks = 0;  // it has given up for good
    EXPECT_EQ(ReadingsOfCalls(), kCalls);
  });
  thread.join();
}

TEST(QuickClockTest, CountsTicksAgainAfterAFewSlowReadings) {
  uint64_t fresh = 0;
  std::thread first([&fresh] {
    (void)WorstError();
    fresh = ReadingsOfCalls();
  });
  first.join();
  std::thread second([fresh] {
    reading_ticks = kSlowTicks;
    for (int i = 0; i < 8; ++i) {
      (void)QuickMonotonicNs();
    }
    reading_ticks = 0;
    (void)WorstError();
    const uint64_t own = ReadingsOfCalls();
    // Where ticks are not to be counted at all, neither thread does.
    EXPECT_EQ(own < kCalls / 10, fresh < kCalls / 10) << own << " beside " << fresh;
  });
  second.join();
}

}  // namespace
}  // namespace ferry::client
