// Simulated time: whole picoseconds since the beginning, so that sums are exact and the same on
// every machine. Rates of tens of gigabytes a second are still tens of picoseconds a byte.
#pragma once

#include <cmath>
#include <cstdint>

namespace ferry::sim {

using Time = uint64_t;  // picoseconds

inline constexpr Time kNanosecond = 1000;
inline constexpr Time kMicrosecond = 1000 * kNanosecond;

inline Time FromMicroseconds(double us) {
  return static_cast<Time>(std::llround(us * static_cast<double>(kMicrosecond)));
}
constexpr double ToMicroseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kMicrosecond);
}

}  // namespace ferry::sim
