#include "client/mpi/partitioned/blocks.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "client/core/offset_allocator.h"
#include "client/mpi/base/connection.h"

namespace ferry::mpi {
namespace {

constexpr uint64_t kSlabBytes = 256 << 10;
constexpr uint64_t kLargest = kSlabBytes / 4;  // larger ones are their own allocations

struct Slab {
  std::byte* base;
  shm::Location where;
  client::OffsetAllocator pieces;
};

struct Slabs {
  std::mutex mutex;
  std::vector<Slab> all;  // never given back
};
Slabs& slabs = *new Slabs();

Result<Block> Allocate(uint64_t size_bytes) {
  const StatusOr<void*> memory =
      front_end->AllocateMemory(size_bytes, client::MemoryKind::kHost, 0);
  if (!memory.ok()) {
    return Failure{MPI_ERR_NO_MEM,
                   "no memory in the rank's heap for " + std::to_string(size_bytes) +
                       " bytes of a partitioned message: " + memory.status().message()};
  }
  return Block{static_cast<std::byte*>(*memory), front_end->Locate(*memory, size_bytes)};
}

Block Piece(const Slab& slab, uint64_t offset) {
  Block block{slab.base + offset, slab.where};
  block.where.address += offset;
  return block;
}

// Under the lock; data null: no slab has room.
Block Cut(uint64_t size_bytes) {
  for (Slab& slab : slabs.all) {
    if (const uint64_t offset = slab.pieces.Allocate(size_bytes);
        offset != client::OffsetAllocator::kNone) {
      return Piece(slab, offset);
    }
  }
  return {};
}

Result<Block> TakePiece(uint64_t size_bytes) {
  std::lock_guard lock(slabs.mutex);
  if (const Block block = Cut(size_bytes); block.data != nullptr) {
    return block;
  }
  const Result<Block> slab = Allocate(kSlabBytes);
  if (!slab.ok()) {
    return slab.failure();
  }
  slabs.all.push_back({slab.value().data, slab.value().where, client::OffsetAllocator(kSlabBytes)});
  return Cut(size_bytes);
}

// Whether it was a piece of a slab.
bool GivePiece(const Block& block) {
  std::lock_guard lock(slabs.mutex);
  const auto slab = std::find_if(slabs.all.begin(), slabs.all.end(), [&](const Slab& one) {
    return block.data >= one.base && block.data < one.base + kSlabBytes;
  });
  if (slab == slabs.all.end()) {
    return false;
  }
  (void)slab->pieces.Free(static_cast<uint64_t>(block.data - slab->base));
  return true;
}

}  // namespace

Result<Block> TakeBlock(uint64_t size_bytes, Contents contents) {
  Result<Block> taken = size_bytes <= kLargest ? TakePiece(size_bytes) : Allocate(size_bytes);
  if (taken.ok() && contents == Contents::kWords) {
    std::memset(taken.value().data, 0, size_bytes);
  }
  return taken;
}

void GiveBlock(Block* block) {
  if (block->data != nullptr && !GivePiece(*block)) {
    (void)front_end->FreeMemory(block->data);
  }
  *block = {};
}

}  // namespace ferry::mpi
