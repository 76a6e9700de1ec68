// A range of addresses that holds all of some kind of memory, and whatever lies in between: one
// look at it tells that most other memory is none of that kind.
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
  // Before anybody is told of that memory: so who has its address finds it here.
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
  // Two words, each of which goes one way only: what was inside stays inside at every moment.
  std::atomic<uintptr_t> begin_{UINTPTR_MAX};
  std::atomic<uintptr_t> end_{0};
};

}  // namespace ferry::client
