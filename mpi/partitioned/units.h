// Transfer units of partitioned messages: up to 32 neighbouring partitions of the sender's that
// travel together; or a single large one, which travels in up to 32 *pieces*, so that both sides
// can copy it, and the part that has arrived can be used. State is kept per unit, in words of 64
// bits that only grow.
//
// A *word* counts, for each round, the bits of the unit's *parts*, which are its partitions or
// pieces: bit i is added once part i of the unit has come so far (has been readied, taken, has
// arrived). Over a round the sum of all bits, the unit's `full` mask, is added, in whatever order.
// In round r (the first is 1) the word begins at (r - 1) x full, and its difference to that shows
// which parts have come so far; nothing is ever cleared, additions may come in any order, from any
// thread, daemon or NIC, and the thread that adds the last bit sees that it was the last. This
// follows Temucin and others (ExaMPI 2024): counters with a threshold for each transfer.
//
// A unit has 32 parts at most, half as many as a word has bits: so a thread that comes late sees in
// a word that its round is over. With 64 the sums of two rounds would look alike.
//
// Plain arithmetic: any thread, nothing blocks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ferry::mpi {

inline constexpr uint32_t kPartitionsPerUnit = 32;  // at most, or pieces

// The bits of the first `parts` parts.
inline constexpr uint64_t FullMask(uint32_t parts) {
  return parts >= 64 ? ~uint64_t{0} : (uint64_t{1} << parts) - 1;
}
// Bits [first, last] of a unit.
inline constexpr uint64_t BitsBetween(uint32_t first, uint32_t last) {
  return FullMask(last + 1) & ~FullMask(first);
}
// The value of a unit's word when round `round` begins.
inline constexpr uint64_t BaseOf(uint64_t round, uint64_t full) { return (round - 1) * full; }
// The bits of the parts that have come so far in that round; at least `full`: the round is over, or
// a later one has begun.
inline constexpr uint64_t BitsIn(uint64_t word, uint64_t round, uint64_t full) {
  return word - BaseOf(round, full);
}

// The program's limits of units, from info keys (mpix_partitioned.h).
struct UnitLimits {
  uint64_t min_bytes = 0;  // 0: the best value for the way
  uint32_t max_units = UINT32_MAX;
};

// How the sender's buffer is cut: `partitions` of `partition_bytes` each, `per_unit` to a unit (the
// last one may have fewer). Where `per_unit` is 1, a partition is cut into `pieces`; otherwise
// `pieces` is 1.
struct Units {
  uint32_t partitions = 1;
  uint32_t per_unit = 1;
  uint64_t partition_bytes = 0;
  uint32_t pieces = 1;

  uint32_t count() const { return (partitions + per_unit - 1) / per_unit; }
  uint64_t total_bytes() const { return partitions * partition_bytes; }
  uint32_t UnitOf(uint32_t partition) const { return partition / per_unit; }
  // The bits of a partition, in its unit.
  uint64_t BitsOf(uint32_t partition) const { return FullMask(pieces) << partition % per_unit; }
  uint32_t PartitionsIn(uint32_t unit) const {
    return std::min(per_unit, partitions - unit * per_unit);
  }
  uint32_t PartsIn(uint32_t unit) const { return PartitionsIn(unit) * pieces; }
  uint64_t FullOf(uint32_t unit) const { return FullMask(PartsIn(unit)); }
  // The bits of those of partitions [first, last] that are in the unit; at least one is.
  uint64_t BitsOf(uint32_t unit, uint32_t first, uint32_t last) const {
    const uint64_t end = uint64_t{last} * pieces + pieces - 1;
    return BitsOfParts(unit, {uint64_t{first} * pieces, end});
  }
  uint64_t unit_bytes() const { return per_unit * partition_bytes; }
  // The size of a part; the last piece of a partition may be smaller.
  uint64_t part_bytes() const {
    return pieces == 1 ? partition_bytes
                       : ((partition_bytes - 1) / pieces / kPieceAlignment + 1) * kPieceAlignment;
  }
  // The most bytes of neighbouring parts that are copied at once: a quarter of the message at most,
  // so that both sides find parts to copy.
  uint64_t bytes_at_once() const {
    return std::max(part_bytes(), std::min<uint64_t>(total_bytes() / 4, 256 << 10));
  }
  // How many partitions to a unit, a power of two, so that a unit has `min_bytes` and there are no
  // more than `max_units` units, as far as 32 partitions to a unit allow that.
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
  // How many pieces to a partition, so that a piece has `least_bytes`.
  static uint32_t Pieces(uint32_t per_unit, uint64_t partition_bytes, uint64_t least_bytes) {
    return per_unit != 1 ? 1
                         : static_cast<uint32_t>(std::clamp<uint64_t>(partition_bytes / least_bytes,
                                                                      1, kPartitionsPerUnit));
  }

