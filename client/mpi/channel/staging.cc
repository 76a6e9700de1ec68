#include "client/mpi/channel/staging.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLeastBlock = 4096;
// What is registered at a time at most, in use or not.
constexpr size_t kMostRegistered = size_t{32} << 20;

class Pool {
 public:
  void* Take(size_t size_bytes) {
    const size_t block_bytes = std::bit_ceil(std::max(size_bytes, kLeastBlock));
    {
      std::lock_guard lock(mutex_);
      if (const auto idle = idle_.find(block_bytes); idle != idle_.end()) {
        void* const memory = idle->second;
        idle_.erase(idle);
        return memory;
      }
      if (block_bytes <= kMostRegistered - registered_) {
        StatusOr<void*> made =
            front_end->AllocateMemory(block_bytes, client::MemoryKind::kPinned, 0);
        if (made.ok()) {
          registered_ += block_bytes;
          blocks_[*made] = block_bytes;
          return *made;
        }
      }
    }
    return std::aligned_alloc(kAlignment, (size_bytes + kAlignment) / kAlignment * kAlignment);
  }

  void Give(void* memory) {
    std::lock_guard lock(mutex_);
    const auto block = blocks_.find(memory);
    if (block == blocks_.end()) {
      std::free(memory);
    } else {
      idle_.emplace(block->second, memory);
    }
  }

 private:
  std::mutex mutex_;
  size_t registered_ = 0;
  std::unordered_map<void*, size_t> blocks_;  // of registered memory
  std::multimap<size_t, void*> idle_;         // of those, by size
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Pool& pool = *new Pool();

}  // namespace

void* TakeStaging(size_t size_bytes) { return pool.Take(size_bytes); }

void GiveStaging(void* memory) { pool.Give(memory); }

}  // namespace ferry::mpi
