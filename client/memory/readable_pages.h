// Tells which private memory CPUs can read, and which the kernel can. Calling thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ferry::client {

// Returns true if the kernel's copies between processes reach this memory.
bool IsReachedByKernel(const void* pointer);
// Returns true if CPUs can read this address. Drivers map memory that CPUs read, and that the
// kernel's copies do not reach.
bool IsReadable(const void* pointer);

// Remembers pages that were seen to be readable.
class ReadablePages {
 public:
  // Returns IsReadable(pointer), or true for a page that was readable before.
  bool Contains(const void* pointer);

 private:
  static constexpr size_t kPages = 256;
  std::array<std::atomic<uintptr_t>, kPages> pages_{};  // at places that their addresses tell
};

}  // namespace ferry::client
