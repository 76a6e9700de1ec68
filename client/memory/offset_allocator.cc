#include "client/memory/offset_allocator.h"

#include <algorithm>

namespace ferry::client {
namespace {

constexpr uint64_t kAlignment = 128;  // two cache lines: neighbours are fetched in pairs

}  // namespace

uint64_t OffsetAllocator::Allocate(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t wanted =
      size_bytes == 0 ? kAlignment : (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (wanted < size_bytes) {
    return kNone;
  }
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    const auto [begin, available] = *piece;
    const uint64_t offset = (begin + alignment - 1) & ~(alignment - 1);
    const uint64_t before = offset - begin;
    if (offset < begin || available < before || available - before < wanted) {
      continue;
    }
    free_.erase(piece);
    if (before != 0) {
      free_[begin] = before;
    }
    if (available != before + wanted) {
      free_[offset + wanted] = available - before - wanted;
    }
    live_[offset] = wanted;
    free_bytes_ -= wanted;
    return offset;
  }
  return kNone;
}

uint64_t OffsetAllocator::Free(uint64_t offset) {
  const auto live = live_.find(offset);
  if (live == live_.end()) {
    return 0;
  }
  const uint64_t size_bytes = live->second;
  live_.erase(live);
  free_bytes_ += size_bytes;
  auto piece = free_.emplace(offset, size_bytes).first;
  if (const auto next = std::next(piece);
      next != free_.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free_.erase(next);
  }
  if (piece != free_.begin()) {
    const auto previous = std::prev(piece);
    if (previous->first + previous->second == piece->first) {
      previous->second += piece->second;
      free_.erase(piece);
    }
  }
  return size_bytes;
}

uint64_t OffsetAllocator::LargestFreeBytes() const {
  uint64_t largest = 0;
  for (const auto& [offset, size_bytes] : free_) {
    largest = std::max(largest, size_bytes);
  }
  return largest;
}

uint64_t OffsetAllocator::SizeOf(uint64_t offset) const {
  const auto live = live_.find(offset);
  return live == live_.end() ? 0 : live->second;
}

}  // namespace ferry::client
