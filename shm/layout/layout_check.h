// Checks that every struct in shared memory must pass.
#pragma once

#include <cstddef>
#include <type_traits>

namespace ferry::shm {

template <typename T>
inline constexpr bool kIsSharedLayout =
    std::conjunction_v<std::is_standard_layout<T>, std::is_trivially_copyable<T>,
                       std::is_trivially_default_constructible<T>>;

}  // namespace ferry::shm

// Asserts the size of a shared layout and that it can be shared at all.
#define FERRY_ASSERT_LAYOUT(type, size_bytes)                                              \
  static_assert(sizeof(type) == (size_bytes), #type " changed size: bump kLayoutVersion"); \
  static_assert(::ferry::shm::kIsSharedLayout<type>, #type " cannot live in shared memory")

// Asserts where a member of a shared layout lies.
#define FERRY_ASSERT_OFFSET(type, member, offset_bytes)   \
  static_assert(offsetof(type, member) == (offset_bytes), \
                #type "::" #member " moved: bump kLayoutVersion")
