// Sealed memfd segments: made by one process, checked and mapped by others.
//
// A segment is sealed against shrinking, growing and further seals, so that a mapping can never
// fault because its creator truncated it. Only memfds are used: nothing is left in /dev/shm after a
// crash.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::shm {

// A mapping, unmapped by the destructor. Movable.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, uint64_t size_bytes) : base_(base), size_bytes_(size_bytes) {}
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool valid() const { return base_ != nullptr; }
  // Leaves the mapping in place for the life of the process.
  std::byte* Release();

 private:
  std::byte* base_ = nullptr;
  uint64_t size_bytes_ = 0;
};

// Makes a memfd of `size_bytes` (rounded up to pages), all zero, sealed. `name` shows in
// /proc/PID/maps.
StatusOr<UniqueFd> CreateSegment(const char* name, uint64_t size_bytes);

// Maps a whole memfd read-write. kCorrupt when it is not sealed against shrinking or its size
// differs from `size_bytes` (0 = any size); the message says which.
StatusOr<Mapping> MapSegment(int fd, uint64_t size_bytes);

// Maps the first `size_bytes` (rounded up to pages) of a memfd that is as long as that, or longer:
// it may be growing. kCorrupt when it is not sealed against shrinking, or shorter.
enum class Access { kReadWrite, kRead };
StatusOr<Mapping> MapPart(int fd, uint64_t size_bytes, Access access = Access::kReadWrite);

// Touches [base, base + size_bytes) for writing so that the caller's cgroup pays for it now.
Status Prefault(std::byte* base, uint64_t size_bytes);

}  // namespace ferry::shm
