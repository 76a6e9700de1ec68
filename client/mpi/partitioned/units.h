// Transfer units of partitioned messages: up to 32 neighbouring partitions of the sender's that
// travel together. State is kept per unit, in words of 64 bits that only grow.
//
// A *word* counts, for each round, the bits of the unit's partitions: bit i is added once partition
// i of the unit has come so far (has been readied, taken, has arrived). Over a round the sum of all
// bits, the unit's `full` mask, is added, however it comes about. So in round r (the first is 1) a
// word that began at (r - 1) x full shows by its difference to that which partitions have come so
// far; nothing is ever cleared, additions may come in any order, from any thread, daemon or NIC,
// and whoever adds the last bit sees that it was the last. After Temucin and others (ExaMPI 2024):
// counters with a threshold for each transfer.
//
// A unit has 32 partitions at most, half as many as a word has bits: so a thread that comes late
// sees in a word that its round is over. With 64 the sums of two rounds would look alike.
//
// Plain arithmetic: any thread, nothing blocks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ferry::mpi {

inline constexpr uint32_t kPartitionsPerUnit = 32;  // at most

// The bits of so many partitions.
inline constexpr uint64_t FullMask(uint32_t partitions) {
  return partitions >= 64 ? ~uint64_t{0} : (uint64_t{1} << partitions) - 1;
}
// Bits [first, last] of a unit.
inline constexpr uint64_t BitsBetween(uint32_t first, uint32_t last) {
  return FullMask(last + 1) & ~FullMask(first);
}
// What a word of a unit has when round `round` begins.
inline constexpr uint64_t BaseOf(uint64_t round, uint64_t full) { return (round - 1) * full; }
// Which partitions have come so far in that round; at least `full`: it is over, or a later one has
// begun.
inline constexpr uint64_t BitsIn(uint64_t word, uint64_t round, uint64_t full) {
  return word - BaseOf(round, full);
}

// As the info keys say (mpix_partitioned.h).
struct UnitLimits {
  uint64_t min_bytes = 0;  // 0: as is best for the way
  uint32_t max_units = UINT32_MAX;
};

// How the sender's buffer is cut: `partitions` of `partition_bytes` each, `per_unit` to a unit (the
// last one may have fewer).
struct Units {
  uint32_t partitions = 1;
  uint32_t per_unit = 1;
  uint64_t partition_bytes = 0;

  uint32_t count() const { return (partitions + per_unit - 1) / per_unit; }
  uint64_t total_bytes() const { return partitions * partition_bytes; }
  uint32_t UnitOf(uint32_t partition) const { return partition / per_unit; }
  uint64_t BitOf(uint32_t partition) const { return uint64_t{1} << partition % per_unit; }
  uint32_t PartitionsIn(uint32_t unit) const {
    return std::min(per_unit, partitions - unit * per_unit);
  }
  uint64_t FullOf(uint32_t unit) const { return FullMask(PartitionsIn(unit)); }
  // Those of partitions [first, last] that are in the unit; some are.
  uint64_t BitsOf(uint32_t unit, uint32_t first, uint32_t last) const {
    const uint32_t begin = unit * per_unit;
    return BitsBetween(std::max(first, begin) - begin,
                       std::min(last, begin + PartitionsIn(unit) - 1) - begin);
  }
  uint64_t unit_bytes() const { return per_unit * partition_bytes; }
  // So many bytes of neighbouring units are copied at once, at most: less than an eighth of all, so
  // that both sides find something to do.
  uint64_t bytes_at_once() const {
    return std::max(unit_bytes(), std::min<uint64_t>(total_bytes() / 8, 128 << 10));
  }
  // How many partitions to a unit, a power of two, so that one has `min_bytes` and there are no
  // more than `max_units`, as far as 32 partitions to a unit allow that.
  static uint32_t PerUnit(uint32_t partitions, uint64_t partition_bytes, uint64_t min_bytes,
                          uint32_t max_units) {
    const uint64_t by_size = partition_bytes == 0
                                 ? kPartitionsPerUnit
                                 : (min_bytes + partition_bytes - 1) / partition_bytes;
    const uint64_t by_number = (uint64_t{partitions} + max_units - 1) / max_units;
    const uint64_t most = std::min<uint64_t>(partitions, kPartitionsPerUnit);
    return std::bit_ceil(
        static_cast<uint32_t>(std::clamp<uint64_t>(std::max(by_size, by_number), 1, most)));
  }

  // The partitions, [first, last], that the receiver's partition needs, which is one of `of`. Empty
  // ones are shared out as if they had bytes.
  struct Needed {
    uint32_t first;
    uint32_t last;
  };
  Needed NeededFor(uint32_t partition, uint32_t of) const {
    if (of == partitions) {
      return {partition, partition};
    }
    const uint64_t begin = partition;
    if (partition_bytes == 0) {
      return {static_cast<uint32_t>(begin * partitions / of),
              static_cast<uint32_t>(((begin + 1) * partitions + of - 1) / of - 1)};
    }
    const uint64_t bytes = total_bytes() / of;
    return {static_cast<uint32_t>(begin * bytes / partition_bytes),
            static_cast<uint32_t>(((begin + 1) * bytes - 1) / partition_bytes)};
  }

  // A run of neighbours among partitions: `count` from `first` on, in the unit.
  struct Run {
    uint32_t first;
    uint32_t count;
    uint64_t bits() const { return BitsBetween(first, first + count - 1); }
  };
  // Takes the first run out of `bits`, which is not 0.
  static Run TakeRun(uint64_t* bits) {
    const auto first = static_cast<uint32_t>(std::countr_zero(*bits));
    const auto count = static_cast<uint32_t>(std::countr_one(*bits >> first));
    const Run run{first, count};
    *bits &= ~run.bits();
    return run;
  }
};

}  // namespace ferry::mpi
