#include "gpu_backends/level_zero/level_zero_backend.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu_backends/driver/driver_backend.h"
#include "gpu_backends/level_zero/level_zero_api.h"
#include "gpu_backends/level_zero/level_zero_context.h"
#include "gpu_backends/level_zero/level_zero_device.h"
#include "gpu_backends/level_zero/level_zero_kernels.h"
#include "gpu_backends/level_zero/level_zero_stream.h"
#include "gpu_backends/level_zero/level_zero_streams.h"

namespace ferry::gpu {
namespace {

constexpr size_t kAlignmentBytes = 256;

// Replaces the descriptor in a handle when the descriptor travels separately. It is no valid
// descriptor, and no driver begins another kind of handle with it.
constexpr int32_t kDescriptorTaken = -0x46657272;
static_assert(sizeof(ze_ipc_mem_handle_t) == sizeof(IpcHandle::opaque));

class LevelZeroDriver final : public Driver {
 public:
  explicit LevelZeroDriver(const LevelZeroApi& api) : api_(api) {}
  ~LevelZeroDriver() override;
  Status Open();

  std::string_view name() const override { return "level_zero"; }
  std::string version() const override { return contexts_.front()->version(); }
  int device_count() const override { return static_cast<int>(devices_.size()); }
  StatusOr<DeviceInfo> GetDeviceInfo(int device) override;

  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override;
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override;
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override;
  Status Free(PointerKind kind, void* pointer) override;
  PointerInfo Identify(const void* pointer) override;
  StatusOr<MemoryPiece> PieceAround(const void* pointer, const PointerInfo& info) override;

  Status Export(void* base, IpcHandle* handle) override;
  StatusOr<void*> Import(int device, const IpcHandle& handle) override;
  Status CloseImport(void* base) override;
  StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) override;
  Status LetKernelsReach(int device, int other) override;
  Status Register(void* pointer, uint64_t size_bytes) override;
  Status Unregister(void* pointer) override;

  StatusOr<NativeStream> CreateStream(int device) override {
    return streams_.Make(devices_[device].get());
  }
  Status CheckStream(int device, NativeStream stream) override {
    return streams_.Adopt(devices_[device].get(), stream);
  }
  void DestroyStream(int /*device*/, NativeStream stream) override { streams_.End(stream); }
  Status QueryStream(int device, NativeStream stream) override;
  Status Copy(int device, NativeStream stream, void* destination, const void* source,
              uint64_t size_bytes) override;

  StatusOr<NativeEvent> CreateEvent(int device) override;
  void DestroyEvent(int device, NativeEvent event) override;
  Status RecordEvent(int device, NativeStream stream, NativeEvent event) override;
  Status QueryEvent(int device, NativeEvent event) override;
  Status WaitEvent(int device, NativeStream stream, NativeEvent event) override;

  bool has_stream_words(int device) const override {
    return devices_[device]->info().stream_words == StreamWords::kNative;
  }
  Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) override;
  Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                  WaitCondition condition) override;
  Status LoadKernels(int device) override { return kernels_->Load(device); }
  KernelPowers kernel_powers(int device) const override;
  Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                std::span<const KernelArgument> arguments) override;
  Status EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) override;
  bool host_steps_hold() const override { return true; }

 private:
  Status OpenDriver(ze_driver_handle_t driver);
  // The context that knows the pointer, and what it says of it; null if none does.
  LevelZeroContext* Find(const void* pointer, ze_memory_allocation_properties_t* properties,
                         ze_device_handle_t* device, Status* failure) const;
  LevelZeroContext& ContextOf(const void* pointer) const;
  int OrdinalOf(ze_device_handle_t handle) const;
  // Turns kWouldBlock, and other failures, into an error that says so if the device is lost.
  Status UnlessLost(int device, Status status) const;

  const LevelZeroApi api_;
  std::vector<std::unique_ptr<LevelZeroContext>> contexts_;
  std::vector<std::unique_ptr<LevelZeroDevice>> devices_;
  std::unique_ptr<LevelZeroKernels> kernels_;  // once the devices are known
  LevelZeroStreams streams_;
};

