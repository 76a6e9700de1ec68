// Blocks that stand in for device memory and are worth keeping from one message to the next: each
// is registered with the GPU backend, which takes longer than to copy a message.
//
// Only the books: the blocks are made, and released, by who uses this. Not thread-safe: the caller
// locks.
#pragma once

#include <cstdint>
#include <list>
#include <map>

namespace ferry::client {

class ShadowPool {
 public:
  // An idle block of at least `size_bytes`, the shortest one, or null: none, or only such as are
  // more than twice as long. It is in use until Give.
  void* Take(uint64_t size_bytes);
  // Makes a new block known, which is in use.
  void Add(void* block, uint64_t size_bytes);
  // The block is idle. False: it is none of the pool's.
  bool Give(void* block);
  // Takes the block out that was idle for longest if the idle ones hold more than `limit_bytes`;
  // its address, or null. The caller releases it.
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
  std::list<void*> ages_;  // of the idle ones, the oldest first
  uint64_t idle_bytes_ = 0;
};

}  // namespace ferry::client
