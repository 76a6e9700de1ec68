// Writes a list of stores so that a kill at any instruction leaves all or none of them, once the next
// lease holder has called Recover (shm/layout/journal_layout.h). A redo log in shared memory.
//
// Calling thread: the lease holder. Nothing blocks or allocates. The words are such that only the lease
// holder writes them; a word is set at most once per transaction, and reads before Commit see old values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout/journal_layout.h"

namespace ferry::shm {

class Journal {
 public:
  Journal() = default;
  // `session` and `inbox` are where this process maps the two segments; `*_bytes` bound what Recover
  // believes.
  Journal(JournalLayout* layout, std::byte* session, uint64_t session_bytes, std::byte* inbox,
          uint64_t inbox_bytes);

  // Adds a store to the open transaction (the first one opens it).
  void Set(uint32_t* word, uint32_t value);
  void Set(int32_t* word, int32_t value) { Set(reinterpret_cast<uint32_t*>(word), static_cast<uint32_t>(value)); }
  void Set(uint64_t* word, uint64_t value);
  // Adds the stores of `size_bytes` (a multiple of 4; `destination` 4-byte aligned) from `source`.
  void SetBytes(void* destination, const void* source, uint32_t size_bytes);

  // Publishes the list, applies it in order with release stores, and closes the transaction.
  void Commit();
  // Forgets the open transaction: nothing was stored.
  void Abandon() { count_ = 0; }

  // Applies what a dead holder left. Called by whoever takes the lease over from a dead one, before
  // anything else. False: the list is corrupt (out of bounds); nothing was applied.
  bool Recover();

 private:
  JournalLayout* layout_ = nullptr;
  std::byte* session_ = nullptr;
  uint64_t session_bytes_ = 0;
  std::byte* inbox_ = nullptr;
  uint64_t inbox_bytes_ = 0;
  uint32_t count_ = 0;
};

}  // namespace ferry::shm
