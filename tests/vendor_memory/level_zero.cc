// Intel's driver, by Level Zero's loader.
#include <level_zero/ze_api.h>

#include <vector>

#include "tests/vendor_memory/vendor.h"

#define FERRY_ZE(call) Require((call) == ZE_RESULT_SUCCESS, #call)

namespace ferry::vendor_memory {
namespace {

ze_context_handle_t context;  // the program's own, which Ferry does not know
std::vector<ze_device_handle_t> devices;

constexpr ze_device_mem_alloc_desc_t kOnDevice = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, nullptr,
                                                  0, 0};
constexpr ze_host_mem_alloc_desc_t kOnHost = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};

void* AllocateOn(size_t device, size_t bytes) {
  void* pointer = nullptr;
  FERRY_ZE(zeMemAllocDevice(context, &kOnDevice, bytes, 64, devices[device], &pointer));
  return pointer;
}
void* AllocateDevice(size_t bytes) { return AllocateOn(0, bytes); }
void* AllocateElsewhere(size_t bytes) { return AllocateOn(devices.size() - 1, bytes); }

void* AllocateShared(size_t bytes) {
  void* pointer = nullptr;
  FERRY_ZE(zeMemAllocShared(context, &kOnDevice, &kOnHost, bytes, 64, devices[0], &pointer));
  return pointer;
}

void* AllocateHost(size_t bytes) {
  void* pointer = nullptr;
  FERRY_ZE(zeMemAllocHost(context, &kOnHost, bytes, 64, &pointer));
  return pointer;
}

void Free(void* pointer, size_t) { FERRY_ZE(zeMemFree(context, pointer)); }

constexpr Kind kKinds[] = {
    {"device", false, AllocateDevice, Free},       kVirtualKind,
    {"elsewhere", false, AllocateElsewhere, Free}, {"managed", true, AllocateShared, Free},
    {"pinned", true, AllocateHost, Free},
};

}  // namespace

const char* VendorName() { return "level_zero"; }

void Begin() {
  FERRY_ZE(zeInit(0));
  uint32_t count = 1;
  ze_driver_handle_t driver = nullptr;
  FERRY_ZE(zeDriverGet(&count, &driver));
  count = 0;
  FERRY_ZE(zeDeviceGet(driver, &count, nullptr));
  devices.resize(count);
  FERRY_ZE(zeDeviceGet(driver, &count, devices.data()));
  const ze_context_desc_t description = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
  FERRY_ZE(zeContextCreate(driver, &description, &context));
}

void UseDevice(int /*device*/) {}  // nothing of Level Zero's is a thread's own

int DeviceCount() { return static_cast<int>(devices.size()); }

std::span<const Kind> Kinds() { return kKinds; }

// ---- Virtual memory ----

size_t LeastMappingBytes() {
  size_t bytes = 0;
  FERRY_ZE(zeVirtualMemQueryPageSize(context, devices[0], 1, &bytes));
  return bytes;
}
std::byte* ReserveAddresses(size_t bytes) {
  void* begin = nullptr;
  FERRY_ZE(zeVirtualMemReserve(context, nullptr, bytes, &begin));
  return static_cast<std::byte*>(begin);
}
void FreeAddresses(std::byte* begin, size_t bytes) {
  FERRY_ZE(zeVirtualMemFree(context, begin, bytes));
}
void* NewMemory(size_t bytes) {
  ze_physical_mem_desc_t description = {};
  description.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC;
  description.size = 2 * bytes;
  ze_physical_mem_handle_t memory = nullptr;
  FERRY_ZE(zePhysicalMemCreate(context, devices[0], &description, &memory));
  return memory;
}
// The second half: what a handle of the memory names is the first.
void MapMemory(std::byte* at, void* memory, size_t bytes) {
  FERRY_ZE(zeVirtualMemMap(context, at, bytes, static_cast<ze_physical_mem_handle_t>(memory), bytes,
                           ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  FERRY_ZE(
      zeVirtualMemSetAccessAttribute(context, at, bytes, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
}
void UnmapMemory(std::byte* at, size_t bytes) { FERRY_ZE(zeVirtualMemUnmap(context, at, bytes)); }
void ReleaseMemory(void* memory) {
  FERRY_ZE(zePhysicalMemDestroy(context, static_cast<ze_physical_mem_handle_t>(memory)));
}

void Copy(void* to, const void* from, size_t bytes) {
  ze_command_queue_desc_t description = {};
  description.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
  description.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
  const ze_event_pool_desc_t pool_description = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr,
                                                 ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1};
  const ze_event_desc_t event_description = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0,
                                             ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_HOST};
  ze_command_list_handle_t list = nullptr;
  ze_event_pool_handle_t pool = nullptr;
  ze_event_handle_t event = nullptr;
  FERRY_ZE(zeCommandListCreateImmediate(context, devices[0], &description, &list));
  FERRY_ZE(zeEventPoolCreate(context, &pool_description, 1, devices.data(), &pool));
  FERRY_ZE(zeEventCreate(pool, &event_description, &event));
  FERRY_ZE(zeCommandListAppendMemoryCopy(list, to, from, bytes, event, 0, nullptr));
  FERRY_ZE(zeEventHostSynchronize(event, UINT64_MAX));
  FERRY_ZE(zeEventDestroy(event));
  FERRY_ZE(zeEventPoolDestroy(pool));
  FERRY_ZE(zeCommandListDestroy(list));
}

}  // namespace ferry::vendor_memory