Status LevelZeroDriver::Open() {
  const ze_result_t result = api_.init(ZE_INIT_FLAG_GPU_ONLY);
  if (result == ZE_RESULT_ERROR_UNINITIALIZED) {
    return {ErrorCode::kNotFound, "Level Zero: the loader finds no driver for a GPU (zeInit: " +
                                      ZeResultName(result) + ")"};
  }
  FERRY_RETURN_IF_ERROR(ZeStatus("zeInit", result));
  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDriverGet", api_.driver_get(&count, nullptr)));
  if (count == 0) {
    return {ErrorCode::kNotFound, "Level Zero: the loader has no driver (zeDriverGet)"};
  }
  std::vector<ze_driver_handle_t> drivers(count);
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDriverGet", api_.driver_get(&count, drivers.data())));
  drivers.resize(count);
  Status first_failure;
  for (const ze_driver_handle_t driver : drivers) {
    if (Status opened = OpenDriver(driver); !opened.ok() && first_failure.ok()) {
      first_failure = std::move(opened);
    }
  }
  if (!devices_.empty()) {
    kernels_ = std::make_unique<LevelZeroKernels>(devices_);
    return {};
  }
  FERRY_RETURN_IF_ERROR(first_failure);
  return {ErrorCode::kNotFound, "Level Zero: its drivers have no GPU (zeDeviceGet)"};
}

Status LevelZeroDriver::OpenDriver(ze_driver_handle_t driver) {
  StatusOr<std::unique_ptr<LevelZeroContext>> context = LevelZeroContext::Open(&api_, driver);
  FERRY_RETURN_IF_ERROR(context.status());
  StatusOr<std::vector<std::unique_ptr<LevelZeroDevice>>> devices =
      LevelZeroDevice::FindAll(context->get());
  FERRY_RETURN_IF_ERROR(devices.status());
  if (devices->empty()) {
    return {};
  }
  contexts_.push_back(std::move(*context));
  for (std::unique_ptr<LevelZeroDevice>& device : *devices) {
    devices_.push_back(std::move(device));
  }
  return {};
}

LevelZeroDriver::~LevelZeroDriver() {
  if (streams_.Abandon() && kernels_ != nullptr) {
    kernels_->Unload();
  }
}

StatusOr<DeviceInfo> LevelZeroDriver::GetDeviceInfo(int device) {
  DeviceInfo info = devices_[device]->info();
  const Status kernels = kernels_->Known(device);
  info.kernels = kernels.ok();
  info.no_kernels_because = kernels.message();
  return info;
}

// ---- Memory ----

StatusOr<void*> LevelZeroDriver::AllocateDevice(int device, uint64_t size_bytes) {
  LevelZeroDevice& target = *devices_[device];
  ze_device_mem_alloc_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
  ze_external_memory_export_desc_t exported{};
  exported.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC;
  exported.flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
  if (target.info().dmabuf) {
    exported.pNext = description.pNext;
    description.pNext = &exported;
  }
  ze_relaxed_allocation_limits_exp_desc_t relaxed{};
  relaxed.stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC;
  relaxed.flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE;
  if (target.context().has_relaxed_limits() && target.ExceedsLimit(size_bytes)) {
    relaxed.pNext = description.pNext;
    description.pNext = &relaxed;
  }
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(ZeStatus(
      "zeMemAllocDevice", api_.mem_alloc_device(target.context().handle(), &description, size_bytes,
                                                kAlignmentBytes, target.handle(), &pointer)));
  return pointer;
}

StatusOr<void*> LevelZeroDriver::AllocatePinned(uint64_t size_bytes) {
  ze_host_mem_alloc_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeMemAllocHost", api_.mem_alloc_host(contexts_.front()->handle(), &description,
                                                     size_bytes, kAlignmentBytes, &pointer)));
  return pointer;
}

StatusOr<void*> LevelZeroDriver::AllocateManaged(int device, uint64_t size_bytes) {
  LevelZeroDevice& target = *devices_[device];
  ze_device_mem_alloc_desc_t on_device{};
  on_device.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
  ze_host_mem_alloc_desc_t on_host{};
  on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeMemAllocShared",
               api_.mem_alloc_shared(target.context().handle(), &on_device, &on_host, size_bytes,
                                     kAlignmentBytes, target.handle(), &pointer)));
  return pointer;
}

Status LevelZeroDriver::Free(PointerKind /*kind*/, void* pointer) {
  return ZeStatus("zeMemFree", api_.mem_free(ContextOf(pointer).handle(), pointer));
}

