#include <fcntl.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "benchmarks/gpu/bare_gpu.h"
#include "gpu_backends/level_zero/level_zero_api.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

constexpr size_t kAlignmentBytes = 256;
constexpr uint32_t kEvents = 64;  // signalled once each between two Waits, then used again
constexpr int32_t kNoDescriptor = -1;

void Must(const char* call, ze_result_t result) {
  if (result != ZE_RESULT_SUCCESS) {
    FailCall(call, result);
  }
}

// Version 1.4 has no lists that run in order: what an application wants in order needs barriers, as
// Ferry's commands do.
class BareLevelZero final : public BareGpu {
 public:
  BareLevelZero(const gpu::LevelZeroApi& api, ze_driver_handle_t driver, ze_device_handle_t device)
      : api_(api), device_(device) {
    ze_context_desc_t context{};
    context.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
    Must("zeContextCreate", api_.context_create(driver, &context, &context_));
    ze_command_queue_desc_t queue{};
    queue.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    queue.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    for (ze_command_list_handle_t& list : lists_) {
      Must("zeCommandListCreateImmediate",
           api_.command_list_create_immediate(context_, device_, &queue, &list));
    }
    ze_event_pool_desc_t pool{};
    pool.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
    pool.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    pool.count = kEvents + lists_.size() + 1;
    Must("zeEventPoolCreate", api_.event_pool_create(context_, &pool, 0, nullptr, &pool_));
    for (uint32_t i = 0; i < pool.count; ++i) {
      ze_event_desc_t event{};
      event.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
      event.index = i;
      event.signal = ZE_EVENT_SCOPE_FLAG_HOST;
      event.wait = ZE_EVENT_SCOPE_FLAG_HOST;
      Must("zeEventCreate", api_.event_create(pool_, &event, &events_.emplace_back()));
    }
  }
  ~BareLevelZero() override {
    for (ze_command_list_handle_t list : lists_) {
      (void)api_.command_list_destroy(list);
    }
    for (ze_event_handle_t event : events_) {
      (void)api_.event_destroy(event);
    }
    (void)api_.event_pool_destroy(pool_);
    (void)api_.context_destroy(context_);
  }

  const char* NameOf(GpuCall call) const override {
    switch (call) {
      case GpuCall::kIdentify:
        return "zeMemGetAllocProperties, zeMemGetAddressRange";
      case GpuCall::kCopy:
        return "zeCommandListAppendBarrier, ...MemoryCopy";
      case GpuCall::kRecordEvent:
        return "zeCommandListAppendBarrier";
      case GpuCall::kWaitEvent:
        return "zeCommandListAppendWaitOnEvents";
      case GpuCall::kQueryEvent:
        return "zeEventQueryStatus";
      case GpuCall::kAllocate:
        return "zeMemAllocDevice, zeMemFree";
      case GpuCall::kExport:
        return "zeMemGetIpcHandle, dup";
      case GpuCall::kImport:
        return "zeMemOpenIpcHandle, ...Close...";
      case GpuCall::kQueryStream:  // version 1.4 asks events only
      case GpuCall::kWriteWord:    // extensions of one driver
      case GpuCall::kWaitWord:
      case GpuCall::kRegister:
        return nullptr;
    }
    return nullptr;
  }

