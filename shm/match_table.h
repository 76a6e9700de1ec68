// MPI matching over a table in shared memory (shm/layout/match_layout.h).
//
// Semantics (MPI 5.0, section 3.5): messages of one sender and communicator match in the order they
// were sent; receives match in the order they were posted; kAnySource and kAnyTag match anything in
// their communicator context. Finding costs one bucket for an exact or wildcard receive and at most
// four for an arrival.
//
// Calling thread: the lease holder, one at a time. Mutations are added to the journal's open
// transaction; the caller may add stores of its own and then commits. At most one mutation per
// transaction. Nothing blocks or allocates. Every traversal is bounded by the pool's size: a cycle or an
// index out of range (a corrupt table) is reported as kCorrupt through `corrupt()`, and finds nothing.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/journal.h"
#include "shm/layout/match_layout.h"

namespace ferry::shm {

struct Envelope {
  uint32_t context;
  int32_t source;
  int32_t tag;
};

class MatchTable {
 public:
  MatchTable() = default;
  MatchTable(MatchTableLayout* layout, Journal* journal);

  // Prepares zeroed memory for `capacity` entries (entry 0 is never used).
  static void Initialize(MatchTableLayout* layout, uint32_t capacity);

  // The earliest unexpected message that a receive for `pattern` matches; 0 = none.
  uint32_t FindUnexpected(const Envelope& pattern);
  // The earliest posted receive that a message with `envelope` (no wildcards) matches; 0 = none.
  uint32_t FindPosted(const Envelope& envelope);

  // Adds a posted receive; returns its entry, or 0 when the pool is used up (nothing was added).
  uint32_t Post(const Envelope& pattern, uint32_t request);
  // Adds an unexpected message; returns its entry, or 0 when the pool is used up.
  uint32_t AddUnexpected(const Descriptor& descriptor, uint32_t lane);
  // Removes an entry of either sort and gives it back to the pool.
  void Remove(uint32_t entry);

  const MatchEntry& Entry(uint32_t entry) const;
  uint32_t posted_count() const;
  uint32_t unexpected_count() const;

  // Visits entries of the pool in index order, from `from` (0 = first), to find the next posted one
  // that names `source` or kAnySource; 0 = none. For failing the receives of a dead peer.
  uint32_t NextPostedFrom(int32_t source, uint32_t from);

  // kOk, or kCorrupt once a traversal met something impossible.
  ErrorCode corrupt() const { return corrupt_; }

 private:
  MatchTableLayout* layout_ = nullptr;
  Journal* journal_ = nullptr;
  ErrorCode corrupt_ = ErrorCode::kOk;
};

}  // namespace ferry::shm
