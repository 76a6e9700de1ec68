#include "gpu_backends/level_zero/level_zero_device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "gpu_backends/driver/pci.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kProbeTimeoutNs = 1'000'000'000;
constexpr uint64_t kProbeValue = (uint64_t{7} << 32) + 1;  // needs all of the word

}  // namespace

StatusOr<std::vector<std::unique_ptr<LevelZeroDevice>>> LevelZeroDevice::FindAll(
    LevelZeroContext* context) {
  const LevelZeroApi& api = context->api();
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDeviceGet", api.device_get(context->driver(), &count, nullptr)));
  std::vector<ze_device_handle_t> handles(count);
  if (count > 0) {
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDeviceGet", api.device_get(context->driver(), &count, handles.data())));
    handles.resize(count);
  }
  std::vector<std::unique_ptr<LevelZeroDevice>> devices;
  for (const ze_device_handle_t handle : handles) {
    ze_device_properties_t properties{};
    properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDeviceGetProperties", api.device_get_properties(handle, &properties)));
    if (properties.type != ZE_DEVICE_TYPE_GPU) {
      continue;
    }
    std::unique_ptr<LevelZeroDevice> device(new LevelZeroDevice(context, handle));
    FERRY_RETURN_IF_ERROR(device->Describe(properties));
    devices.push_back(std::move(device));
  }
  return devices;
}

Status LevelZeroDevice::Describe(const ze_device_properties_t& properties) {
  info_.name.assign(properties.name, strnlen(properties.name, sizeof(properties.name)));
  largest_allocation_bytes_ = properties.maxMemAllocSize;
  info_.ipc = context_->has_ipc();
  FERRY_RETURN_IF_ERROR(DescribeMemory(properties));
  FERRY_RETURN_IF_ERROR(FindSubDevices());
  FERRY_RETURN_IF_ERROR(ChooseQueueGroup());
  FindPciAddress();
  info_.numa_node = info_.pci_address.empty() ? -1 : PciNumaNode(info_.pci_address);
  info_.stream_words = WordsWork() ? StreamWords::kNative : StreamWords::kHelper;
  return {};
}

Status LevelZeroDevice::DescribeMemory(const ze_device_properties_t& properties) {
  const LevelZeroApi& api = context_->api();
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDeviceGetMemoryProperties",
                                 api.device_get_memory_properties(handle_, &count, nullptr)));
  std::vector<ze_device_memory_properties_t> memories(count);
  for (ze_device_memory_properties_t& memory : memories) {
    memory.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
  }
  if (count > 0) {
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDeviceGetMemoryProperties",
                 api.device_get_memory_properties(handle_, &count, memories.data())));
  }
  // Allocations come from the first, which is the largest of those there are.
  info_.total_bytes = count > 0 ? memories.front().totalSize : properties.maxMemAllocSize;
  if (!context_->has_relaxed_limits()) {
    info_.total_bytes = std::min(info_.total_bytes, properties.maxMemAllocSize);
  }

  ze_device_memory_access_properties_t access{};
  access.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDeviceGetMemoryAccessProperties",
                                 api.device_get_memory_access_properties(handle_, &access)));
  has_host_atomics_ =
      (access.hostAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC) != 0;
  reaches_system_ =
      (access.sharedSystemAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT) != 0;
  info_.managed = (access.sharedSingleDeviceAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW) != 0;

  ze_device_external_memory_properties_t external{};
  external.stype = ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDeviceGetExternalMemoryProperties",
                                 api.device_get_external_memory_properties(handle_, &external)));
  info_.dmabuf = (external.memoryAllocationExportTypes & ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF) != 0;
  return {};
}

Status LevelZeroDevice::FindSubDevices() {
  const LevelZeroApi& api = context_->api();
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDeviceGetSubDevices", api.device_get_sub_devices(handle_, &count, nullptr)));
  sub_devices_.resize(count);
  if (count == 0) {
    return {};
  }
  return ZeStatus("zeDeviceGetSubDevices",
                  api.device_get_sub_devices(handle_, &count, sub_devices_.data()));
}

