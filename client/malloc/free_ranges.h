// Ranges that were handed out and came back, to be handed out again: few, since the allocator above
// keeps what it has. Where there are too many to note, some are forgotten: they cost addresses, not
// memory.
//
// Calling thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::malloc_heap {

class FreeRanges {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  constexpr FreeRanges() = default;

  // The lowest aligned place with room, or kNone. `alignment` is a power of two.
  uint64_t Take(uint64_t size_bytes, uint64_t alignment);
  // It may touch others, which it is joined to, but overlaps none.
  void Add(uint64_t offset, uint64_t size_bytes);

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  void Insert(size_t place, Range range);
  void Erase(size_t place);

  static constexpr size_t kMost = 512;
  Range ranges_[kMost] = {};  // by begin
  size_t count_ = 0;
};

}  // namespace ferry::malloc_heap
