// The cost of a message, after LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): L, o,
// g and G.
//
// The overhead o is the CPU's, not the NIC's: a caller that sends by a CPU adds it. The NIC is busy
// with a message for max(g, bytes G), on either side; a message streams through, so that both sides
// are busy with it at the same time but for the latency. Unlike LogGP's (k - 1) G, k G is counted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tools/ferrysim/time.h"

namespace ferry::sim {

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
