// Monotonic time. The engine never calls this itself: callers pass the time in.
#pragma once

#include <time.h>

#include <cstdint>

namespace ferry {

// Nanoseconds of CLOCK_MONOTONIC, comparable between the processes of a node. Any thread; does not
// enter the kernel (vDSO).
inline uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(now.tv_nsec);
}

// Nanoseconds of CLOCK_MONOTONIC to within a tick of the kernel's (1 to 10 ms), for a fraction of
// the price of MonotonicNs: a load from the vDSO's page instead of a read of the clock.
inline uint64_t CoarseMonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace ferry
