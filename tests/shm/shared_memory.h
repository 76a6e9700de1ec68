// Zeroed memory shared with the children that the test forks.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace ferry::shm {

class SharedMemory {
 public:
  explicit SharedMemory(uint64_t size_bytes) : size_bytes_(size_bytes) {
    void* base =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      std::abort();
    }
    base_ = static_cast<std::byte*>(base);
  }
  ~SharedMemory() { munmap(base_, size_bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* base_;
  uint64_t size_bytes_;
};

// A layout in shared memory of its own.
template <typename Layout>
class Shared {
 public:
  Layout* get() const { return reinterpret_cast<Layout*>(memory_.base()); }
  Layout* operator->() const { return get(); }

 private:
  SharedMemory memory_{sizeof(Layout)};
};

}  // namespace ferry::shm