Status LevelZeroDevice::ChooseQueueGroup() {
  const LevelZeroApi& api = context_->api();
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDeviceGetCommandQueueGroupProperties",
               api.device_get_command_queue_group_properties(handle_, &count, nullptr)));
  std::vector<ze_command_queue_group_properties_t> groups(count);
  for (ze_command_queue_group_properties_t& group : groups) {
    group.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
  }
  if (count > 0) {
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDeviceGetCommandQueueGroupProperties",
                 api.device_get_command_queue_group_properties(handle_, &count, groups.data())));
  }
  // One that runs kernels can copy too. The first that only copies is the main copy engine.
  const auto choose = [&](ze_command_queue_group_property_flags_t wanted,
                          ze_command_queue_group_property_flags_t unwanted, Queues* queues) {
    for (uint32_t i = 0; i < groups.size() && queues->count == 0; ++i) {
      if ((groups[i].flags & wanted) != 0 && (groups[i].flags & unwanted) == 0) {
        queues->group = i;
        queues->count = groups[i].numQueues;
      }
    }
    return queues->count != 0;
  };
  runs_kernels_ = choose(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE, 0, &queues_);
  if (runs_kernels_) {
    (void)choose(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY,
                 ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE, &copies_);
    return {};
  }
  if (choose(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, 0, &queues_)) {
    return {};
  }
  return {ErrorCode::kUnsupported,
          "Level Zero: " + info_.name + " has no queue that copies or runs kernels"};
}

void LevelZeroDevice::FindPciAddress() {
  const LevelZeroApi& api = context_->api();
  ze_pci_ext_properties_t pci{};
  pci.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES;
  if (api.device_pci_get_properties_ext == nullptr ||
      api.device_pci_get_properties_ext(handle_, &pci) != ZE_RESULT_SUCCESS) {
    return;  // as of a device that is on no PCI bus
  }
  char text[48];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", pci.address.domain, pci.address.bus,
                pci.address.device, pci.address.function);
  info_.pci_address = text;
}

bool LevelZeroDevice::Has(ze_device_handle_t handle) const {
  return handle == handle_ ||
         std::find(sub_devices_.begin(), sub_devices_.end(), handle) != sub_devices_.end();
}

Status LevelZeroDevice::Check() const {
  const LevelZeroApi& api = context_->api();
  if (api.device_get_status == nullptr) {
    return {};
  }
  // Drivers may lack this call: only errors about the device count.
  const ze_result_t result = api.device_get_status(handle_);
  if (result != ZE_RESULT_ERROR_DEVICE_LOST && result != ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET) {
    return {};
  }
  ++losses_;
  return ZeStatus("zeDeviceGetStatus", result);
}

StatusOr<ze_command_list_handle_t> LevelZeroDevice::CreateList(bool copies) {
  Queues& queues = copies && has_copy_engine() ? copies_ : queues_;
  ze_command_queue_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
  description.ordinal = queues.group;
  description.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
  description.priority = ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
  // Lists of one queue may hold each other up where a command waits, so they are spread over all.
  if (queues.count > 1) {
    description.flags = ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY;
    description.index = queues.next.fetch_add(1, std::memory_order_relaxed) % queues.count;
  }
  ze_command_list_handle_t list = nullptr;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeCommandListCreateImmediate",
                                 context_->api().command_list_create_immediate(
                                     context_->handle(), handle_, &description, &list)));
  return list;
}

bool LevelZeroDevice::WordsWork() {
  if (!context_->has_words()) {
    return false;
  }
  const LevelZeroApi& api = context_->api();
  StatusOr<ze_command_list_handle_t> list = CreateList();
  if (!list.ok()) {
    return false;
  }
  void* memory = nullptr;
  ze_host_mem_alloc_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  StatusOr<ze_event_handle_t> event = context_->events().Acquire();
  bool idle = true;
  bool work = false;
  if (event.ok() && api.mem_alloc_host(context_->handle(), &description, sizeof(uint64_t), 0,
                                       &memory) == ZE_RESULT_SUCCESS) {
    auto* word = static_cast<uint64_t*>(memory);
    *word = 0;
    const bool appended =
        context_->AppendWrite(*list, word, kProbeValue).ok() &&
        context_->AppendWait(*list, word, kProbeValue, WaitCondition::kGreaterOrEqual).ok();
    // Also after a failure, to know when the list is idle.
    idle = api.command_list_append_barrier(*list, *event, 0, nullptr) == ZE_RESULT_SUCCESS &&
           api.event_host_synchronize(*event, kProbeTimeoutNs) == ZE_RESULT_SUCCESS;
    work = appended && idle && *word == kProbeValue;
  }
  if (!idle) {
    context_->Abandon();  // the device still refers to the list, the event and the memory
    return false;
  }
  if (memory != nullptr) {
    api.mem_free(context_->handle(), memory);
  }
  if (event.ok()) {
    context_->events().Release(*event);
  }
  api.command_list_destroy(*list);
  return work;
}

}  // namespace ferry::gpu
