// Memory of a vendor's own calls, by its stand-in.
#include <string_view>

#include "tests/shmem/ranks/check.h"
#include "tests/shmem/ranks/own_heap.h"
#include "tests/vendor_memory/vendor.h"

namespace ferry::own_heap {

namespace vendor = ferry::vendor_memory;

namespace {

const vendor::Kind& KindOf(const char* name) {
  const vendor::Kind* const kind = vendor::FindKind(name);
  CHECK(kind != nullptr);
  return *kind;
}

}  // namespace

int TypeOf(const char*) {
  const std::string_view name = vendor::VendorName();
  return name == "cuda"  ? SHMEMX_EXTERNAL_HEAP_CUDA
         : name == "hip" ? SHMEMX_EXTERNAL_HEAP_HIP
                         : SHMEMX_EXTERNAL_HEAP_ZE;
}

void BeginMemory() {
  vendor::Begin();
  vendor::UseDevice(me % vendor::DeviceCount());
}

void* Take(const char* kind, size_t bytes) { return KindOf(kind).allocate(bytes); }
void Give(const char* kind, void* memory, size_t bytes) { KindOf(kind).free(memory, bytes); }
bool IsForCpus(const char*) { return false; }

}  // namespace ferry::own_heap
