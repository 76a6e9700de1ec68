#include "client/memory/bounce_buffer_pool.h"

#include "shm/layout/session_layout.h"

namespace ferry::client {

void* BounceBufferPool::Take(uint64_t size_bytes) {
  const auto found = idle_.lower_bound(size_bytes);
  if (found == idle_.end() || found->first / 2 > shm::RoundUpToPage(size_bytes)) {
    return nullptr;
  }
  void* const block = found->second;
  TakeOut(blocks_.at(block));
  return block;
}

void BounceBufferPool::Add(void* block, uint64_t size_bytes) {
  blocks_[block] = {size_bytes, idle_.end(), ages_.end()};
}

bool BounceBufferPool::Give(void* block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    return false;
  }
  Block& known = found->second;
  known.by_size = idle_.emplace(known.size_bytes, block);
  known.by_age = ages_.insert(ages_.end(), block);
  idle_bytes_ += known.size_bytes;
  return true;
}

void* BounceBufferPool::Evict(uint64_t limit_bytes) {
  if (ages_.empty() || idle_bytes_ <= limit_bytes) {
    return nullptr;
  }
  void* const block = ages_.front();
  const auto found = blocks_.find(block);
  TakeOut(found->second);
  blocks_.erase(found);
  return block;
}

void BounceBufferPool::TakeOut(Block& block) {
  idle_bytes_ -= block.size_bytes;
  idle_.erase(block.by_size);
  ages_.erase(block.by_age);
}

}  // namespace ferry::client
