#include "mpi/coll/scratch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "client/api/front_end.h"
#include "coll/messages/front_messenger.h"
#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

constexpr size_t kLeastBytes = size_t{64} << 10;
constexpr size_t kMostIdleBytes = size_t{128} << 20;

struct Block {
  void* memory = nullptr;
  size_t size_bytes = 0;
  int device = 0;
};

class Blocks {
 public:
  void* Take(size_t size_bytes, int device) {
    const size_t whole = std::bit_ceil(std::max(size_bytes, kLeastBytes));
    std::lock_guard lock(mutex_);
    const auto fits = [&](const Block& block) {
      return block.size_bytes == whole && block.device == device;
    };
    if (const auto kept = std::find_if(idle_.begin(), idle_.end(), fits); kept != idle_.end()) {
      const Block block = *kept;
      idle_.erase(kept);
      idle_bytes_ -= block.size_bytes;
      used_.emplace(block.memory, block);
      return block.memory;
    }
    const StatusOr<void*> made = AllocateDeviceScratch(whole, device);
    if (!made.ok()) {
      return nullptr;
    }
    const bool is_of_device = front_end->memory->DeviceOf(*made) == device;
    used_.emplace(*made, Block{*made, is_of_device ? whole : 0, device});
    return *made;
  }

  bool Give(void* memory) {
    std::lock_guard lock(mutex_);
    const auto used = used_.extract(memory);
    if (used.empty() || front_end == nullptr) {
      return !used.empty();  // without a connection it went with that
    }
    const Block& block = used.mapped();
    if (block.size_bytes == 0) {
      (void)front_end->memory->FreeMemory(memory);  // there may be room on the device next time
      return true;
    }
    idle_.push_back(block);
    idle_bytes_ += block.size_bytes;
    while (idle_bytes_ > kMostIdleBytes) {
      (void)front_end->memory->FreeMemory(idle_.front().memory);
      idle_bytes_ -= idle_.front().size_bytes;
      idle_.erase(idle_.begin());
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> idle_;  // the oldest first
  size_t idle_bytes_ = 0;
  std::map<void*, Block> used_;  // of the host: as of 0 bytes
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Blocks& blocks = *new Blocks();

}  // namespace

void* TakeStaging(size_t size_bytes) {
  void* const block = front_end->memory->TakeBounceBuffer(size_bytes);
  return block != nullptr ? block : collective::AllocateAligned(size_bytes);
}

void GiveStaging(void* memory) {
  if (memory != nullptr && front_end != nullptr && !front_end->memory->GiveBounceBuffer(memory)) {
    std::free(memory);
  }
}

StatusOr<void*> AllocateDeviceScratch(size_t size_bytes, int device) {
  StatusOr<void*> made =
      front_end->memory->AllocateMemory(size_bytes, client::MemoryKind::kDevice, device);
  return made.ok()
             ? made
             : front_end->memory->AllocateMemory(size_bytes, client::MemoryKind::kPinned, device);
}

void* TakeDeviceScratch(size_t size_bytes, int device) { return blocks.Take(size_bytes, device); }

bool GiveDeviceScratch(void* memory) { return blocks.Give(memory); }

}  // namespace ferry::mpi
