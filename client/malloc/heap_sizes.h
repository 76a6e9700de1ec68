// Sizes of the heap below which limits keep it private; `ferryctl doctor` says so beforehand.
#pragma once

#include <cstdint>

namespace ferry::malloc_heap {

inline constexpr uint64_t kFirstFileBytes = uint64_t{256} << 20;  // what the file begins with
inline constexpr uint64_t kLeastFileBytes = uint64_t{4} << 20;
inline constexpr uint64_t kLeastReservedBytes = uint64_t{16} << 20;  // half of all addresses

}  // namespace ferry::malloc_heap