  void Identify(const void* pointer) override {
    ze_memory_allocation_properties_t properties{};
    properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
    ze_device_handle_t device = nullptr;
    void* base = nullptr;
    size_t size_bytes = 0;
    if (api_.mem_get_alloc_properties(context_, pointer, &properties, &device) ==
            ZE_RESULT_SUCCESS &&
        properties.type != ZE_MEMORY_TYPE_UNKNOWN) {
      (void)api_.mem_get_address_range(context_, pointer, &base, &size_bytes);
    }
  }
  void* Allocate(PointerKind kind, uint64_t size_bytes) override {
    ze_device_mem_alloc_desc_t on_device{};
    on_device.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    ze_host_mem_alloc_desc_t on_host{};
    on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    void* pointer = nullptr;
    if (kind == PointerKind::kPinned) {
      Must("zeMemAllocHost",
           api_.mem_alloc_host(context_, &on_host, size_bytes, kAlignmentBytes, &pointer));
    } else if (kind == PointerKind::kManaged) {
      Must("zeMemAllocShared", api_.mem_alloc_shared(context_, &on_device, &on_host, size_bytes,
                                                     kAlignmentBytes, device_, &pointer));
    } else {
      Must("zeMemAllocDevice", api_.mem_alloc_device(context_, &on_device, size_bytes,
                                                     kAlignmentBytes, device_, &pointer));
    }
    return pointer;
  }
  void Free(PointerKind /*kind*/, void* pointer) override {
    Must("zeMemFree", api_.mem_free(context_, pointer));
  }
  // The handle begins with a descriptor, which must travel by itself, or else with a value that
  // the importing driver understands.
  gpu::IpcHandle Export(void* base) override {
    ze_ipc_mem_handle_t native{};
    Must("zeMemGetIpcHandle", api_.mem_get_ipc_handle(context_, base, &native));
    int32_t number = kNoDescriptor;
    std::memcpy(&number, native.data, sizeof(number));
    gpu::IpcHandle handle;
    std::memcpy(handle.opaque.data(), native.data, sizeof(native));
    handle.fd.Reset(number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, 3));
    if (handle.fd.valid() && api_.mem_put_ipc_handle != nullptr) {
      (void)api_.mem_put_ipc_handle(context_, native);
    }
    return handle;
  }
  void* Import(const gpu::IpcHandle& handle) override {
    ze_ipc_mem_handle_t native{};
    std::memcpy(native.data, handle.opaque.data(), sizeof(native));
    if (handle.fd.valid()) {
      const int32_t number = handle.fd.get();
      std::memcpy(native.data, &number, sizeof(number));
    }
    void* pointer = nullptr;
    Must("zeMemOpenIpcHandle", api_.mem_open_ipc_handle(context_, device_, native, 0, &pointer));
    return pointer;
  }
  void CloseImport(void* pointer) override {
    Must("zeMemCloseIpcHandle", api_.mem_close_ipc_handle(context_, pointer));
  }
  void Register(void* /*pointer*/, uint64_t /*size_bytes*/) override {}
  void Unregister(void* /*pointer*/) override {}

  void Copy(void* destination, const void* source, uint64_t size_bytes) override {
    Barrier(0, nullptr);
    Must("zeCommandListAppendMemoryCopy",
         api_.command_list_append_memory_copy(lists_[0], destination, source, size_bytes, nullptr,
                                              0, nullptr));
  }
  void RecordEvent() override { Barrier(0, events_[used_++ % kEvents]); }
  void QueryStream() override {}
  void WriteWord(uint64_t* /*word*/, uint64_t /*value*/) override {}
  void WaitWord(uint64_t* /*word*/, uint64_t /*value*/) override {}
  void WaitEvent() override {
    ze_event_handle_t event = LastEvent();
    Must("zeCommandListAppendWaitOnEvents",
         api_.command_list_append_wait_on_events(lists_[1], 1, &event));
  }
  void QueryEvent() override { (void)api_.event_query_status(LastEvent()); }
  bool Hold() override {
    Must("zeEventHostReset", api_.event_host_reset(gate()));
    for (ze_command_list_handle_t list : lists_) {
      ze_event_handle_t event = gate();
      Must("zeCommandListAppendWaitOnEvents",
           api_.command_list_append_wait_on_events(list, 1, &event));
    }
    return true;
  }
  void Release() override { Must("zeEventHostSignal", api_.event_host_signal(gate())); }
  void Wait() override {
    for (size_t i = 0; i < lists_.size(); ++i) {
      const ze_event_handle_t end = events_[kEvents + i];
      Barrier(i, end);
      Must("zeEventHostSynchronize", api_.event_host_synchronize(end, UINT64_MAX));
      Must("zeEventHostReset", api_.event_host_reset(end));
    }
    // The last one stays for WaitEvent and QueryEvent.
    for (uint32_t i = 0; i + 1 < used_ && i + 1 < kEvents; ++i) {
      Must("zeEventHostReset", api_.event_host_reset(events_[i]));
    }
    if (used_ > 1) {
      std::swap(events_[0], events_[(used_ - 1) % kEvents]);
      used_ = 1;
    }
  }

 private:
  ze_event_handle_t gate() const { return events_.back(); }
  ze_event_handle_t LastEvent() const { return events_[(used_ - 1) % kEvents]; }
  void Barrier(size_t list, ze_event_handle_t signal) {
    Must("zeCommandListAppendBarrier",
         api_.command_list_append_barrier(lists_[list], signal, 0, nullptr));
  }

  const gpu::LevelZeroApi api_;
  const ze_device_handle_t device_;
  ze_context_handle_t context_ = nullptr;
  std::array<ze_command_list_handle_t, 2> lists_{};
  ze_event_pool_handle_t pool_ = nullptr;
  std::vector<ze_event_handle_t> events_;
  uint32_t used_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<BareGpu>> OpenBareLevelZero(const config::Options& options) {
  StatusOr<gpu::LevelZeroApi> api = gpu::OpenLevelZero(options.level_zero_library);
  FERRY_RETURN_IF_ERROR(api.status());
  FERRY_RETURN_IF_ERROR(gpu::ZeStatus("zeInit", api->init(ZE_INIT_FLAG_GPU_ONLY)));
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(gpu::ZeStatus("zeDriverGet", api->driver_get(&count, nullptr)));
  std::vector<ze_driver_handle_t> drivers(count);
  FERRY_RETURN_IF_ERROR(gpu::ZeStatus("zeDriverGet", api->driver_get(&count, drivers.data())));
  for (const ze_driver_handle_t driver : drivers) {
    uint32_t one = 1;
    ze_device_handle_t device = nullptr;
    if (api->device_get(driver, &one, &device) == ZE_RESULT_SUCCESS && one == 1) {
      return std::unique_ptr<BareGpu>(std::make_unique<BareLevelZero>(*api, driver, device));
    }
  }
  return Status(ErrorCode::kNotFound, "Level Zero: its drivers have no device");
}

}  // namespace ferry::bench
