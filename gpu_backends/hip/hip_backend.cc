#include "gpu_backends/hip/hip_backend.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu_backends/driver/cuda_like_driver.h"
#include "gpu_backends/driver/driver_backend.h"
#include "gpu_backends/hip/hip_api.h"

namespace ferry::gpu {
namespace {

constexpr int kOldestMajor = 5;  // the first with the device attributes that hip_abi.h numbers
constexpr int kAnyDevice = -1;   // whichever is current

std::string VersionText(int version) {
  return "HIP " + std::to_string(version / kHipVersionMajor) + "." +
         std::to_string(version % kHipVersionMajor / kHipVersionMinor) + "." +
         std::to_string(version % kHipVersionMinor);
}

void OnStreamCallback(HipStream /*stream*/, HipError status, void* held) {
  if (status == kHipSuccess) {
    RunHostStep(held);
  } else {
    DropHostStep(held);
  }
}

// HIP's numbers of devices are Ferry's.
class HipDevices {
 public:
  HipDevices(const HipApi& api, int count) : api_(api), count_(count) {}
  const HipApi& api() const { return api_; }
  int device_count() const { return count_; }
  int native(int device) const { return device; }

 private:
  const HipApi& api_;
  const int count_;
};

// Makes `device` the thread's current one for as long as it lives, and hides the errors of the
// calls in between. Used by one thread.
class HipScope {
 public:
  HipScope(const HipDevices& devices, int device)
      : api_(devices.api()), keeps_error_(api_.peek_at_last_error() != kHipSuccess) {
    if (device == kAnyDevice) {
      return;
    }
    status_ = api_.Check("hipGetDevice", api_.get_device(&previous_));
    if (status_.ok() && previous_ != device) {
      status_ = api_.Check("hipSetDevice", api_.set_device(device));
      changed_ = status_.ok();
    }
  }
  ~HipScope() {
    if (changed_) {
      (void)api_.set_device(previous_);
    }
    if (!keeps_error_) {
      (void)api_.get_last_error();  // forgets it
    }
  }
  HipScope(const HipScope&) = delete;
  HipScope& operator=(const HipScope&) = delete;

  const Status& status() const { return status_; }

 private:
  const HipApi& api_;
  const bool keeps_error_;
  bool changed_ = false;
  int previous_ = 0;
  Status status_;
};

struct HipVendor {
  using Api = HipApi;
  using Error = HipError;
  using Address = void*;
  using IpcHandle = HipIpcMemHandle;
  using Devices = HipDevices;
  using DeviceList = int;  // how many there are
  using Scope = HipScope;

  static constexpr char kName[] = "hip";
  static constexpr char kPrefix[] = "hip";
  static constexpr char kStreamCreate[] = "StreamCreateWithFlags";
  static constexpr char kEventCreate[] = "EventCreateWithFlags";
  static constexpr char kLaunchKernel[] = "ModuleLaunchKernel";
  static constexpr auto kCreateStream = &HipApi::stream_create_with_flags;
  static constexpr auto kCreateEvent = &HipApi::event_create_with_flags;
  static constexpr auto kLaunch = &HipApi::module_launch_kernel;
  static constexpr unsigned kStreamNonBlocking = kHipStreamNonBlocking;
  static constexpr unsigned kEventDisableTiming = kHipEventDisableTiming;
  static constexpr int kHostNativeAtomics = kHipAttributeHostNativeAtomics;
  static constexpr int kManagedMemory = kHipAttributeManagedMemory;
};

class HipDriver final : public CudaLikeDriver<HipVendor> {
 public:
  HipDriver(const HipApi& api, int version, int device_count)
      // PTX for a HIP that runs on another vendor's driver. Others refuse it, as they refuse code
      // for other devices than their own: hipDeviceProp_t would tell which those are, but has
      // changed with every release.
      : CudaLikeDriver(
            api, device_count, VersionText(version), {ImageFormat::kAmdgcn, ImageFormat::kPtx},
            api.module_load_data != nullptr && api.module_unload != nullptr &&
                api.module_get_function != nullptr && api.module_launch_kernel != nullptr),
        is_rocm_5_(version / kHipVersionMajor == 5),
        words_(device_count) {}

