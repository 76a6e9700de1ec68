// How the partitions of a collective are cut into units, and which of them a rank has readied.
//
// A unit is one or several neighbouring partitions, which go through the collective together. All
// ranks cut alike, for the sizes and the hints that decide it are the same on all.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "client/mpi/partitioned/units.h"

namespace ferry::mpi {

// What a unit costs, a schedule with messages of its own, is little beside the copying of so much.
inline constexpr uint64_t kUnitBytesOfCollectives = uint64_t{16} << 10;
inline constexpr uint64_t kUnitsOfCollectives = 64;
// More are not made, whatever the hints say: each takes a number of the communicator's.
inline constexpr uint64_t kMostUnitsOfCollectives = 4096;

// Cuts by size, as `limits` say, or, where they say nothing, by default: units of `least_bytes`.
Units CutCollective(int partitions, uint64_t partition_bytes, uint64_t least_bytes,
                    const UnitLimits& limits);

// The partitions that this rank has readied, round by round.
//
// Calling thread: any, several at a time. Nothing blocks: a partition costs one atomic exchange,
// and one more where it completes 32 of them. Words only grow (units.h), so rounds need no
// beginning.
class Readiness {
 public:
  explicit Readiness(const Units& units)
      : units_(units),
        words_per_unit_((units.per_unit + kPartitionsPerUnit - 1) / kPartitionsPerUnit),
        words_(size_t{units.count()} * words_per_unit_),
        full_words_(units.count()) {}

  // Marks partitions [first, last], and calls `complete(unit)` for each unit that is complete with
  // that. False: some of them had been marked in this round; nothing was done to them.
  template <typename Complete>
  bool Mark(uint64_t round, uint32_t first, uint32_t last, Complete&& complete) {
    bool all_new = true;
    for (uint32_t next = first; next <= last;) {
      const uint32_t unit = units_.UnitOf(next);
      const uint32_t in_unit = next % units_.per_unit;
      const uint32_t word = in_unit / kPartitionsPerUnit;
      const uint32_t bit = in_unit % kPartitionsPerUnit;
      const uint32_t partitions = PartitionsIn(unit, word);
      const uint32_t end_bit = std::min(bit + (last - next), partitions - 1);
      next += end_bit - bit + 1;
      bool is_full = false;
      all_new = MarkWord(&words_[size_t{unit} * words_per_unit_ + word], round,
                         FullMask(partitions), BitsBetween(bit, end_bit), &is_full) &&
                all_new;
      if (is_full && IsComplete(unit, round)) {
        complete(unit);
      }
    }
    return all_new;
  }

 private:
  struct alignas(64) Word {
    std::atomic<uint64_t> bits{0};
  };

  // Partitions of a word of a unit.
  uint32_t PartitionsIn(uint32_t unit, uint32_t word) const {
    return std::min(kPartitionsPerUnit, units_.PartitionsIn(unit) - word * kPartitionsPerUnit);
  }
  // An exchange, not an addition: what is wrong in the program does not disturb what is right.
  static bool MarkWord(Word* word, uint64_t round, uint64_t full, uint64_t bits, bool* is_full) {
    uint64_t before = word->bits.load(std::memory_order_relaxed);
    uint64_t fresh = 0;
    do {
      fresh = bits & ~BitsIn(before, round, full);
      // Pairs with itself: who completes the word sees the data of all its partitions.
    } while (fresh != 0 &&
             !word->bits.compare_exchange_weak(before, before + fresh, std::memory_order_acq_rel,
                                               std::memory_order_relaxed));
    *is_full = fresh != 0 && BitsIn(before + fresh, round, full) == full;
    return fresh == bits;
  }
  // Whether the word that has become full was the last of the unit's.
  bool IsComplete(uint32_t unit, uint64_t round) {
    const uint32_t words =
        (units_.PartitionsIn(unit) + kPartitionsPerUnit - 1) / kPartitionsPerUnit;
    // Pairs with itself, as above.
    return full_words_[unit].fetch_add(1, std::memory_order_acq_rel) + 1 == round * words;
  }

  const Units units_;
  const uint32_t words_per_unit_;
  std::vector<Word> words_;
  std::vector<std::atomic<uint64_t>> full_words_;
};

}  // namespace ferry::mpi
