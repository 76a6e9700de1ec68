// SenderWords and ArrivalWords: how partitions are readied and taken by the words of the shared
// blocks (shared_words.h), and how that fits with the receiver's word `cleared`, which allows data
// to be moved.
//
// A part is moved once: by the thread that takes its bit, and only in a round that the receiver has
// cleared. The sender adds to `ready` and then looks at `cleared`; the receiver raises `cleared`
// and then looks at `ready`; all four in one order that both agree on. So at least one of the two
// sees what the other has done, and takes the partition.
//
// Calling thread: any, of any process that maps the block. Nothing blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "mpi/partitioned/shared_words.h"
#include "mpi/partitioned/units.h"
#include "shm/atomic.h"

namespace ferry::mpi {

// How two sides that copy share the work. The receiver begins with the first parts and the sender
// with the last ones, each with large copies of its half: so in each round it mostly copies the
// same data, and finds them in its core's caches. A side that has copied its half helps the other
// one, and leaves it half of the parts that are ready there.
class Share {
 public:
  Share() = default;  // takes all ready parts
  Share(const Units& units, bool is_last)
      : units_(units),
        is_last_(is_last),
        least_(PartsOf(kLeastCopied)),
        most_(std::max(PartsOf(units.bytes_at_once()), least_)) {}

  // Chooses this side's share of a unit's parts that can be taken. `is_alone`: no other unit can be
  // taken, so the share leaves some parts to the other side.
  uint64_t In(uint32_t unit, uint64_t bits, bool is_alone) const {
    if (most_ == 0 || units_.PartsIn(unit) <= least_) {
      return bits;
    }
    const uint64_t own = bits & OwnOf(unit);
    const auto half = static_cast<uint32_t>(std::popcount(bits) + 1) / 2;
    const uint32_t count = own != 0 && !is_alone ? most_ : std::clamp(half, least_, most_);
    return RunOf(own != 0 ? own : bits, count).bits();
  }
  // Returns true if some parts of the unit lie in this side's half.
  bool IsOwn(uint32_t unit) const { return most_ == 0 || OwnOf(unit) != 0; }
  bool is_last() const { return is_last_; }

 private:
  // Fewer bytes are not worth a copy of their own.
  static constexpr uint64_t kLeastCopied = 64 << 10;

  uint32_t PartsOf(uint64_t bytes) const {
    const uint64_t parts = bytes / std::max<uint64_t>(units_.part_bytes(), 1);
    return static_cast<uint32_t>(std::clamp<uint64_t>(parts, 1, kPartitionsPerUnit));
  }
  // The bits of the unit's parts that lie in this side's half.
  uint64_t OwnOf(uint32_t unit) const {
    const uint64_t begin = uint64_t{unit} * units_.per_unit * units_.pieces;
    const uint64_t middle = uint64_t{units_.partitions} * units_.pieces / 2;
    const uint64_t before = std::clamp<uint64_t>(middle, begin, begin + 64) - begin;
    const uint64_t firsts = FullMask(static_cast<uint32_t>(before));
    return units_.FullOf(unit) & (is_last_ ? ~firsts : firsts);
  }
  Units::Run RunOf(uint64_t bits, uint32_t most) const {
    return is_last_ ? Units::LastRun(bits, most) : Units::FirstRun(bits, most);
  }

  Units units_;
  bool is_last_ = false;
  uint32_t least_ = 1;
  uint32_t most_ = 0;
};

// A sender's block, seen by either side.
class SenderWords {
 public:
  SenderWords() = default;
  SenderWords(void* block, const Units& units)
      : block_(static_cast<SenderBlock*>(block)),
        units_(units),
        words_(static_cast<std::byte*>(block) + sizeof(SenderBlock)),
        stride_(UnitStride(units.count())) {}

  bool is_there() const { return block_ != nullptr; }
  SenderBlock& block() const { return *block_; }
  UnitWords& of(uint32_t unit) const {
    return *static_cast<UnitWords*>(static_cast<void*>(words_ + unit * stride_));
  }

