// FreeRanges: ranges of the heap that the allocator gave back, to be handed out again. There are
// few, since the allocator keeps most of its memory. Where there are too many to note, some are
// forgotten, which costs addresses, not memory.
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

  // Takes the lowest aligned place with room. Returns its offset, or kNone. `alignment` is a power
  // of two.
  uint64_t Take(uint64_t size_bytes, uint64_t alignment);
  // Adds a range. It is joined with ranges that it touches, and overlaps none.
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
