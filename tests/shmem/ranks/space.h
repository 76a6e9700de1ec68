// Helpers for programs with spaces, whose memory CPUs may not reach.
#pragma once

#include <type_traits>
#include <vector>

#include "tests/shmem/ranks/check.h"

// A space, for as long as it lives. Made and ended by all PEs, on devices that they share.
class Space {
 public:
  explicit Space(size_t bytes, int device = me % shmemx_device_count())
      : handle_(shmemx_space_create(device, bytes)) {
    CHECK(handle_ != SHMEMX_SPACE_INVALID);
  }
  ~Space() { shmemx_space_destroy(handle_); }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  shmemx_space_t handle() const { return handle_; }
  shmemx_space_info_t Info() const {
    shmemx_space_info_t info;
    shmemx_space_info(handle_, &info);
    return info;
  }
  // Zeroed.
  template <typename T>
  T* Make(size_t count) const {
    auto* const made = static_cast<T*>(shmemx_space_calloc(handle_, count, sizeof(T)));
    CHECK(made != nullptr);
    return made;
  }

 private:
  const shmemx_space_t handle_;
};

// Read and write this PE's memory in a space.
template <typename T>
std::vector<T> Read(const T* there, size_t count) {
  std::vector<T> found(count);
  shmem_getmem(found.data(), there, count * sizeof(T), me);
  return found;
}
template <typename T>
void Write(T* there, const std::vector<std::type_identity_t<T>>& values) {
  shmem_putmem(there, values.data(), values.size() * sizeof(T), me);
}
template <typename T>
T ReadOne(const T* there) {
  return Read(there, 1).front();
}