PointerInfo LevelZeroDriver::Identify(const void* pointer) {
  ze_memory_allocation_properties_t properties{};
  ze_device_handle_t device = nullptr;
  Status failure;
  const LevelZeroContext* context = Find(pointer, &properties, &device, &failure);
  size_t size_bytes = 0;
  PointerInfo info;
  if (context != nullptr) {
    failure =
        ZeStatus("zeMemGetAddressRange",
                 api_.mem_get_address_range(context->handle(), pointer, &info.base, &size_bytes));
  }
  if (!failure.ok()) {
    return LookupFailed(failure);
  }
  if (context == nullptr) {
    return {};
  }
  info.size_bytes = size_bytes;
  info.allocation_id = (properties.id + 1) & (~uint64_t{0} >> 1);  // the vendor's begin with 0
  switch (properties.type) {
    case ZE_MEMORY_TYPE_DEVICE:
      info.kind = PointerKind::kDevice;
      info.device = OrdinalOf(device);
      break;
    case ZE_MEMORY_TYPE_SHARED:
      info.kind = PointerKind::kManaged;
      info.device = OrdinalOf(device);
      info.direct.cpu = true;
      break;
    case ZE_MEMORY_TYPE_HOST:
      info.kind = PointerKind::kPinned;
      info.direct = {.cpu = true, .network = true};
      break;
    default:
      return {};
  }
  return info;
}

// The range above is one mapping of zeVirtualMemMap's, although others may lie beside it. Only what
// was reserved has an access attribute.
StatusOr<MemoryPiece> LevelZeroDriver::PieceAround(const void* pointer, const PointerInfo& info) {
  ze_memory_access_attribute_t access = ZE_MEMORY_ACCESS_ATTRIBUTE_NONE;
  size_t reserved_bytes = 0;
  const ze_result_t result =
      api_.virtual_mem_get_access_attribute == nullptr
          ? ZE_RESULT_ERROR_UNINITIALIZED
          : api_.virtual_mem_get_access_attribute(ContextOf(pointer).handle(), info.base,
                                                  info.size_bytes, &access, &reserved_bytes);
  if (result == ZE_RESULT_ERROR_UNINITIALIZED) {  // also the loader's answer
    return Status(ErrorCode::kUnsupported, "this driver has no mappings");
  }
  FERRY_RETURN_IF_ERROR(ZeStatus("zeVirtualMemGetAccessAttribute", result));
  const auto* const begin = static_cast<const std::byte*>(info.base);
  return MemoryPiece{begin, begin + info.size_bytes, true};
}

LevelZeroContext* LevelZeroDriver::Find(const void* pointer,
                                        ze_memory_allocation_properties_t* properties,
                                        ze_device_handle_t* device, Status* failure) const {
  for (const std::unique_ptr<LevelZeroContext>& context : contexts_) {
    *properties = {};
    *device = nullptr;
    properties->stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
    const Status known =
        ZeStatus("zeMemGetAllocProperties",
                 api_.mem_get_alloc_properties(context->handle(), pointer, properties, device));
    // Drivers of Intel's before August 2025 tell the device of mapped memory, and not its type.
    if (known.ok() && properties->type == ZE_MEMORY_TYPE_UNKNOWN && *device != nullptr) {
      properties->type = ZE_MEMORY_TYPE_DEVICE;
    }
    if (known.ok() && properties->type != ZE_MEMORY_TYPE_UNKNOWN) {
      return context.get();
    }
    if (!known.ok() && known.code() != ErrorCode::kInvalidArgument) {
      *failure = known;
    }
  }
  return nullptr;
}

LevelZeroContext& LevelZeroDriver::ContextOf(const void* pointer) const {
  if (contexts_.size() > 1) {
    ze_memory_allocation_properties_t properties{};
    ze_device_handle_t device = nullptr;
    Status failure;
    if (LevelZeroContext* context = Find(pointer, &properties, &device, &failure);
        context != nullptr) {
      return *context;
    }
  }
  return *contexts_.front();
}

int LevelZeroDriver::OrdinalOf(ze_device_handle_t handle) const {
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i]->Has(handle)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// A driver on Linux puts the number of a descriptor first in its handle, valid in the exporting
// process. A copy of the descriptor travels beside the handle, and the importer puts its own number
// there. A handle that begins with no descriptor is one that the driver can open by itself.
Status LevelZeroDriver::Export(void* base, IpcHandle* handle) {
  const ze_context_handle_t context = ContextOf(base).handle();
  ze_ipc_mem_handle_t native{};
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeMemGetIpcHandle", api_.mem_get_ipc_handle(context, base, &native)));
  int32_t number = kDescriptorTaken;
  std::memcpy(&number, native.data, sizeof(number));
  std::memcpy(handle->opaque.data(), native.data, sizeof(native));
  const int copy = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, 3);
  const int error = errno;
  if (copy >= 0) {
    handle->fd.Reset(copy);
    std::memcpy(handle->opaque.data(), &kDescriptorTaken, sizeof(kDescriptorTaken));
    if (api_.mem_put_ipc_handle != nullptr) {
      api_.mem_put_ipc_handle(context, native);
    }
  } else if (number >= 0 && error != EBADF) {
    return StatusFromErrno(
        error, "zeMemGetIpcHandle: copying the handle's descriptor " + std::to_string(number));
  }
  return {};
}

