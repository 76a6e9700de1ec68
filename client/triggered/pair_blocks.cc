#include "client/triggered/pair_blocks.h"

#include <cstddef>
#include <cstring>

#include "shm/atomic.h"
#include "shm/pair_move.h"

namespace ferry::client {
namespace {

constexpr size_t kBlocksAtATime = 16;  // 6 KiB of the heap

// Resets all but the gate, which changes in one store, since the other end may still look at it.
void BeginLife(shm::PairLayout* block) {
  auto* const bytes = reinterpret_cast<std::byte*>(block);
  constexpr size_t kGate = offsetof(shm::PairLayout, gate);
  constexpr size_t kBehind = kGate + sizeof(block->gate);
  std::memset(bytes, 0, kGate);
  std::memset(bytes + kBehind, 0, sizeof(*block) - kBehind);
  // Pairs with the other end's look at the gate.
  shm::StoreRelease(block->gate, (uint64_t{shm::LifeOf(*block)} + 1) << shm::kGateLifeShift);
}

}  // namespace

StatusOr<shm::PairLayout*> PairBlocks::Take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    StatusOr<void*> made =
        memory_.Allocate(sizeof(shm::PairLayout) * kBlocksAtATime, MemoryKind::kPinned, 0);
    FERRY_RETURN_IF_ERROR(made.status());
    auto* const blocks = static_cast<shm::PairLayout*>(*made);
    for (size_t i = kBlocksAtATime; i-- > 0;) {
      all_.insert(&blocks[i]);
      free_.push_back(&blocks[i]);
    }
  }
  shm::PairLayout* const block = free_.back();
  free_.pop_back();
  BeginLife(block);
  return block;
}

bool PairBlocks::GiveBack(void* block) {
  std::lock_guard lock(mutex_);
  if (!all_.contains(block)) {
    return false;
  }
  free_.push_back(static_cast<shm::PairLayout*>(block));
  return true;
}

}  // namespace ferry::client
