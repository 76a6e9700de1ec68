// Copies into memory that other threads may be reading meanwhile. Each naturally aligned word of 1,
// 2, 4 or 8 bytes of the destination is stored once, and whole: a thread that waits for a word by
// plain loads, and then clears it, never finds half of it, nor finds it back again.
//
// memcpy and memmove are no such copies. glibc copies most sizes by two accesses, or rows of them,
// that meet in the middle: for 4, 8 and 16 bytes these are the same bytes twice, and a thread that
// is preempted between the two stores the word again after its owner has cleared it.
//
// The caller's fences order the copy among other stores. The order of the words within a copy is
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

// The most bytes that are copied without a call.
inline constexpr size_t kInlineCopyBytes = 32;

// Stores one word; the source need not be aligned.
template <typename Word>
inline void MoveWord(std::byte* to, const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  StoreRelaxed(*reinterpret_cast<Word*>(to), word);
}

// Copies the bytes left behind words of 8 bytes.
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

// Copies words, then the tail. `to` is a multiple of 8, or there are fewer bytes than the next
// larger word has.
inline void MoveWords(std::byte* to, const std::byte* from, size_t bytes) {
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
    MoveWord<uint64_t>(to, from);
    to += sizeof(uint64_t);
    from += sizeof(uint64_t);
  }
  MoveTail(to, from, bytes);
}

void CopyLongOrUneven(std::byte* to, const std::byte* from, size_t bytes);

// Ways to move the middle of a long copy, each only if its MayMoveBy... returns true: `to` and
// `bytes` are multiples of kBulkBytes.
inline constexpr size_t kBulkBytes = 32;
bool MayMoveByVectors();
bool MayMoveByStrings();  // fast only if `from` is a multiple of 8
void MoveByVectors(std::byte* to, const std::byte* from, size_t bytes);
void MoveByStrings(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace internal

// Copies `bytes` by whole words. Source and destination may overlap. If `bytes` is 0, either may be
// null.
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