StatusOr<void*> LevelZeroDriver::Import(int device, const IpcHandle& handle) {
  LevelZeroDevice& target = *devices_[device];
  ze_ipc_mem_handle_t native{};
  std::memcpy(native.data, handle.opaque.data(), sizeof(native));
  int32_t number = 0;
  std::memcpy(&number, native.data, sizeof(number));
  if (handle.fd.valid()) {
    number = handle.fd.get();
    std::memcpy(native.data, &number, sizeof(number));
  } else if (number == kDescriptorTaken) {
    return Status(ErrorCode::kInvalidArgument,
                  "ImportIpc: the handle came without its descriptor; send it by SCM_RIGHTS");
  }
  void* base = nullptr;
  const Status status = ZeStatus(
      "zeMemOpenIpcHandle",
      api_.mem_open_ipc_handle(target.context().handle(), target.handle(), native, 0, &base));
  if (!status.ok()) {
    return Status(status.code(),
                  status.message() + " (has the exporting process ended, or freed the memory?)");
  }
  return base;
}

Status LevelZeroDriver::CloseImport(void* base) {
  return ZeStatus("zeMemCloseIpcHandle", api_.mem_close_ipc_handle(ContextOf(base).handle(), base));
}

// Memory of a context is there for all of its devices that reach each other.
Status LevelZeroDriver::LetKernelsReach(int device, int other) {
  const LevelZeroDevice& from = *devices_[device];
  ze_bool_t can = 0;
  if (&from.context() == &devices_[other]->context()) {
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDeviceCanAccessPeer",
                 api_.device_can_access_peer(from.handle(), devices_[other]->handle(), &can)));
  }
  return can != 0 ? Status()
                  : Status(ErrorCode::kUnsupported, "device " + std::to_string(device) +
                                                        " does not reach the memory of device " +
                                                        std::to_string(other));
}

StatusOr<Dmabuf> LevelZeroDriver::ExportDmabuf(void* base, uint64_t /*size_bytes*/) {
  ze_external_memory_export_fd_t exported{};
  exported.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD;
  exported.flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
  exported.fd = -1;
  ze_memory_allocation_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
  properties.pNext = &exported;
  ze_device_handle_t device = nullptr;
  FERRY_RETURN_IF_ERROR(ZeStatus(
      "zeMemGetAllocProperties",
      api_.mem_get_alloc_properties(ContextOf(base).handle(), base, &properties, &device)));
  if (exported.fd < 0) {
    return Status(ErrorCode::kUnsupported,
                  "ExportDmabuf: the driver gives no dma-buf for this memory "
                  "(zeMemGetAllocProperties)");
  }
  // The driver may hand out the descriptor that it keeps of the allocation, and then closes it
  // itself.
  Dmabuf dmabuf;
  dmabuf.fd.Reset(fcntl(exported.fd, F_DUPFD_CLOEXEC, 3));
  if (!dmabuf.fd.valid()) {
    return StatusFromErrno(errno,
                           "ExportDmabuf: copying descriptor " + std::to_string(exported.fd));
  }
  return dmabuf;
}

Status LevelZeroDriver::Register(void* pointer, uint64_t size_bytes) {
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (Status status = contexts_[i]->ImportHostMemory(pointer, size_bytes); !status.ok()) {
      while (i-- > 0) {
        static_cast<void>(contexts_[i]->ReleaseHostMemory(pointer));  // the first error counts
      }
      return status;
    }
  }
  return {};
}

Status LevelZeroDriver::Unregister(void* pointer) {
  Status first_failure;
  for (const std::unique_ptr<LevelZeroContext>& context : contexts_) {
    if (Status status = context->ReleaseHostMemory(pointer); !status.ok() && first_failure.ok()) {
      first_failure = std::move(status);
    }
  }
  return first_failure;
}

// ---- Streams ----

Status LevelZeroDriver::UnlessLost(int device, Status status) const {
  if (!status.ok()) {
    FERRY_RETURN_IF_ERROR(devices_[device]->Check());
  }
  return status;
}

