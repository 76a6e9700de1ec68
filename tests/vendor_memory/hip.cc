// AMD's run time.
#include <sys/mman.h>

#include <algorithm>

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
    kVirtualKind,
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

// ---- Virtual memory ----

namespace {

constexpr HipMemLocation kLocation{kHipMemLocationDevice, 0};

HipMemProperties OfDevice() {
  HipMemProperties properties{};
  properties.type = kHipMemPinnedType;
  properties.location = kLocation;
  return properties;
}

// How many of those bytes lie in one mapping; all, if it is none.
size_t BytesOfMapping(const void* pointer, size_t bytes) {
  void* base = nullptr;
  size_t known = 0;
  unsigned long long flags = 0;
  auto* const address = static_cast<std::byte*>(const_cast<void*>(pointer));
  return hipMemGetAccess(&flags, &kLocation, address) == kHipSuccess &&
                 hipMemGetAddressRange(&base, &known, address) == kHipSuccess
             ? std::min(bytes, known - static_cast<size_t>(address - static_cast<std::byte*>(base)))
             : bytes;
}

}  // namespace

size_t LeastMappingBytes() {
  const HipMemProperties properties = OfDevice();
  size_t bytes = 0;
  FERRY_HIP(hipMemGetAllocationGranularity(&bytes, &properties, 0));
  return bytes;
}
std::byte* ReserveAddresses(size_t bytes) {
  void* begin = nullptr;
  FERRY_HIP(hipMemAddressReserve(&begin, bytes, 0, nullptr, 0));
  return static_cast<std::byte*>(begin);
}
void FreeAddresses(std::byte* begin, size_t bytes) { FERRY_HIP(hipMemAddressFree(begin, bytes)); }
void* NewMemory(size_t bytes) {
  const HipMemProperties properties = OfDevice();
  HipMemHandle memory = nullptr;
  FERRY_HIP(hipMemCreate(&memory, bytes, &properties, 0));
  return memory;
}
void MapMemory(std::byte* at, void* memory, size_t bytes) {
  const HipMemAccess access{kLocation, kHipMemReadWrite};
  FERRY_HIP(hipMemMap(at, bytes, 0, memory, 0));
  FERRY_HIP(hipMemSetAccess(at, bytes, &access, 1));
}
void UnmapMemory(std::byte* at, size_t bytes) { FERRY_HIP(hipMemUnmap(at, bytes)); }
void ReleaseMemory(void* memory) { FERRY_HIP(hipMemRelease(memory)); }

// Mapping by mapping, as the first releases of ROCm 6 need it.
void Copy(void* to, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    std::byte* const part_to = static_cast<std::byte*>(to) + done;
    const std::byte* const part_from = static_cast<const std::byte*>(from) + done;
    const size_t part = BytesOfMapping(part_from, BytesOfMapping(part_to, bytes - done));
    FERRY_HIP(hipMemcpy(part_to, part_from, part, kHipMemcpyDefault));
    done += part;
  }
}

}  // namespace ferry::vendor_memory