  StatusOr<DeviceInfo> GetDeviceInfo(int device) override;

  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override {
    return Make(device, "Malloc", api_.malloc, size_bytes);
  }
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override {
    // Coherent, whatever HIP_HOST_COHERENT says: CPUs and running kernels exchange words here.
    return Make(kAnyDevice, "HostMalloc", api_.host_malloc, size_bytes,
                kHipHostMallocPortable | kHipHostMallocMapped | kHipHostMallocCoherent);
  }
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override {
    return Make(device, "MallocManaged", api_.malloc_managed, size_bytes, kHipMemAttachGlobal);
  }
  Status Free(PointerKind kind, void* pointer) override {
    return kind == PointerKind::kPinned ? Call(kAnyDevice, "HostFree", api_.host_free, pointer)
                                        : Call(kAnyDevice, "Free", api_.free, pointer);
  }
  PointerInfo Identify(const void* pointer) override;
  StatusOr<MemoryPiece> PieceAround(const void* pointer, const PointerInfo& info) override;
  StatusOr<void*> Import(int device, const IpcHandle& handle) override;
  Status CloseImport(void* base) override {
    return Call(kAnyDevice, "IpcCloseMemHandle", api_.ipc_close_mem_handle, base);
  }
  StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) override;
  Status Register(void* pointer, uint64_t size_bytes) override;
  // hipHostRegisterIoMemory is refused on AMD; plain registration locks such pages, too.
  Status RegisterIo(void* pointer, uint64_t size_bytes) override {
    return Register(pointer, size_bytes);
  }
  Status Unregister(void* pointer) override {
    return Call(kAnyDevice, "HostUnregister", api_.host_unregister, pointer);
  }

  Status CheckStream(int device, NativeStream stream) override;
  Status Copy(int device, NativeStream stream, void* destination, const void* source,
              uint64_t size_bytes) override {
    return Call(device, "MemcpyAsync", api_.memcpy_async, destination, source, size_bytes,
                kHipMemcpyDefault, stream);
  }
  bool has_stream_words(int device) const override;
  Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                  WaitCondition condition) override {
    return CallWith(device, word, "StreamWaitValue64", [&](void* address) {
      return api_.stream_wait_value64(
          stream, address, value,
          condition == WaitCondition::kEqual ? kHipStreamWaitValueEq : kHipStreamWaitValueGte,
          ~uint64_t{0});
    });
  }

 private:
  // Records if a device's streams can write and await words; found out by the first call that asks.
  struct Words {
    std::once_flag once;
    bool work = false;
  };

  bool TryWords(int device) const;
  PointerKind KindOf(const HipPointerAttributes& attributes) const;
  StatusOr<int> DeviceOf(const void* pointer) override;
  StatusOr<void*> DeviceAddress(const void* pointer) override;
  StatusOr<void*> LoadModule(int device, const DeviceImage& image) override;
  Status EnablePeerAccess(int device, int other) override {
    return Call(device, "DeviceEnablePeerAccess", api_.device_enable_peer_access, other,
                /*flags=*/0U);
  }
  Status EnqueueHeldStep(int device, NativeStream stream, void* held) override {
    return api_.launch_host_func != nullptr
               ? Call(device, "LaunchHostFunc", api_.launch_host_func, stream, &RunHostStep, held)
               : Call(device, "StreamAddCallback", api_.stream_add_callback, stream,
                      &OnStreamCallback, held, /*flags=*/0);
  }

  const bool is_rocm_5_;
  mutable std::vector<Words> words_;
  // Some host memory has another address for devices.
  std::atomic<bool> addresses_differ_{false};
};

