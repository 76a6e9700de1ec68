#include "client/malloc/free_ranges.h"

namespace ferry::malloc_heap {

uint64_t FreeRanges::Take(uint64_t size_bytes, uint64_t alignment) {
  for (size_t i = 0; i < count_; ++i) {
    const Range range = ranges_[i];
    const uint64_t begin = (range.begin + alignment - 1) & ~(alignment - 1);
    if (begin > range.end || size_bytes > range.end - begin) {
      continue;
    }
    const Range before{range.begin, begin};
    const Range after{begin + size_bytes, range.end};
    Erase(i);
    if (after.begin != after.end) {
      Insert(i, after);
    }
    if (before.begin != before.end) {
      Insert(i, before);
    }
    return begin;
  }
  return kNone;
}

void FreeRanges::Add(uint64_t offset, uint64_t size_bytes) {
  Range added{offset, offset + size_bytes};
  size_t place = 0;
  while (place < count_ && ranges_[place].begin < offset) {
    ++place;
  }
  if (place < count_ && ranges_[place].begin == added.end) {
    added.end = ranges_[place].end;
    Erase(place);
  }
  if (place > 0 && ranges_[place - 1].end == added.begin) {
    ranges_[place - 1].end = added.end;
    return;
  }
  Insert(place, added);
}

// Does nothing where there is no room.
void FreeRanges::Insert(size_t place, Range range) {
  if (count_ == kMost) {
    return;
  }
  for (size_t i = count_; i > place; --i) {
    ranges_[i] = ranges_[i - 1];
  }
  ranges_[place] = range;
  ++count_;
}

void FreeRanges::Erase(size_t place) {
  --count_;
  for (size_t i = place; i < count_; ++i) {
    ranges_[i] = ranges_[i + 1];
  }
}

}  // namespace ferry::malloc_heap
