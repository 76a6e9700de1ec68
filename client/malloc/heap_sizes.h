// Sizes of the heap: limits of the process below these keep it private. `ferryctl doctor` warns of
// such limits.
#pragma once

#include <cstdint>

namespace ferry::malloc_heap {

inline constexpr uint64_t kFirstFileBytes = uint64_t{256} << 20;  // the file's first length
inline constexpr uint64_t kLeastFileBytes = uint64_t{4} << 20;
inline constexpr uint64_t kLeastReservedBytes = uint64_t{16} << 20;  // half of RLIMIT_AS

}  // namespace ferry::malloc_heap
