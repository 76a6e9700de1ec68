#include "client/p2p/byte_ranges.h"

#include <algorithm>
#include <iterator>

namespace ferry::client {

void ByteRanges::Add(uint64_t begin, uint64_t end) {
  if (begin >= end) {
    return;
  }
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_[begin] = end;
}

void ByteRanges::Remove(uint64_t begin, uint64_t end) {
  if (begin >= end) {
    return;
  }
  auto next = ends_.lower_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second > begin) {
    --next;
  }
  while (next != ends_.end() && next->first < end) {
    const auto [first, last] = *next;
    next = ends_.erase(next);
    if (first < begin) {
      ends_[first] = begin;
    }
    if (last > end) {
      ends_[end] = last;
    }
  }
}

uint64_t ByteRanges::FirstMissing(uint64_t begin, uint64_t end) const {
  const auto next = ends_.upper_bound(begin);
  if (next == ends_.begin() || std::prev(next)->second <= begin) {
    return std::min(begin, end);
  }
  return std::min(std::prev(next)->second, end);
}

}  // namespace ferry::client
