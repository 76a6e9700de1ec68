// The heap of libferry_malloc.so, if this process has it (ferryrun --malloc): see
// client/malloc/heap_view.h.
//
// Calling thread: any. Look waits while another thread makes the heap grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/malloc/heap_view.h"

namespace ferry::client {

class MallocHeap {
 public:
  // Looks for libferry_malloc.so among the libraries that the process was started with.
  MallocHeap();

  // Returns true if this address is, or may later be, in the heap's file.
  bool Contains(const void* pointer) const {
    return reinterpret_cast<uint64_t>(pointer) - base_ < reserved_bytes_;
  }
  // Returns the file and the extent of the heap as they are now. `fd` is -1 without
  // libferry_malloc.so, and in a forked child.
  malloc_heap::HeapView Look() const;
  // Returns why other processes cannot read malloc's memory; empty: they can.
  std::string WhyPrivate() const;

 private:
  const malloc_heap::HeapViewFunction look_;
  uint64_t base_ = 0;
  uint64_t reserved_bytes_ = 0;  // 0: nothing is in it
};

}  // namespace ferry::client
