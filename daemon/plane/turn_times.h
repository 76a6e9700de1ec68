// How long the turns of the progress thread take: what a message may wait while that thread does
// something else.
//
// One thread counts, any reads; nothing blocks. A reader may see the sum and the counts at slightly
// different times.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ferry::daemon {

// Turns by powers of two: entry i counts those of less than 2^i microseconds that entry i - 1 does
// not have; the last one all longer ones.
inline constexpr size_t kTurnTimes = 24;  // to 4 s

struct TurnTimes {
  std::array<uint64_t, kTurnTimes> counts{};
  uint64_t sum_ns = 0;
};

class TurnClock {
 public:
  void Count(uint64_t ns) {
    const size_t entry = std::min<size_t>(std::bit_width(ns / 1000), kTurnTimes - 1);
    Add(counts_[entry], 1);
    Add(sum_ns_, ns);
  }
  TurnTimes Read() const {
    TurnTimes times;
    for (size_t i = 0; i < kTurnTimes; ++i) {
      times.counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    times.sum_ns = sum_ns_.load(std::memory_order_relaxed);
    return times;
  }

 private:
  // One thread adds: no locked instruction.
  static void Add(std::atomic<uint64_t>& word, uint64_t n) {
    word.store(word.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kTurnTimes> counts_{};
  std::atomic<uint64_t> sum_ns_ = 0;
};

}  // namespace ferry::daemon