StatusOr<DeviceInfo> HipDriver::GetDeviceInfo(int device) {
  HipScope scope(devices_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  StatusOr<DeviceInfo> info = Describe(device);
  FERRY_RETURN_IF_ERROR(info.status());
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  FERRY_RETURN_IF_ERROR(Check("MemGetInfo", api_.mem_get_info(&free_bytes, &total_bytes)));
  info->free_bytes = free_bytes;
  info->dmabuf =
      api_.hsa_export_dmabuf != nullptr || api_.mem_get_handle_for_address_range != nullptr;
  return info;
}

PointerKind HipDriver::KindOf(const HipPointerAttributes& attributes) const {
  const int type = attributes.memory_type;
  if (attributes.is_managed != 0 ||
      type == (is_rocm_5_ ? kHip5MemoryManaged : kHip6MemoryManaged)) {
    return PointerKind::kManaged;
  }
  if (type == (is_rocm_5_ ? kHip5MemoryDevice : kHip6MemoryDevice)) {
    return PointerKind::kDevice;
  }
  if (type == (is_rocm_5_ ? kHip5MemoryHost : kHip6MemoryHost)) {
    return PointerKind::kPinned;
  }
  return PointerKind::kUnknown;
}

PointerInfo HipDriver::Identify(const void* pointer) {
  HipScope scope(devices_, kAnyDevice);
  HipPointerAttributes attributes{};
  // Other memory is an error up to ROCm 5, and of no type since.
  const HipError known = api_.pointer_get_attributes(&attributes, pointer);
  if (known == kHipErrorInvalidValue || known == kHipErrorInvalidDevicePointer) {
    return {};
  }
  if (known != kHipSuccess) {
    return LookupFailed(Check("PointerGetAttributes", known));
  }
  PointerInfo info;
  info.kind = KindOf(attributes);
  if (info.kind == PointerKind::kUnknown) {
    return {};
  }
  const bool is_host = info.kind == PointerKind::kPinned;
  info.device = is_host ? -1 : attributes.device;
  info.direct = {info.kind != PointerKind::kDevice, is_host};
  void* seen_by_devices =
      attributes.device_pointer != nullptr ? attributes.device_pointer : const_cast<void*>(pointer);
  if (is_host && seen_by_devices != pointer) {
    addresses_differ_.store(true, std::memory_order_relaxed);
  }
  void* base = nullptr;
  size_t size_bytes = 0;
  // Without a known range the size is 0 bytes, so no operation assumes more than is there.
  info.base = const_cast<void*>(pointer);
  const Status ranged =
      Check("MemGetAddressRange", api_.mem_get_address_range(&base, &size_bytes, seen_by_devices));
  if (ranged.ok()) {
    info.base = static_cast<std::byte*>(const_cast<void*>(pointer)) -
                (static_cast<std::byte*>(seen_by_devices) - static_cast<std::byte*>(base));
    info.size_bytes = size_bytes;
  } else if (info.kind == PointerKind::kDevice) {
    return LookupFailed(ranged);
  }
  uint64_t id = 0;  // some releases write 32 bits of it
  if (api_.pointer_get_attribute != nullptr) {
    const Status named =
        Check("PointerGetAttribute",
              api_.pointer_get_attribute(&id, kHipPointerAttributeBufferId, seen_by_devices));
    if (named.code() == ErrorCode::kSystem) {  // else this release knows no ids
      return LookupFailed(named);
    }
    info.allocation_id = named.ok() ? id : 0;
  }
  return info;
}

// The range above is one mapping of hipMemMap's, although others may lie beside it. Only of
// mappings HIP says who has access to them.
StatusOr<MemoryPiece> HipDriver::PieceAround(const void* /*pointer*/, const PointerInfo& info) {
  if (api_.mem_get_access == nullptr) {
    return Status(ErrorCode::kUnsupported, "this release has no mappings");
  }
  HipScope scope(devices_, kAnyDevice);
  const HipMemLocation location{kHipMemLocationDevice, info.device};
  unsigned long long flags = 0;
  FERRY_RETURN_IF_ERROR(Check("MemGetAccess", api_.mem_get_access(&flags, &location, info.base)));
  const auto* const begin = static_cast<const std::byte*>(info.base);
  return MemoryPiece{begin, begin + info.size_bytes, true};
}

StatusOr<int> HipDriver::DeviceOf(const void* pointer) {
  HipPointerAttributes attributes{};
  FERRY_RETURN_IF_ERROR(
      Call(kAnyDevice, "PointerGetAttributes", api_.pointer_get_attributes, &attributes, pointer));
  return attributes.device;
}

StatusOr<void*> HipDriver::Import(int device, const IpcHandle& handle) {
  HipScope scope(devices_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipIpcMemHandle native{};
  std::memcpy(&native, handle.opaque.data(), sizeof(native));
  const unsigned flags = is_rocm_5_ ? kHip5IpcLazyPeerAccess : kHip6IpcLazyPeerAccess;
  void* pointer = nullptr;
  HipError error = api_.ipc_open_mem_handle(&pointer, native, flags);
  if (error == kHipErrorInvalidValue) {
    // The flag's value changed in the midst of ROCm 5, and each release refuses the other.
    error = api_.ipc_open_mem_handle(&pointer, native,
                                     kHip5IpcLazyPeerAccess + kHip6IpcLazyPeerAccess - flags);
  }
  FERRY_RETURN_IF_ERROR(Check("IpcOpenMemHandle", error));
  return pointer;
}

StatusOr<Dmabuf> HipDriver::ExportDmabuf(void* base, uint64_t size_bytes) {
  HipScope scope(devices_, kAnyDevice);
  int fd = -1;
  Dmabuf dmabuf;
  // First the library below: HIP's own call does not tell where the memory is in the dma-buf.
  if (api_.hsa_export_dmabuf != nullptr) {
    const int error = api_.hsa_export_dmabuf(base, size_bytes, &fd, &dmabuf.offset_bytes);
    if (error != 0) {
      return Status(ErrorCode::kUnsupported,
                    "hsa_amd_portable_export_dmabuf: HSA status " + std::to_string(error));
    }
  } else if (api_.mem_get_handle_for_address_range != nullptr) {
    FERRY_RETURN_IF_ERROR(Check(
        "MemGetHandleForAddressRange",
        api_.mem_get_handle_for_address_range(&fd, base, size_bytes, kHipMemRangeHandleTypeDmabuf,
                                              /*flags=*/0)));
  } else {
    return Status(ErrorCode::kUnsupported, version() + " exports no dma-bufs");
  }
  dmabuf.fd.Reset(fd);
  return dmabuf;
}

Status HipDriver::Register(void* pointer, uint64_t size_bytes) {
  HipScope scope(devices_, kAnyDevice);
  FERRY_RETURN_IF_ERROR(Check(
      "HostRegister",
      api_.host_register(pointer, size_bytes, kHipHostRegisterPortable | kHipHostRegisterMapped)));
  void* seen_by_devices = nullptr;
  Status mapped =
      Check("HostGetDevicePointer", api_.host_get_device_pointer(&seen_by_devices, pointer, 0));
  if (!mapped.ok()) {
    (void)api_.host_unregister(pointer);
    return mapped;
  }
  if (seen_by_devices != pointer) {
    addresses_differ_.store(true, std::memory_order_relaxed);
  }
  return {};
}

Status HipDriver::CheckStream(int device, NativeStream stream) {
  if (reinterpret_cast<uintptr_t>(stream) == kHipStreamPerThread) {
    return {ErrorCode::kInvalidArgument,
            "hipStreamPerThread is another stream for each thread that names it"};
  }
  HipScope scope(devices_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  unsigned flags = 0;
  if (const Status status = Check("StreamGetFlags", api_.stream_get_flags(stream, &flags));
      !status.ok()) {
    return {ErrorCode::kInvalidArgument, "not a stream of HIP: " + status.message()};
  }
  int own_device = device;
  if (api_.stream_get_device != nullptr) {
    FERRY_RETURN_IF_ERROR(Check("StreamGetDevice", api_.stream_get_device(stream, &own_device)));
  }
  if (own_device != device) {
    return {ErrorCode::kInvalidArgument, "the stream is of device " + std::to_string(own_device) +
                                             ", not of device " + std::to_string(device)};
  }
  return {};
}

bool HipDriver::has_stream_words(int device) const {
  Words& words = words_[device];
  std::call_once(words.once, [&] { words.work = TryWords(device); });
  return words.work;
}

// The attribute alone does not tell: releases differ in which memory they wait in. So it is tried,
// with a word that is there already.
bool HipDriver::TryWords(int device) const {
  HipScope scope(devices_, device);
  if (!scope.status().ok() || api_.stream_write_value64 == nullptr ||
      api_.stream_wait_value64 == nullptr ||
      !HasAttribute(kHipAttributeCanUseStreamWaitValue, device)) {
    return false;
  }
  void* word = nullptr;
  if (api_.host_malloc(&word, sizeof(uint64_t), kHipHostMallocMapped | kHipHostMallocCoherent) !=
      kHipSuccess) {
    return false;
  }
  std::memset(word, 0, sizeof(uint64_t));
  HipStream stream = nullptr;
  bool work = false;
  if (api_.stream_create_with_flags(&stream, kHipStreamNonBlocking) == kHipSuccess) {
    work = api_.stream_wait_value64(stream, word, 0, kHipStreamWaitValueEq, ~uint64_t{0}) ==
               kHipSuccess &&
           api_.stream_write_value64(stream, word, 1, /*flags=*/0) == kHipSuccess;
    (void)api_.stream_destroy(stream);
  }
  (void)api_.host_free(word);  // waits for what still uses it
  return work;
}

StatusOr<void*> HipDriver::DeviceAddress(const void* pointer) {
  auto* address = const_cast<void*>(pointer);
  if (addresses_differ_.load(std::memory_order_relaxed)) {
    HipPointerAttributes attributes{};
    FERRY_RETURN_IF_ERROR(
        Check("PointerGetAttributes", api_.pointer_get_attributes(&attributes, pointer)));
    address = attributes.device_pointer;
  }
  return address;
}

// ---- Kernels ----

StatusOr<void*> HipDriver::LoadModule(int device, const DeviceImage& image) {
  HipModule module = nullptr;
  Status status =
      Call(device, "ModuleLoadData", api_.module_load_data, &module, image.bytes.data());
  if (!status.ok()) {
    return Status(status.code(), status.message() + ", of code for " + image.architecture);
  }
  return module;
}

}  // namespace

StatusOr<std::unique_ptr<Driver>> OpenHipDriver(std::string_view library) {
  StatusOr<HipApi> api = OpenHipApi(library);
  FERRY_RETURN_IF_ERROR(api.status());
  HipScope scope(HipDevices(*api, 0), kAnyDevice);
  int version = 0;
  FERRY_RETURN_IF_ERROR(api->Check("hipRuntimeGetVersion", api->runtime_get_version(&version)));
  if (version / kHipVersionMajor < kOldestMajor) {
    return Status(ErrorCode::kUnsupported, VersionText(version) + " is too old: Ferry needs ROCm " +
                                               std::to_string(kOldestMajor) + " or later");
  }
  int device_count = 0;
  const HipError error = api->get_device_count(&device_count);
  if (error == kHipErrorNoDevice || (error == kHipSuccess && device_count == 0)) {
    return Status(ErrorCode::kNotFound, VersionText(version) + " finds no device");
  }
  if (error == kHipErrorInsufficientDriver) {
    return Status(ErrorCode::kNotFound,
                  VersionText(version) + " finds no driver in the kernel that it can use");
  }
  FERRY_RETURN_IF_ERROR(api->Check("hipGetDeviceCount", error));
  return std::unique_ptr<Driver>(std::make_unique<HipDriver>(*api, version, device_count));
}

StatusOr<std::unique_ptr<GpuBackend>> CreateHipBackend(const HipBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenHipDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