Status LevelZeroDriver::QueryStream(int device, NativeStream stream) {
  return streams_.On(stream, [&](LevelZeroStream& found) {
    if (found.losses_before() < devices_[device]->losses()) {
      return Status(ErrorCode::kSystem,
                    "Level Zero: ZE_RESULT_ERROR_DEVICE_LOST, since the stream was made");
    }
    return UnlessLost(device, found.Query());
  });
}

Status LevelZeroDriver::Copy(int /*device*/, NativeStream stream, void* destination,
                             const void* source, uint64_t size_bytes) {
  return streams_.On(
      stream, [&](LevelZeroStream& found) { return found.Copy(destination, source, size_bytes); });
}

StatusOr<NativeEvent> LevelZeroDriver::CreateEvent(int device) {
  LevelZeroContext& context = devices_[device]->context();
  StatusOr<std::shared_ptr<HeldEvent>> held = context.events().Hold();
  FERRY_RETURN_IF_ERROR(held.status());
  return static_cast<NativeEvent>(new LevelZeroEvent{&context, std::move(*held)});
}

void LevelZeroDriver::DestroyEvent(int /*device*/, NativeEvent event) {
  delete static_cast<LevelZeroEvent*>(event);
}

Status LevelZeroDriver::RecordEvent(int /*device*/, NativeStream stream, NativeEvent event) {
  return streams_.On(stream, [&](LevelZeroStream& found) {
    return found.Record(*static_cast<LevelZeroEvent*>(event));
  });
}

Status LevelZeroDriver::QueryEvent(int device, NativeEvent event) {
  const HeldEvent& held = *static_cast<LevelZeroEvent*>(event)->held;
  switch (held.stage()) {
    case HeldEvent::Stage::kNew:
      return UnlessLost(
          device, {ErrorCode::kWouldBlock, "Level Zero: a host step before the event is not done"});
    case HeldEvent::Stage::kDropped:
      return held.why();
    case HeldEvent::Stage::kInList:
      break;
  }
  Status status = ZeStatus("zeEventQueryStatus", api_.event_query_status(held.handle()));
  return status.code() == ErrorCode::kWouldBlock ? status : UnlessLost(device, std::move(status));
}

Status LevelZeroDriver::WaitEvent(int /*device*/, NativeStream stream, NativeEvent event) {
  return streams_.On(stream, [&](LevelZeroStream& found) {
    return found.Wait(*static_cast<LevelZeroEvent*>(event));
  });
}

Status LevelZeroDriver::WriteWord(int /*device*/, NativeStream stream, uint64_t* word,
                                  uint64_t value) {
  return streams_.On(stream, [&](LevelZeroStream& found) { return found.WriteWord(word, value); });
}

Status LevelZeroDriver::WaitWord(int /*device*/, NativeStream stream, const uint64_t* word,
                                 uint64_t value, WaitCondition condition) {
  return streams_.On(
      stream, [&](LevelZeroStream& found) { return found.WaitWord(word, value, condition); });
}

// Lists of one queue hold each other up: a waiting kernel may block the kernel that would end its
// wait.
KernelPowers LevelZeroDriver::kernel_powers(int device) const {
  const LevelZeroDevice& target = *devices_[device];
  return {.host_words = target.reaches_registered(),
          .host_atomics = target.has_host_atomics(),
          .may_wait = false};
}

Status LevelZeroDriver::Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                               std::span<const KernelArgument> arguments) {
  StatusOr<LevelZeroKernels::Append> append = kernels_->Prepare(device, kernel, threads, arguments);
  FERRY_RETURN_IF_ERROR(append.status());
  return streams_.On(stream,
                     [&](LevelZeroStream& found) { return found.Launch(std::move(*append)); });
}

Status LevelZeroDriver::EnqueueHostStep(int /*device*/, NativeStream stream, HostStep step,
                                        void* argument) {
  return streams_.On(stream,
                     [&](LevelZeroStream& found) { return found.EnqueueStep(step, argument); });
}

}  // namespace

StatusOr<std::unique_ptr<Driver>> OpenLevelZeroDriver(std::string_view library_path) {
  StatusOr<LevelZeroApi> api = OpenLevelZero(library_path);
  FERRY_RETURN_IF_ERROR(api.status());
  auto driver = std::make_unique<LevelZeroDriver>(*api);
  FERRY_RETURN_IF_ERROR(driver->Open());
  return std::unique_ptr<Driver>(std::move(driver));
}

StatusOr<std::unique_ptr<GpuBackend>> CreateLevelZeroBackend(
    const LevelZeroBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenLevelZeroDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
