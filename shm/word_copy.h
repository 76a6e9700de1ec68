// Copies into memory that others may be looking at meanwhile. Each naturally aligned word of 1, 2,
// 4 or 8 bytes of the destination is stored once, and whole: whoever waits for a word by plain
// loads, and then clears it, finds it neither in halves nor back again.
//
// memcpy and memmove are no such copies. glibc copies most sizes by two accesses, or rows of them,
// that meet in the middle: for 4, 8 and 16 bytes these are the same bytes twice, and a thread that
// is preempted between the two stores the word again after its owner has cleared it.
//
// What each word is stored after, or before, the caller's fences say. The order within a copy is
// not defined.
//
// Calling thread: any. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/atomic.h"

namespace ferry::shm {

namespace internal {

// The longest that is copied without a call.
inline constexpr size_t kInlineCopyBytes = 32;

// The source may lie anywhere.
template <typename Word>
inline void MoveWord(std::byte* to, const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  StoreRelaxed(*reinterpret_cast<Word*>(to), word);
}

// What is left behind words of 8 bytes.
inline void MoveTail(std::byte* to, const std::byte* from, size_t bytes) {
  if ((bytes & 4) != 0) {
    MoveWord<uint32_t>(to, from);
    to += 4;
    from += 4;
  }
  if ((bytes & 2) != 0) {
    MoveWord<uint16_t>(to, from);
    to += 2;
    from += 2;
  }
  if ((bytes & 1) != 0) {
    MoveWord<uint8_t>(to, from);
  }
}

// `to` is a multiple of 8, or what it points to shorter than the next larger word.
inline void MoveWords(std::byte* to, const std::byte* from, size_t bytes) {
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
    MoveWord<uint64_t>(to, from);
    to += sizeof(uint64_t);
    from += sizeof(uint64_t);
  }
  MoveTail(to, from, bytes);
}

void CopyLongOrUneven(std::byte* to, const std::byte* from, size_t bytes);

// How the middle of a long copy may move, where MayMoveBy... says so: `to` and `bytes` are
// multiples of kBulkBytes.
inline constexpr size_t kBulkBytes = 32;
bool MayMoveByVectors();
bool MayMoveByStrings();  // fast only if `from` is a multiple of 8
void MoveByVectors(std::byte* to, const std::byte* from, size_t bytes);
void MoveByStrings(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace internal

// Source and destination may overlap. If `bytes` is 0, either may be null.
inline void CopyWords(void* destination, const void* source, size_t bytes) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const auto at = reinterpret_cast<uintptr_t>(to);
  if (bytes == sizeof(uint64_t) && at % sizeof(uint64_t) == 0) {  // the commonest by far
    return internal::MoveWord<uint64_t>(to, from);
  }
  const bool is_even = bytes <= internal::kInlineCopyBytes && at % sizeof(uint32_t) == 0;
  if (!is_even || at - reinterpret_cast<uintptr_t>(from) < bytes) {
    return internal::CopyLongOrUneven(to, from, bytes);
  }
  if (at % sizeof(uint64_t) != 0 && bytes >= sizeof(uint32_t)) {
    internal::MoveWord<uint32_t>(to, from);
    to += sizeof(uint32_t);
    from += sizeof(uint32_t);
    bytes -= sizeof(uint32_t);
  }
  internal::MoveWords(to, from, bytes);
}

}  // namespace ferry::shm
