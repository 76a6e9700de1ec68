// How the words of the shared blocks (shared_words.h) are used: who readies partitions, who takes
// them, and how that fits with the receiver's word that data may be moved.
//
// A partition is moved once: by whoever takes its bit, and that only in a round that the receiver
// has cleared. The sender adds to `ready` and then looks at `cleared`; the receiver raises
// `cleared` and then looks at `ready`; all four in one order that both agree on. So at least one of
// the two sees what the other has done, and takes the partition.
//
// Calling thread: any, of any process that maps the block. Nothing blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client/mpi/partitioned/shared_words.h"
#include "client/mpi/partitioned/units.h"
#include "shm/atomic.h"

namespace ferry::mpi {

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
  // null: has one more before the unit can be seen to be full with that, and still has it if
  // is_full is returned. Where it is not, the block may be gone at once: the round may have ended.
  struct Marked {
    uint64_t again;  // these were
    bool is_full;    // with these all of them are
  };
  // Exchanges, not an addition: so what is wrong in the program disturbs nothing, and a caller
  // knows before others do that it makes the unit full.
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
        // Pairs with the look at the count by whoever has seen that the unit is full.
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
  // Whether data of this round may be moved.
  bool IsCleared(uint64_t round) const {
    return shm::Load(block_->cleared, std::memory_order_seq_cst) >= round;
  }

  // Takes what is ready and not taken by others; 0: nothing, also once the round is over. The
  // caller moves it. The round has been cleared.
  uint64_t Take(uint32_t unit, uint64_t round, bool only_full) const {
    UnitWords& words = of(unit);
    const uint64_t full = units_.FullOf(unit);
    uint64_t taken = shm::LoadAcquire(words.taken);
    while (BitsIn(taken, round, full) < full) {
      // Pairs with Mark. Of a later round only if `taken` has changed, too.
      const uint64_t ready =
          BitsIn(shm::Load(words.ready, std::memory_order_seq_cst), round, full) & full;
      const uint64_t bits = ready & ~BitsIn(taken, round, full);
      if (bits == 0 || (only_full && ready != full)) {
        return 0;
      }
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
  bool IsTaken(uint32_t unit, uint64_t round) const {
    return TakenBits(unit, round) == units_.FullOf(unit);
  }

 private:
  SenderBlock* block_ = nullptr;
  Units units_;
  std::byte* words_ = nullptr;
  uint64_t stride_ = 0;
};

// The words of arrivals, of a receiver's block or in the like of it.
class ArrivalWords {
 public:
  ArrivalWords() = default;
  ArrivalWords(uint64_t* words, const Units& units) : words_(words), units_(units) {}

  bool is_there() const { return words_ != nullptr; }
  uint64_t& of(uint32_t unit) const { return words_[unit]; }
  // The data are there. Before the caller looks whether the receiver rests.
  void Add(uint32_t unit, uint64_t bits) const {
    // Pairs with Bits of the receiver's threads: publishes the data.
    (void)shm::FetchAdd(words_[unit], bits, std::memory_order_seq_cst);
  }
  // The same of all of the unit's partitions at once, by the only one who moves any of them in this
  // round. Does not wait for the line: the caller may look too early whether the receiver rests, so
  // that this rests its time out, which is rare.
  void Fill(uint32_t unit, uint64_t round) const {
    shm::StoreRelease(words_[unit], BaseOf(round + 1, units_.FullOf(unit)));  // Pairs likewise.
  }
  uint64_t Bits(uint32_t unit, uint64_t round) const {
    return BitsIn(shm::LoadAcquire(words_[unit]), round, units_.FullOf(unit));
  }
  bool IsFull(uint32_t unit, uint64_t round) const {
    return Bits(unit, round) == units_.FullOf(unit);
  }
  // Whether these partitions are there, in a round of which the words tell.
  bool Have(const Units::Needed& needed, uint64_t round) const {
    const uint32_t last_unit = units_.UnitOf(needed.last);
    for (uint32_t unit = units_.UnitOf(needed.first); unit <= last_unit; ++unit) {
      const uint64_t bits = units_.BitsOf(unit, needed.first, needed.last);
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
