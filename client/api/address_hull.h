// AddressHull: the range of addresses around all memory of one kind, gaps included. One comparison
// tells for most other memory that it is not of that kind.
//
// It only grows. Calling thread: Contains from any; Add one at a time. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>

namespace ferry::client {

class AddressHull {
 public:
  bool Contains(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return address >= begin_.load(std::memory_order_relaxed) &&
           address < end_.load(std::memory_order_relaxed);
  }
  bool is_empty() const { return end_.load(std::memory_order_relaxed) == 0; }
  // Call it before the memory's address is given to any caller, so that each thread with the
  // address finds it here.
  void Add(const void* base, uint64_t size_bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(base);
    if (begin < begin_.load(std::memory_order_relaxed)) {
      begin_.store(begin, std::memory_order_relaxed);
    }
    if (begin + size_bytes > end_.load(std::memory_order_relaxed)) {
      end_.store(begin + size_bytes, std::memory_order_relaxed);
    }
  }

 private:
  // begin_ only falls and end_ only grows, so an address that was inside stays inside at every
  // moment.
  std::atomic<uintptr_t> begin_{UINTPTR_MAX};
  std::atomic<uintptr_t> end_{0};
};

}  // namespace ferry::client
