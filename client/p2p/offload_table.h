// Records which buffers are offloaded send buffers, where their bounce buffers lie, and which of
// their bytes were synchronised.
//
// Only keeps the records. Not thread-safe: the caller locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "client/p2p/byte_ranges.h"

namespace ferry::client {

// 0 = null; numbers are never used again.
using OffloadHandle = uint64_t;

struct OffloadedBuffer {
  std::byte* begin = nullptr;
  uint64_t size_bytes = 0;
  std::byte* bounce_buffer = nullptr;
  ByteRanges synchronized;     // by offset
  uint32_t synchronizing = 0;  // copies under way
};

class OffloadTable {
 public:
  bool Overlaps(const void* begin, uint64_t size_bytes) const;
  // Adds a buffer, which must overlap none in the table.
  OffloadHandle Add(void* begin, uint64_t size_bytes, void* bounce_buffer);
  void Remove(OffloadHandle handle);
  // Returns null for a handle that names no buffer, or none any more. The address stays valid until
  // Remove.
  OffloadedBuffer* Find(OffloadHandle handle);
  // Returns the buffer in which the whole range lies, or null.
  const OffloadedBuffer* Around(const void* begin, uint64_t size_bytes) const;
  // Returns the buffer in whose bounce buffer this address lies, or null.
  const OffloadedBuffer* ByBounceBuffer(const void* address) const;
  size_t size() const { return buffers_.size(); }

 private:
  using ByAddress = std::map<const std::byte*, const OffloadedBuffer*>;

  std::map<OffloadHandle, OffloadedBuffer> buffers_;
  ByAddress by_begin_;
  ByAddress by_bounce_buffer_;
  OffloadHandle last_ = 0;
};

}  // namespace ferry::client
