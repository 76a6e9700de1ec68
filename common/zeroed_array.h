// An array that begins with zeroes, and takes memory only where it was written: for tables with an
// entry for each rank of a job, of which a process needs few. (std::vector writes all of it.)
//
// Throws std::bad_alloc, as std::vector does. Calling thread: any, for different arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace ferry {

namespace internal {

// Zeroes, aligned as memory of malloc is. FreeZeroes takes the same size.
void* TakeZeroes(size_t size_bytes);
void FreeZeroes(void* memory, size_t size_bytes);

}  // namespace internal

// `T` must be valid, and mean nothing yet, where all its bytes are zero.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(size_t size)
      : data_(static_cast<T*>(internal::TakeZeroes(size * sizeof(T))), Free{size}) {}

  size_t size() const { return data_.get_deleter().size; }
  T& operator[](size_t index) { return data_.get()[index]; }
  const T& operator[](size_t index) const { return data_.get()[index]; }

 private:
  struct Free {
    size_t size = 0;
    void operator()(T* data) const { internal::FreeZeroes(data, size * sizeof(T)); }
  };
  std::unique_ptr<T[], Free> data_;
};

}  // namespace ferry
