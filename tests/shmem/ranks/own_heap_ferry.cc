// Memory of ferry_alloc, of an emulated device, too; and of malloc.
#include <cstdlib>
#include <string_view>

#include "include/ferry/ferry.h"
#include "tests/shmem/ranks/check.h"
#include "tests/shmem/ranks/own_heap.h"

namespace ferry::own_heap {

int TypeOf(const char*) { return SHMEMX_EXTERNAL_HEAP_HOST; }

void BeginMemory() {}

void* Take(const char* kind, size_t bytes) {
  if (std::string_view(kind) == "malloc") {
    return std::malloc(bytes);
  }
  const ferry_memory_kind memory =
      std::string_view(kind) == "host" ? FERRY_MEMORY_HOST : FERRY_MEMORY_DEVICE;
  void* taken = nullptr;
  CHECK(ferry_alloc(bytes, memory, 0, &taken) == FERRY_SUCCESS);
  return taken;
}

void Give(const char* kind, void* memory, size_t) {
  if (std::string_view(kind) == "malloc") {
    std::free(memory);
  } else {
    CHECK(ferry_free(memory) == FERRY_SUCCESS);
  }
}

bool IsForCpus(const char* kind) { return std::string_view(kind) != "hidden_device"; }

}  // namespace ferry::own_heap
