// Writes a list of stores so that a kill at any instruction leaves all or none of them, once the
// next lease holder has called Recover (shm/layout/journal_layout.h). A redo log in shared memory.
//
// Calling thread: the lease holder. Nothing blocks or allocates. The words are such that only the
// lease holder writes them; a word is set at most once per transaction, and reads before Commit see
// old values. A transaction holds at most kJournalEntries stores; the longest mutation of the match
// table takes kMatchMaxStores of them (shm/match_table.h), the rest is the caller's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shm/atomic.h"
#include "shm/layout/journal_layout.h"

namespace ferry::shm {

// Bits of JournalEntry::place; the others are the word's offset in its segment.
inline constexpr uint64_t kJournalInbox = uint64_t{1} << 63;
inline constexpr uint64_t kJournalWide = uint64_t{1} << 62;

class Journal {
 public:
  Journal() = default;
  // `session` and `inbox` are the addresses at which this process maps the two segments; `*_bytes`
  // are the bounds against which Recover checks each store.
  Journal(JournalLayout* layout, std::byte* session, uint64_t session_bytes, std::byte* inbox,
          uint64_t inbox_bytes);

  // Adds a store to the open transaction (the first one opens it). One store too many, or a word
  // that lies in neither segment, spoils the whole transaction: Commit then stores nothing.
  void Set(uint32_t* word, uint32_t value) { Add(word, 0, value); }
  void Set(int32_t* word, int32_t value) { Add(word, 0, static_cast<uint32_t>(value)); }
  void Set(uint64_t* word, uint64_t value) { Add(word, kJournalWide, value); }
  // Adds the stores of `size_bytes` (a multiple of 4; `destination` 4-byte aligned) from `source`:
  // one for each aligned 8 bytes, one for each 4 bytes that are left at either end.
  void SetBytes(void* destination, const void* source, uint32_t size_bytes);

  // Publishes the list, applies it in order with release stores, and closes the transaction. False:
  // the transaction was spoilt and nothing was stored: an index in the segments led out of them.
  bool Commit();
  // Returns true once any transaction was spoilt: the segments hold words that no correct program
  // writes.
  bool spoilt() const { return spoilt_; }
  // Forgets the open transaction: nothing was stored.
  void Abandon() { count_ = 0; }

  // Applies the list that a dead holder left. Its successor in the lease calls this before anything
  // else. False: the list is corrupt (out of bounds); nothing was applied.
  bool Recover();

  // Stores in the open transaction; more than kJournalEntries once it is spoilt.
  uint32_t pending() const { return count_; }
  // Returns true if [start, start + size_bytes) lies in one of the two segments.
  bool Covers(const void* start, uint64_t size_bytes) const;

 private:
  static constexpr uint32_t kSpoilt = kJournalEntries + 1;
  static constexpr uint64_t kWideStore = 1;  // words are aligned, so this bit of `word` is free

  // A store to a word of this process that was found to lie in one of the segments.
  struct Store {
    uint64_t word;
    uint64_t value;
  };

  void Add(void* word, uint64_t width, uint64_t value);
  void Apply(uint32_t count) const;
  bool IsValid(const JournalEntry& entry) const;
  Store StoreOf(const JournalEntry& entry) const;

  JournalLayout* layout_ = nullptr;
  std::byte* session_ = nullptr;
  uint64_t session_bytes_ = 0;
  std::byte* inbox_ = nullptr;
  uint64_t inbox_bytes_ = 0;
  uint32_t count_ = 0;
  bool spoilt_ = false;
  // Apply stores from this list. Others can write to the published one, which is for successors
  // only.
  Store stores_[kJournalEntries];
};

inline void Journal::Add(void* word, uint64_t width, uint64_t value) {
  const uint64_t address = reinterpret_cast<uint64_t>(word);
  uint64_t place = address - reinterpret_cast<uint64_t>(session_);
  bool inside = place < session_bytes_;
  if (!inside) {
    place = address - reinterpret_cast<uint64_t>(inbox_);
    inside = place < inbox_bytes_;
    place |= kJournalInbox;
  }
  if (!inside || count_ >= kJournalEntries) [[unlikely]] {
    count_ = kSpoilt;
    return;
  }
  layout_->entries[count_] = {place | width, value};
  stores_[count_++] = {width != 0 ? address | kWideStore : address, value};
}

inline void Journal::Apply(uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i) {
    const auto [word, value] = stores_[i];
    // Release, so that no store overtakes the publication of the list.
    if ((word & kWideStore) != 0) {
      StoreRelease(*reinterpret_cast<uint64_t*>(word & ~kWideStore), value);
    } else {
      StoreRelease(*reinterpret_cast<uint32_t*>(word), static_cast<uint32_t>(value));
    }
  }
}

inline bool Journal::Commit() {
  const uint32_t count = std::exchange(count_, 0);
  if (count > kJournalEntries) [[unlikely]] {
    spoilt_ = true;
    return false;
  }
  StoreRelease(layout_->count, count);  // Pairs with Journal::Recover: publishes the entries.
  Apply(count);
  StoreRelease(layout_->count, 0);  // Pairs with Journal::Recover: every store was done.
  // A kill stops one thread between two of its instructions, as a signal does: the compiler must
  // not move the next transaction's stores to where this list still counts.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace ferry::shm
