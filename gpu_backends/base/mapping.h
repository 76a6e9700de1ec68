// Memory of the host backend: an owned range of address space, and the sealed memfd behind emulated
// device memory.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::gpu {

// Owns a mapped range and unmaps it once. Movable; one thread at a time.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { Reset(); }
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Private anonymous memory with its pages present. kOutOfMemory if the kernel has no room.
  static StatusOr<Mapping> Anonymous(uint64_t size_bytes);
  // Maps the first `size_bytes` of `fd`, shared, read-write, with its pages present.
  static StatusOr<Mapping> Shared(int fd, uint64_t size_bytes);
  // Maps the first `size_bytes` of `fd` without access: any load or store there faults.
  static StatusOr<Mapping> Untouchable(int fd, uint64_t size_bytes);

  void* data() const { return data_; }

 private:
  Mapping(void* data, uint64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  static StatusOr<Mapping> Map(int fd, uint64_t size_bytes, int protection, int flags);
  void Reset();

  void* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

// A memfd of `size_bytes`, rounded up to pages (as shm/segment.h checks it), zeroed, all pages
// allocated and charged to the caller, sealed against changes of its size and of its seals.
// kOutOfMemory if the kernel has no room.
StatusOr<UniqueFd> CreateSealedMemfd(uint64_t size_bytes);

// Checks a descriptor from another process before it is mapped: it must be a memfd that can no
// longer change its size and that holds `size_bytes`, else touching it could raise SIGBUS. kCorrupt
// if not.
Status CheckSealedMemfd(int fd, uint64_t size_bytes);

}  // namespace ferry::gpu
