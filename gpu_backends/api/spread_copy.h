#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::gpu {

// Blocks of one size, all of which are copied to each of several places, one behind the other: a
// small allgather of ranks whose memory one device reaches.
struct SpreadCopy {
  static constexpr size_t kMost = 8;  // of each: a kernel takes them as arguments

  std::array<const void*, kMost> sources{};
  std::array<void*, kMost> destinations{};  // of `size_bytes` each
  uint64_t source_count = 0;
  uint64_t destination_count = 0;
  uint64_t block_bytes = 0;

  // The bytes of one destination.
  uint64_t size_bytes() const { return source_count * block_bytes; }
  // Returns where a destination gets a block. A source may lie there already, and stays.
  void* Place(uint64_t destination, uint64_t source) const {
    return static_cast<std::byte*>(destinations[destination]) + source * block_bytes;
  }
};

}  // namespace ferry::gpu
