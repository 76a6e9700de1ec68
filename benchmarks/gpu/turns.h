// Measures two ways to do one thing, by turns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/clock.h"

namespace ferry::bench {

// Medians, in nanoseconds.
struct TurnTimes {
  double ferry_ns = 0;
  double bare_ns = 0;  // 0: there is no other way
};

inline double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Measures `ferry` and `bare`. Each does its thing once more and returns how long that took, as
// Time does; they take turns in going first. `bare` may be absent.
template <typename Ferry, typename Bare>
TurnTimes MeasureByTurns(int repetitions, bool has_bare, Ferry&& ferry, Bare&& bare) {
  std::vector<double> ferry_ns;
  std::vector<double> bare_ns;
  for (int i = -1; i < repetitions; ++i) {  // the first one warms up
    double of_ferry = 0;
    double of_bare = 0;
    if (i % 2 == 0) {
      of_ferry = ferry();
    }
    if (has_bare) {
      of_bare = bare();
    }
    if (i % 2 != 0) {
      of_ferry = ferry();
    }
    if (i >= 0) {
      ferry_ns.push_back(of_ferry);
      bare_ns.push_back(of_bare);
    }
  }
  return {MedianOf(std::move(ferry_ns)), has_bare ? MedianOf(std::move(bare_ns)) : 0};
}

// Returns the nanoseconds of one of `count` rounds of action().
template <typename Action>
double Time(int count, Action&& action) {
  const uint64_t begin_ns = MonotonicNs();
  for (int i = 0; i < count; ++i) {
    action();
  }
  return static_cast<double>(MonotonicNs() - begin_ns) / count;
}

}  // namespace ferry::bench
