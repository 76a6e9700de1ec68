// AMD's run time.
#include <sys/mman.h>

#include "tests/fixtures/hip/hip_stand_in.h"
#include "tests/vendor_memory/vendor.h"

#define FERRY_HIP(call) Require((call) == fixtures::kHipSuccess, #call)

namespace ferry::vendor_memory {
namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace): the run time's names

void* AllocateDevice(size_t bytes) {
  void* pointer = nullptr;
  FERRY_HIP(hipMalloc(&pointer, bytes));
  return pointer;
}
void FreeDevice(void* pointer, size_t) { FERRY_HIP(hipFree(pointer)); }

void* AllocateAsync(size_t bytes) {
  void* pointer = nullptr;
  FERRY_HIP(hipMallocAsync(&pointer, bytes, nullptr));
  return pointer;
}
void FreeAsync(void* pointer, size_t) { FERRY_HIP(hipFreeAsync(pointer, nullptr)); }

void* AllocateManaged(size_t bytes) {
  void* pointer = nullptr;
  FERRY_HIP(hipMallocManaged(&pointer, bytes, kHipMemAttachGlobal));
  return pointer;
}

void* AllocateHost(size_t bytes) {
  void* pointer = nullptr;
  FERRY_HIP(hipHostMalloc(&pointer, bytes, 0));
  return pointer;
}
void FreeHost(void* pointer, size_t) { FERRY_HIP(hipHostFree(pointer)); }

void* AllocateRegistered(size_t bytes) {
  void* const pointer =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Require(pointer != MAP_FAILED, "mmap");
  FERRY_HIP(hipHostRegister(pointer, bytes, 0));
  return pointer;
}
void FreeRegistered(void* pointer, size_t bytes) {
  FERRY_HIP(hipHostUnregister(pointer));
  munmap(pointer, bytes);
}

// Of another device than the current one.
void* AllocateElsewhere(size_t bytes) {
  UseDevice(1);
  void* const pointer = AllocateDevice(bytes);
  UseDevice(0);
  return pointer;
}

constexpr Kind kKinds[] = {
    {"device", false, AllocateDevice, FreeDevice},
    {"async", false, AllocateAsync, FreeAsync},
    {"elsewhere", false, AllocateElsewhere, FreeDevice},
    {"managed", true, AllocateManaged, FreeDevice},
    {"pinned", true, AllocateHost, FreeHost},
    {"registered", true, AllocateRegistered, FreeRegistered},
};

}  // namespace

const char* VendorName() { return "hip"; }

void Begin() { UseDevice(0); }

void UseDevice(int device) { FERRY_HIP(hipSetDevice(device)); }

int DeviceCount() {
  int count = 0;
  FERRY_HIP(hipGetDeviceCount(&count));
  return count;
}

std::span<const Kind> Kinds() { return kKinds; }

void Copy(void* to, const void* from, size_t bytes) {
  FERRY_HIP(hipMemcpy(to, from, bytes, kHipMemcpyDefault));
}

}  // namespace ferry::vendor_memory
