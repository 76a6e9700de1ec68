// Hands out pieces of a range of offsets; its records lie outside the range, where peers cannot
// reach them.
//
// First fit over free pieces in order of address, merged with their neighbours when they come back:
// the same calls return the same offsets in every process. Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <map>

namespace ferry::client {

class OffsetAllocator {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  OffsetAllocator() = default;
  explicit OffsetAllocator(uint64_t size_bytes) : free_bytes_(size_bytes) { free_[0] = size_bytes; }

  // Allocates `size_bytes` (rounded up to 128) and returns their offset, or kNone. It is a multiple
  // of `alignment`, a power of two, and of 128.
  uint64_t Allocate(uint64_t size_bytes, uint64_t alignment = 1);
  // Frees what Allocate returned. Returns its size, or 0 when `offset` is no live allocation.
  uint64_t Free(uint64_t offset);
  // Returns the size of a live allocation, or 0.
  uint64_t SizeOf(uint64_t offset) const;
  uint64_t free_bytes() const { return free_bytes_; }
  uint64_t LargestFreeBytes() const;

 private:
  std::map<uint64_t, uint64_t> free_;  // offset -> size
  std::map<uint64_t, uint64_t> live_;
  uint64_t free_bytes_ = 0;
};

}  // namespace ferry::client
