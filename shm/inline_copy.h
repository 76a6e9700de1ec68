// Copies the data of a message that rides in its descriptor: so little that a call of memcpy would
// cost more than the copy.
//
// Calling thread: any. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::shm {

namespace internal {

// At least kBytes and at most twice as many: the first and the last of them, which may overlap.
template <size_t kBytes>
inline void CopyEnds(std::byte* to, const std::byte* from, uint64_t size_bytes) {
  std::byte first[kBytes];
  std::byte last[kBytes];
  std::memcpy(first, from, kBytes);
  std::memcpy(last, from + size_bytes - kBytes, kBytes);
  std::memcpy(to, first, kBytes);
  std::memcpy(to + size_bytes - kBytes, last, kBytes);
}

}  // namespace internal

// `size_bytes` is at most 32; if it is 0, the pointers may be null.
inline void CopyInline(void* destination, const void* source, uint64_t size_bytes) {
  auto* const to = static_cast<std::byte*>(destination);
  const auto* const from = static_cast<const std::byte*>(source);
  if (size_bytes >= 16) {
    internal::CopyEnds<16>(to, from, size_bytes);
  } else if (size_bytes >= 8) {
    internal::CopyEnds<8>(to, from, size_bytes);
  } else if (size_bytes >= 4) {
    internal::CopyEnds<4>(to, from, size_bytes);
  } else if (size_bytes >= 2) {
    internal::CopyEnds<2>(to, from, size_bytes);
  } else if (size_bytes == 1) {
    *to = *from;
  }
}

}  // namespace ferry::shm
