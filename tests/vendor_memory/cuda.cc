// NVIDIA's driver.
#include <sys/mman.h>

#include <array>

#include "tests/fixtures/cuda/cuda_stand_in.h"
#include "tests/vendor_memory/vendor.h"

#define FERRY_CU(call) Require((call) == fixtures::kCudaSuccess, #call)

namespace ferry::vendor_memory {
namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace): the driver's names

std::array<CudaContext, 2> contexts;
CudaMemoryPool pool;

CudaDevicePtr ToAddress(const void* pointer) { return reinterpret_cast<CudaDevicePtr>(pointer); }
void* ToPointer(CudaDevicePtr address) { return reinterpret_cast<void*>(address); }

template <typename Allocate>
void* Made(Allocate&& allocate) {
  CudaDevicePtr pointer = 0;
  FERRY_CU(allocate(&pointer));
  return ToPointer(pointer);
}

void* AllocateDevice(size_t bytes) {
  return Made([=](CudaDevicePtr* pointer) { return cuMemAlloc_v2(pointer, bytes); });
}
void FreeDevice(void* pointer, size_t) { FERRY_CU(cuMemFree_v2(ToAddress(pointer))); }

void* AllocateAsync(size_t bytes) {
  return Made([=](CudaDevicePtr* pointer) { return cuMemAllocAsync(pointer, bytes, nullptr); });
}
void FreeAsync(void* pointer, size_t) { FERRY_CU(cuMemFreeAsync(ToAddress(pointer), nullptr)); }

void* AllocateFromPool(size_t bytes) {
  return Made([=](CudaDevicePtr* pointer) {
    return cuMemAllocFromPoolAsync(pointer, bytes, pool, nullptr);
  });
}

void* AllocateManaged(size_t bytes) {
  return Made([=](CudaDevicePtr* pointer) {
    return cuMemAllocManaged(pointer, bytes, kCudaMemAttachGlobal);
  });
}

void* AllocateHost(size_t bytes) {
  void* pointer = nullptr;
  FERRY_CU(cuMemHostAlloc(&pointer, bytes, kCudaHostAllocPortable));
  return pointer;
}
void FreeHost(void* pointer, size_t) { FERRY_CU(cuMemFreeHost(pointer)); }

void* AllocateRegistered(size_t bytes) {
  void* const pointer =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Require(pointer != MAP_FAILED, "mmap");
  FERRY_CU(cuMemHostRegister_v2(pointer, bytes, kCudaHostRegisterPortable));
  return pointer;
}
void FreeRegistered(void* pointer, size_t bytes) {
  FERRY_CU(cuMemHostUnregister(pointer));
  munmap(pointer, bytes);
}

// ---- Of another device or context than the current one ----

template <typename Body>
auto In(CudaContext context, Body&& body) {
  FERRY_CU(cuCtxPushCurrent_v2(context));
  auto result = body();
  CudaContext popped = nullptr;
  FERRY_CU(cuCtxPopCurrent_v2(&popped));
  return result;
}

void* AllocateElsewhere(size_t bytes) {
  return In(contexts[1], [=] { return AllocateDevice(bytes); });
}
void FreeElsewhere(void* pointer, size_t) {
  FERRY_CU(In(contexts[1], [=] { return cuMemFree_v2(ToAddress(pointer)); }));
}

CudaContext OwnContext() {
  static CudaContext const context = [] {
    CudaContext made = nullptr;
    CudaContext popped = nullptr;
    FERRY_CU(cuCtxCreate_v2(&made, 0, 0));
    FERRY_CU(cuCtxPopCurrent_v2(&popped));
    return made;
  }();
  return context;
}
void* AllocateInContext(size_t bytes) {
  return In(OwnContext(), [=] { return AllocateDevice(bytes); });
}
void FreeInContext(void* pointer, size_t) {
  FERRY_CU(In(OwnContext(), [=] { return cuMemFree_v2(ToAddress(pointer)); }));
}

constexpr Kind kKinds[] = {
    {"device", false, AllocateDevice, FreeDevice},
    {"async", false, AllocateAsync, FreeAsync},
    {"pool", false, AllocateFromPool, FreeAsync},
    kVirtualKind,
    {"elsewhere", false, AllocateElsewhere, FreeElsewhere},
    {"context", false, AllocateInContext, FreeInContext},
    {"managed", true, AllocateManaged, FreeDevice},
    {"pinned", true, AllocateHost, FreeHost},
    {"registered", true, AllocateRegistered, FreeRegistered},
};

}  // namespace

const char* VendorName() { return "cuda"; }

void Begin() {
  FERRY_CU(cuInit(0));
  for (int device = 0; device < DeviceCount(); ++device) {
    FERRY_CU(cuDevicePrimaryCtxRetain(&contexts[device], device));
  }
  UseDevice(0);
  CudaPoolProperties properties{};
  properties.type = kCudaMemoryPinnedType;
  properties.location = {kCudaMemoryLocationDevice, 0};
  FERRY_CU(cuMemPoolCreate(&pool, &properties));
}

void UseDevice(int device) { FERRY_CU(cuCtxSetCurrent(contexts[device])); }

int DeviceCount() {
  int count = 0;
  FERRY_CU(cuDeviceGetCount(&count));
  return count;
}

std::span<const Kind> Kinds() { return kKinds; }

// ---- Virtual memory ----

namespace {

constexpr CudaMemoryLocation kLocation{kCudaMemoryLocationDevice, 0};

CudaMemoryProperties OfDevice() {
  CudaMemoryProperties properties{};
  properties.type = kCudaMemoryPinnedType;
  properties.location = kLocation;
  return properties;
}

}  // namespace

size_t LeastMappingBytes() {
  const CudaMemoryProperties properties = OfDevice();
  size_t bytes = 0;
  FERRY_CU(cuMemGetAllocationGranularity(&bytes, &properties, 0));
  return bytes;
}

std::byte* ReserveAddresses(size_t bytes) {
  CudaDevicePtr begin = 0;
  FERRY_CU(cuMemAddressReserve(&begin, bytes, 0, 0, 0));
  return static_cast<std::byte*>(ToPointer(begin));
}
void FreeAddresses(std::byte* begin, size_t bytes) {
  FERRY_CU(cuMemAddressFree(ToAddress(begin), bytes));
}
void* NewMemory(size_t bytes) {
  const CudaMemoryProperties properties = OfDevice();
  CudaMemoryHandle memory = 0;
  FERRY_CU(cuMemCreate(&memory, bytes, &properties, 0));
  return reinterpret_cast<void*>(memory);
}
void MapMemory(std::byte* at, void* memory, size_t bytes) {
  const CudaMemoryAccess access{kLocation, kCudaMemoryReadWrite};
  FERRY_CU(cuMemMap(ToAddress(at), bytes, 0, reinterpret_cast<CudaMemoryHandle>(memory), 0));
  FERRY_CU(cuMemSetAccess(ToAddress(at), bytes, &access, 1));
}
void UnmapMemory(std::byte* at, size_t bytes) { FERRY_CU(cuMemUnmap(ToAddress(at), bytes)); }
void ReleaseMemory(void* memory) {
  FERRY_CU(cuMemRelease(reinterpret_cast<CudaMemoryHandle>(memory)));
}

void Copy(void* to, const void* from, size_t bytes) {
  FERRY_CU(cuMemcpy(ToAddress(to), ToAddress(from), bytes));
}

}  // namespace ferry::vendor_memory
