#include "client/memory/malloc_heap.h"

#include <dlfcn.h>

#include <cstring>

namespace ferry::client {

MallocHeap::MallocHeap()
    : look_(reinterpret_cast<malloc_heap::HeapViewFunction>(
          dlsym(RTLD_DEFAULT, malloc_heap::kHeapViewSymbol))) {
  const malloc_heap::HeapView view = Look();
  if (view.fd >= 0) {
    base_ = reinterpret_cast<uint64_t>(view.base);
    reserved_bytes_ = view.reserved_bytes;
  }
}

malloc_heap::HeapView MallocHeap::Look() const {
  malloc_heap::HeapView view{};
  view.version = malloc_heap::kHeapViewVersion;
  if (look_ == nullptr || look_(&view) != 0) {
    view.fd = -1;
  }
  return view;
}

std::string MallocHeap::WhyPrivate() const {
  if (look_ == nullptr) {
    return "libferry_malloc.so is not loaded; programs that are linked statically, or that change "
           "the user, load nothing before them";
  }
  const malloc_heap::HeapView view = Look();
  if (view.fd >= 0) {
    return "";
  }
  switch (view.refusal) {
    case malloc_heap::Refusal::kAddressSpace:
      return "the address space is limited (ulimit -v)";
    case malloc_heap::Refusal::kFileSize:
      return "the size of files is limited (ulimit -f)";
    case malloc_heap::Refusal::kForked:
      return "this process was forked by one that has it";
    default:
      return std::string("the kernel makes no memfd: ") + std::strerror(view.error);
  }
}

}  // namespace ferry::client
