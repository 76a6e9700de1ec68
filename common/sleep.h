// Sleeping to a point in time, as exactly as the kernel can wake a thread: tens of microseconds
// late.
#pragma once

#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cstdint>

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

}  // namespace ferry
