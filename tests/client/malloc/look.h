// The allocator's own figures of this process' heap.
#pragma once

#include <dlfcn.h>

#include "client/malloc/heap_view.h"

namespace ferry::malloc_heap {

// Without the allocator, `fd` is -1.
inline HeapView Look() {
  const auto look = reinterpret_cast<HeapViewFunction>(dlsym(RTLD_DEFAULT, kHeapViewSymbol));
  HeapView view{};
  view.version = kHeapViewVersion;
  if (look == nullptr || look(&view) != 0) {
    view.fd = -1;
  }
  return view;
}

}  // namespace ferry::malloc_heap
