// Bounce buffers of device memory that are worth keeping from one message to the next: each is
// registered with the GPU backend, which takes longer than to copy a message.
//
// Only keeps the records: the caller makes and releases the blocks. Not thread-safe: the caller
// locks.
#pragma once

#include <cstdint>
#include <list>
#include <map>

namespace ferry::client {

class BounceBufferPool {
 public:
  // Takes the shortest idle block of at least `size_bytes`; null if there is none, or only blocks
  // more than twice as long as the pages that these bytes need. The block is in use until Give.
  void* Take(uint64_t size_bytes);
  // Adds a new block, which is in use.
  void Add(void* block, uint64_t size_bytes);
  // Marks the block idle. False: it does not belong to the pool.
  bool Give(void* block);
  // If the idle blocks hold more than `limit_bytes`, removes the one that was idle longest and
  // returns its address; else null. The caller releases it.
  void* Evict(uint64_t limit_bytes);
  uint64_t idle_bytes() const { return idle_bytes_; }

 private:
  using BySize = std::multimap<uint64_t, void*>;
  struct Block {
    uint64_t size_bytes;
    BySize::iterator by_size;  // while it is idle, as the next
    std::list<void*>::iterator by_age;
  };

  void TakeOut(Block& block);

  std::map<const void*, Block> blocks_;
  BySize idle_;
  std::list<void*> ages_;  // idle blocks, the oldest first
  uint64_t idle_bytes_ = 0;
};

}  // namespace ferry::client