  // Parts [first, last], numbered through the whole message.
  struct Needed {
    uint64_t first;
    uint64_t last;
  };
  // The parts that a partition of the receiver needs, which has `of` partitions. Empty partitions
  // are distributed as if they had bytes.
  Needed NeededFor(uint32_t partition, uint32_t of) const {
    const uint64_t begin = partition;
    if (of == partitions) {
      return {begin * pieces, begin * pieces + pieces - 1};
    }
    if (partition_bytes == 0) {
      return {begin * partitions / of, ((begin + 1) * partitions + of - 1) / of - 1};
    }
    const uint64_t bytes = total_bytes() / of;
    return {PartAt(begin * bytes), PartAt((begin + 1) * bytes - 1)};
  }
  // The parts that bytes [begin, end) of a longer receive need, as far as the message goes. All
  // parts, if none of the message comes there.
  Needed NeededForBytes(uint64_t begin, uint64_t end) const {
    const uint64_t last = uint64_t{partitions} * pieces - 1;
    return begin >= total_bytes()
               ? Needed{0, last}
               : Needed{PartAt(begin), end >= total_bytes() ? last : PartAt(end - 1)};
  }
  uint32_t UnitOfPart(uint64_t part) const {
    return static_cast<uint32_t>(part / (uint64_t{per_unit} * pieces));
  }
  // The bits of those of the parts that are in the unit; at least one is.
  uint64_t BitsOfParts(uint32_t unit, const Needed& parts) const {
    const uint64_t begin = uint64_t{unit} * per_unit * pieces;
    const uint64_t last = std::min(parts.last, begin + PartsIn(unit) - 1);
    return BitsBetween(static_cast<uint32_t>(std::max(parts.first, begin) - begin),
                       static_cast<uint32_t>(last - begin));
  }

  // A run of neighbours among parts: `count` from `first` on, in the unit.
  struct Run {
    uint32_t first;
    uint32_t count;
    uint64_t bits() const { return BitsBetween(first, first + count - 1); }
  };
  // FirstRun: the first run of `bits`, which is not 0, or the first `most` parts of that run.
  // LastRun: the last run, or its last `most` parts.
  static Run FirstRun(uint64_t bits, uint32_t most = 64) {
    const auto first = static_cast<uint32_t>(std::countr_zero(bits));
    return {first, std::min(static_cast<uint32_t>(std::countr_one(bits >> first)), most)};
  }
  static Run LastRun(uint64_t bits, uint32_t most = 64) {
    const auto above = static_cast<uint32_t>(std::countl_zero(bits));
    const auto count = std::min(static_cast<uint32_t>(std::countl_one(bits << above)), most);
    return {64 - above - count, count};
  }
  // Takes the first run out of `bits`, or its first `most` parts.
  static Run TakeRun(uint64_t* bits, uint32_t most = 64) {
    const Run run = FirstRun(*bits, most);
    *bits &= ~run.bits();
    return run;
  }
  struct Bytes {
    uint64_t offset;
    uint64_t size;
  };
  // The bytes of the buffer that a run covers.
  Bytes BytesOf(uint32_t unit, const Run& run) const {
    const uint64_t unit_begin = unit * unit_bytes();
    const uint64_t unit_end = std::min(unit_begin + unit_bytes(), total_bytes());
    const uint64_t begin = std::min(unit_begin + run.first * part_bytes(), unit_end);
    return {begin, std::min(unit_begin + (run.first + run.count) * part_bytes(), unit_end) - begin};
  }

 private:
  static constexpr uint64_t kPieceAlignment = 64;

  uint64_t PartAt(uint64_t offset) const {
    const uint64_t partition = offset / partition_bytes;
    return pieces == 1 ? partition : partition * pieces + offset % partition_bytes / part_bytes();
  }
};

}  // namespace ferry::mpi
