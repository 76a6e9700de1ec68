// Simulated time, and the things that take it: messages, and servers that do one thing after the
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ferry::sim {

// Whole picoseconds since the beginning, so that sums are exact and the same on every machine.
// Rates of tens of gigabytes a second are still tens of picoseconds a byte.
using Time = uint64_t;  // picoseconds

inline constexpr Time kNanosecond = 1000;
inline constexpr Time kMicrosecond = 1000 * kNanosecond;

inline Time FromMicroseconds(double us) {
  return static_cast<Time>(std::llround(us * static_cast<double>(kMicrosecond)));
}
constexpr double ToMicroseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kMicrosecond);
}

// A server that does one thing after the other: a link, a direction of a NIC, a core.
class FifoServer {
 public:
  // Reserves it for `duration`, from `now` on or after earlier reservations; returns the beginning.
  // Calls come in the order of `now`.
  Time Reserve(Time now, Time duration) {
    const Time begin = std::max(now, free_at_);
    free_at_ = begin + duration;
    busy_ += duration;
    return begin;
  }
  // Nothing begins before `time`.
  void HoldUntil(Time time) { free_at_ = std::max(free_at_, time); }

  Time free_at() const { return free_at_; }
  Time busy() const { return busy_; }

 private:
  Time free_at_ = 0;
  Time busy_ = 0;
};

// The cost of a message, after LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): L, o,
// g and G.
//
// The overhead o is the CPU's, not the NIC's: a caller that sends by a CPU adds it. The NIC is busy
// with a message for max(g, bytes G), on either side; a message streams through, so that both sides
// are busy with it at the same time but for the latency. Unlike LogGP's (k - 1) G, k G is counted.
struct LogGp {
  Time latency = 0;              // L, without the switches on the way
  Time overhead = 0;             // o
  Time gap = 0;                  // g
  uint64_t gap_per_byte_ps = 0;  // G

  Time Occupancy(uint64_t bytes) const { return std::max(gap, bytes * gap_per_byte_ps); }
  // The time from an idle NIC's beginning until the last byte is there.
  Time OneWay(uint64_t bytes, Time switches) const { return latency + switches + Occupancy(bytes); }
};

}  // namespace ferry::sim
