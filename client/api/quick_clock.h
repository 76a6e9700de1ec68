// Monotonic time for code that reads it so often that the price of MonotonicNs counts: the times of
// all calls of a rank that is measured.
//
// Between two readings of CLOCK_MONOTONIC, at most 10 ms apart, it counts the processor's ticks
// (x86-64), where the kernel's own clock is made of these. Elsewhere it is MonotonicNs.
#pragma once

#include <cstdint>

namespace ferry::client {

// Nanoseconds of CLOCK_MONOTONIC, to within a microsecond, by which two values of one thread may be
// out of order. Any thread; blocks never.
uint64_t QuickMonotonicNs();

}  // namespace ferry::client
