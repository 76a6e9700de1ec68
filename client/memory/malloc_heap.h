// The heap of libferry_malloc.so, if this process has it (ferryrun --malloc): see
// client/malloc/heap_view.h.
//
// Calling thread: any. Look waits while another thread lets the heap grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/malloc/heap_view.h"

namespace ferry::client {

class MallocHeap {
 public:
  // Looks for the library among those that the process was started with.
  MallocHeap();

  // Whether this address is, or may once be, in the heap's file.
  bool Contains(const void* pointer) const {
    return reinterpret_cast<uint64_t>(pointer) - base_ < reserved_bytes_;
  }
  // What is there now. Without a library, and in a child that was forked: `fd` is -1.
  malloc_heap::HeapView Look() const;
  // Why other processes cannot read malloc's memory; empty: they can.
  std::string WhyPrivate() const;

 private:
  const malloc_heap::HeapViewFunction look_;
  uint64_t base_ = 0;
  uint64_t reserved_bytes_ = 0;  // 0: nothing is in it
};

}  // namespace ferry::client
