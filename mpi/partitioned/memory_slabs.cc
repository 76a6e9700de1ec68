#include "mpi/partitioned/memory_slabs.h"

#include <algorithm>

#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

constexpr uint64_t kSlabBytes = 256 << 10;
constexpr uint64_t kLargest = kSlabBytes / 4;  // larger ones are their own allocations

}  // namespace

StatusOr<std::byte*> MemorySlabs::Allocate(uint64_t size_bytes) const {
  const StatusOr<void*> memory = front_end->memory->AllocateMemory(size_bytes, kind_, device_);
  FERRY_RETURN_IF_ERROR(memory.status());
  return static_cast<std::byte*>(*memory);
}

// Under the lock. Null: no slab has room.
std::byte* MemorySlabs::Cut(uint64_t size_bytes) {
  for (Slab& slab : slabs_) {
    if (const uint64_t offset = slab.pieces.Allocate(size_bytes);
        offset != client::OffsetAllocator::kNone) {
      return slab.base + offset;
    }
  }
  return nullptr;
}

StatusOr<std::byte*> MemorySlabs::Take(uint64_t size_bytes) {
  if (size_bytes > kLargest) {
    return Allocate(size_bytes);
  }
  std::lock_guard lock(mutex_);
  if (std::byte* const piece = Cut(size_bytes); piece != nullptr) {
    return piece;
  }
  const StatusOr<std::byte*> slab = Allocate(kSlabBytes);
  FERRY_RETURN_IF_ERROR(slab.status());
  slabs_.push_back({*slab, client::OffsetAllocator(kSlabBytes)});
  return Cut(size_bytes);
}

void MemorySlabs::Give(std::byte* piece) {
  {
    std::lock_guard lock(mutex_);
    const auto slab = std::find_if(slabs_.begin(), slabs_.end(), [piece](const Slab& one) {
      return piece >= one.base && piece < one.base + kSlabBytes;
    });
    if (slab != slabs_.end()) {
      (void)slab->pieces.Free(static_cast<uint64_t>(piece - slab->base));
      return;
    }
  }
  (void)front_end->memory->FreeMemory(piece);
}

}  // namespace ferry::mpi
