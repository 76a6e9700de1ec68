// The two ways of the examples of partitioned communication: kernels whose partitions leave as they
// are ready, and sends after the host has waited for the kernel.
#pragma once

#include <functional>
#include <string>

namespace examples {

// Microseconds of a step.
struct TwoWays {
  double partitioned_us = 0;
  double plain_us = 0;
};

// The functions to measure. All ranks call them alike.
struct Ways {
  std::function<void()> begin;  // called before either way; not measured
  std::function<void(int steps)> partitioned;
  std::function<void(int steps)> plain;
  std::function<bool()> is_right;  // called after either way
};

// Measures both ways. Collective. The ways take turns, so that a disturbance of the machine hits
// both alike; medians. False in *is_right, on all ranks, if a result was wrong on any of them.
TwoWays MeasureInTurns(const Ways& ways, int steps, bool* is_right);

// "TITLE: 12.3 us with partitions, 45.6 us after synchronising; WHAT: PASS", by rank 0.
void ReportTwoWays(const std::string& title, const TwoWays& times, const std::string& what,
                   bool is_right);

// A whole number between `least` and `most`; 0 if `text` is none.
int NumberIn(const char* text, int least, int most);

}  // namespace examples
