// MemorySlabs: pieces of memory of one kind, cut out of slabs, since each allocation is registered
// with the daemon, and a device gives whole pages.
//
// Calling thread: any. Take blocks on the daemon when another slab is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "client/api/front_end.h"
#include "client/memory/offset_allocator.h"
#include "common/status.h"

namespace ferry::mpi {

class MemorySlabs {
 public:
  MemorySlabs(client::MemoryKind kind, int device) : kind_(kind), device_(device) {}

  // Large pieces are allocations of their own. Zeroed only where a slab is new. Errors of
  // MemoryAccess::AllocateMemory.
  StatusOr<std::byte*> Take(uint64_t size_bytes);
  void Give(std::byte* piece);

 private:
  struct Slab {
    std::byte* base;
    client::OffsetAllocator pieces;
  };

  StatusOr<std::byte*> Allocate(uint64_t size_bytes) const;
  std::byte* Cut(uint64_t size_bytes);

  const client::MemoryKind kind_;
  const int device_;
  std::mutex mutex_;
  std::vector<Slab> slabs_;  // never given back
};

}  // namespace ferry::mpi