  // Marks partitions of the unit. Those that were marked before stay as they are. `acting`, if not
  // null, is incremented before other threads can see that these partitions make the unit full, and
  // stays so if is_full is returned. Otherwise the block may be gone at once, since the round may
  // have ended.
  struct Marked {
    uint64_t again;  // bits that were marked before
    bool is_full;    // these bits have made the unit full
  };
  // It exchanges the word rather than add to it: so a program's error does not disturb the word,
  // and a caller knows before other threads do that it makes the unit full.
  Marked Mark(uint32_t unit, uint64_t bits, uint64_t round,
              std::atomic<uint32_t>* acting = nullptr) const {
    UnitWords& words = of(unit);
    const uint64_t full = units_.FullOf(unit);
    uint64_t seen = shm::LoadRelaxed(words.ready);
    bool is_counted = false;
    for (;;) {
      const uint64_t before = BitsIn(seen, round, full);
      const uint64_t fresh = bits & ~before;
      const Marked marked{bits & before, fresh != 0 && before + fresh == full};
      if (acting != nullptr && marked.is_full != is_counted) {
        // Pairs with the look at the count by a thread that has seen the full unit.
        (void)(is_counted ? acting->fetch_sub(1, std::memory_order_release)
                          : acting->fetch_add(1, std::memory_order_relaxed));
        is_counted = marked.is_full;
      }
      // Pairs with Take of either side: publishes the program's data. Before IsCleared, too.
      if (fresh == 0 ||
          shm::CompareExchange(words.ready, seen, seen + fresh, std::memory_order_seq_cst)) {
        return marked;
      }
    }
  }
  // Mark for a thread that is the only one to mark or act: only the call that makes the unit full
  // costs more than a store.
  Marked MarkAlone(uint32_t unit, uint64_t bits, uint64_t round,
                   std::atomic<uint32_t>* acting) const {
    UnitWords& words = of(unit);
    const uint64_t full = units_.FullOf(unit);
    const uint64_t seen = shm::LoadRelaxed(words.ready);
    const uint64_t before = BitsIn(seen, round, full);
    const uint64_t fresh = bits & ~before;
    const Marked marked{bits & before, fresh != 0 && before + fresh == full};
    // Pairs as in Mark.
    if (marked.is_full) {
      acting->store(acting->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      (void)shm::Exchange(words.ready, seen + fresh, std::memory_order_seq_cst);
    } else if (fresh != 0) {
      shm::StoreRelease(words.ready, seen + fresh);
    }
    return marked;
  }
  // Returns true if the receiver allows data of this round to be moved.
  bool IsCleared(uint64_t round) const {
    return shm::Load(block_->cleared, std::memory_order_seq_cst) >= round;
  }

  // Takes parts that are ready and not taken yet, or this side's share of them. Returns their bits,
  // which the caller moves; 0: none, also once the round is over. Call it only in a cleared round.
  uint64_t Take(uint32_t unit, uint64_t round, bool only_full, const Share& share = {},
                bool is_alone = false) const {
    UnitWords& words = of(unit);
    const uint64_t full = units_.FullOf(unit);
    uint64_t taken = shm::LoadAcquire(words.taken);
    while (BitsIn(taken, round, full) < full) {
      // Pairs with Mark. The bits are of a later round only if `taken` has changed, too.
      const uint64_t ready =
          BitsIn(shm::Load(words.ready, std::memory_order_seq_cst), round, full) & full;
      const uint64_t all = ready & ~BitsIn(taken, round, full);
      if (all == 0 || (only_full && ready != full)) {
        return 0;
      }
      const uint64_t bits = share.In(unit, all, is_alone);
      if (shm::CompareExchange(words.taken, taken, taken + bits, std::memory_order_acq_rel)) {
        return bits;
      }
    }
    return 0;
  }
  uint64_t ReadyBits(uint32_t unit, uint64_t round) const {
    return BitsIn(shm::LoadAcquire(of(unit).ready), round, units_.FullOf(unit));
  }
  uint64_t TakenBits(uint32_t unit, uint64_t round) const {
    return BitsIn(shm::LoadAcquire(of(unit).taken), round, units_.FullOf(unit));
  }
  bool IsReady(uint32_t unit, uint64_t round) const {
    return ReadyBits(unit, round) == units_.FullOf(unit);
  }
  // Returns true if parts of the unit at which a side would look next have been taken, or there is
  // no such unit.
  bool IsNextTaken(uint32_t unit, uint64_t round, const Share& share) const {
    if (share.is_last()) {
      return unit == 0 || TakenBits(unit - 1, round) != 0;
    }
    return unit + 1 == units_.count() || TakenBits(unit + 1, round) != 0;
  }
  bool IsTaken(uint32_t unit, uint64_t round) const {
    return TakenBits(unit, round) == units_.FullOf(unit);
  }

 private:
  SenderBlock* block_ = nullptr;
  Units units_;
  std::byte* words_ = nullptr;
  uint64_t stride_ = 0;
};

// The words of arrivals, in a receiver's block or in an array of the same form.
class ArrivalWords {
 public:
  ArrivalWords() = default;
  ArrivalWords(uint64_t* words, const Units& units) : words_(words), units_(units) {}

  bool is_there() const { return words_ != nullptr; }
  uint64_t& of(uint32_t unit) const { return words_[unit]; }
  // Marks parts whose data are there. Call it before looking whether the receiver rests.
  void Add(uint32_t unit, uint64_t bits) const {
    // Pairs with Bits of the receiver's threads: publishes the data.
    (void)shm::FetchAdd(words_[unit], bits, std::memory_order_seq_cst);
  }
  // Marks all parts of the unit as arrived. The calling thread must be the only mover of the unit
  // in this round. Does not wait for the cache line: the caller may look too early whether the
  // receiver rests, so that the receiver rests its time out, which is rare.
  void Fill(uint32_t unit, uint64_t round) const {
    shm::StoreRelease(words_[unit], BaseOf(round + 1, units_.FullOf(unit)));  // Pairs likewise.
  }
  uint64_t Bits(uint32_t unit, uint64_t round) const {
    return BitsIn(shm::LoadAcquire(words_[unit]), round, units_.FullOf(unit));
  }
  bool IsFull(uint32_t unit, uint64_t round) const {
    return Bits(unit, round) == units_.FullOf(unit);
  }
  // Returns true if these parts have arrived in `round`, which is the words' current round.
  bool Have(const Units::Needed& needed, uint64_t round) const {
    const uint32_t last_unit = units_.UnitOfPart(needed.last);
    for (uint32_t unit = units_.UnitOfPart(needed.first); unit <= last_unit; ++unit) {
      const uint64_t bits = units_.BitsOfParts(unit, needed);
      if ((Bits(unit, round) & bits) != bits) {
        return false;
      }
    }
    return true;
  }
  // The first unit from `from` on that is not full; count() if all are.
  uint32_t FirstMissing(uint32_t from, uint64_t round) const {
    while (from < units_.count() && IsFull(from, round)) {
      ++from;
    }
    return from;
  }

 private:
  uint64_t* words_ = nullptr;
  Units units_;
};

}  // namespace ferry::mpi
