#pragma once

#include <cstdint>

namespace ferry::gpu {

// Blocks of one size at equal distances, and a place where they lie packed one behind the other: an
// MPI_Type_vector and its packed copy.
struct StridedCopy {
  void* blocks = nullptr;  // the first
  void* packed = nullptr;
  uint64_t block_bytes = 0;
  uint64_t block_count = 0;
  int64_t stride_bytes = 0;  // from one block's begin to the next one's; may be negative
  bool is_pack = true;       // from the blocks to the packed place; else back

  uint64_t size_bytes() const { return block_bytes * block_count; }
};

}  // namespace ferry::gpu
