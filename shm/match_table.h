// MPI matching over a table in shared memory (shm/layout/match_layout.h).
//
// Semantics (MPI 5.0, section 3.5): messages of one sender and communicator match in the order they
// were sent; receives match in the order they were posted; kAnySource and kAnyTag match any source
// and tag in their communicator context. Finding costs one bucket for an exact or wildcard receive
// and at most four for an arrival.
//
// Calling thread: the lease holder, one at a time. Mutations are added to the journal's open
// transaction; the caller may add stores of its own and then commits. At most one mutation per
// transaction. Nothing blocks or allocates. Every traversal is bounded by the pool's size: a cycle
// or an index out of range (a corrupt table) is reported as kCorrupt through `corrupt()`, and finds
// nothing. A corrupt table changes no more either: only closing the session helps.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/fault.h"
#include "shm/journal.h"
#include "shm/layout/match_layout.h"

namespace ferry::shm {

struct Envelope {
  uint32_t context;
  int32_t source;
  int32_t tag;
};

// The journal entries that one mutation takes at most; a transaction's other stores must fit in the
// rest.
inline constexpr uint32_t kMatchMaxStores = 13;

class MatchTable {
 public:
  MatchTable() = default;
  // `journal` outlives the table, and the table lies in one of its segments (else it counts as
  // corrupt).
  MatchTable(MatchTableLayout* layout, Journal* journal);

  // Prepares zeroed memory for `capacity` entries (entry 0 is never used).
  static void Initialize(MatchTableLayout* layout, uint32_t capacity);

  // The earliest unexpected message that a receive for `pattern` matches; 0 = none.
  uint32_t FindUnexpected(const Envelope& pattern);
  // The RTS of another node's rank that came by `lane`, and whose core knows it by `key`, among
  // the unexpected messages with that envelope (no wildcards); 0 = none.
  uint32_t FindRts(const Envelope& envelope, uint32_t lane, uint64_t key);
  // The earliest posted receive that a message with `envelope` (no wildcards) matches; 0 = none.
  uint32_t FindPosted(const Envelope& envelope);

  // Adds a posted receive; returns its entry, or 0 when the pool is used up (nothing was added).
  uint32_t Post(const Envelope& pattern, uint32_t request);
  // Adds an unexpected message; returns its entry, or 0 when the pool is used up.
  uint32_t AddUnexpected(const Descriptor& descriptor, uint32_t lane);
  // Removes an entry of either sort and gives it back to the pool.
  void Remove(uint32_t entry);

  // The entry with this index; one in state kFree for an index out of range.
  const MatchEntry& Entry(uint32_t entry) const;
  uint32_t posted_count() const { return layout_->posted_count; }
  // Any thread, a hint: transactions of others may change it meanwhile.
  uint32_t unexpected_count() const { return LoadRelaxed(layout_->unexpected_count); }

  // Visits entries of the pool in index order, from `from` itself on (0 = first), to find the next
  // posted one that names `source` or kAnySource; 0 = none. For failing the receives of a dead
  // peer: go on from the result + 1.
  uint32_t NextPostedFrom(int32_t source, uint32_t from);
  // Finds, in the same way, the next RTS of `source`, a rank of another node, that came by `lane`
  // since the last LoseRtsFrom.
  uint32_t NextRtsFrom(int32_t source, uint32_t lane, uint32_t from) const;
  // Marks those RTSs of `source` that came by `lane` and have all of `flags` with kFlagLinkDown;
  // they stay. No transaction: marking twice does no harm.
  void LoseRtsFrom(int32_t source, uint32_t lane, uint8_t flags);

  // kOk, or kCorrupt once a traversal has met an impossible index or state.
  ErrorCode corrupt() const {
    return fault_.kind == FaultKind::kNone ? ErrorCode::kOk : ErrorCode::kCorrupt;
  }
  // The first such fault.
  const Fault& fault() const { return fault_; }
  // Entries that FindUnexpected and FindPosted looked at since this object was made (statistics).
  uint64_t traversal_steps() const { return traversal_steps_; }

 private:
  // An entry from the pool, and the words of the pool once it is taken.
  struct Taken {
    uint32_t entry;  // 0 = none
    uint32_t free_first;
    uint32_t fresh;
  };

  template <typename Accept>
  uint32_t FindInChain(const MatchBucket& bucket, uint32_t chain, MatchState state,
                       const Envelope& key, Accept&& accept);
  Taken Take();
  bool CanAppend(const MatchBucket& bucket);
  void Append(MatchBucket* bucket, uint32_t chain, uint32_t entry);
  void Unlink(MatchBucket* bucket, uint32_t chain, uint32_t entry);
  void SetTaken(const Taken& taken, MatchState state);
  bool IsIndex(uint32_t entry) const { return entry < capacity_; }
  uint32_t Corrupt(const Fault& fault);
  uint32_t CorruptIndex(uint32_t entry) {
    return Corrupt({FaultKind::kMatchIndex, entry, capacity_});
  }
  uint32_t CorruptState(uint32_t entry) {
    return Corrupt({FaultKind::kMatchState, entry, entries_[entry].state});
  }

  MatchTableLayout* layout_ = nullptr;
  MatchEntry* entries_ = nullptr;
  Journal* journal_ = nullptr;
  uint32_t capacity_ = 0;  // read once: later changes of the word bound nothing
  Fault fault_;
  uint64_t traversal_steps_ = 0;
};

}  // namespace ferry::shm
