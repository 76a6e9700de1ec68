// Sleeping to a point in time, as exactly as the kernel can wake a thread: tens of microseconds
// late.
#pragma once

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

namespace ferry {

// For the calling thread, once. Else the kernel adds up to 50 us to each of its sleeps, to wake up
// several threads at once.
inline void WakeInTime() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

// Blocks until that MonotonicNs (common/clock.h), signals or not.
inline void SleepUntilNs(uint64_t deadline_ns) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const timespec until{static_cast<time_t>(deadline_ns / kNsPerSecond),
                       static_cast<long>(deadline_ns % kNsPerSecond)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// How long to sleep between looks at what cannot wake anybody: short at first, then twice as long
// each time, up to what costs next to nothing.
class GrowingSleep {
 public:
  std::chrono::microseconds Next() {
    return std::exchange(next_, std::min(2 * next_, std::chrono::microseconds(1000)));
  }

 private:
  std::chrono::microseconds next_{20};
};

}  // namespace ferry
