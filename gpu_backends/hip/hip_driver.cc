#include "gpu_backends/hip/hip_driver.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu_backends/driver/host_steps.h"
#include "gpu_backends/driver/kernel_modules.h"
#include "gpu_backends/driver/kernel_values.h"
#include "gpu_backends/driver/own_streams.h"
#include "gpu_backends/driver/pci.h"
#include "gpu_backends/hip/hip_api.h"
#include "gpu_backends/hip/hip_scope.h"

namespace ferry::gpu {
namespace {

constexpr int kOldestMajor = 5;  // the first with the device attributes that hip_abi.h numbers

static_assert(sizeof(HipIpcMemHandle) == sizeof(IpcHandle::opaque));

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

class HipDriver final : public Driver {
 public:
  HipDriver(const HipApi& api, int version, int device_count)
      : api_(api),
        version_(version),
        device_count_(device_count),
        words_(device_count),
        // PTX for a HIP that runs on another vendor's driver. Others refuse it, as they refuse code
        // for other devices than their own: hipDeviceProp_t would tell which those are, but has
        // changed with every release.
        kernels_(device_count, {ImageFormat::kAmdgcn, ImageFormat::kPtx}, KernelsAvailable(),
                 {.load = [this](int device,
                                 const DeviceImage& image) { return LoadModule(device, image); },
                  .find = [this](int device, void* module,
                                 const char* kernel) { return FindKernel(device, module, kernel); },
                  .unload =
                      [this](int device, void* module) {
                        HipScope scope(api_, device);
                        (void)api_.module_unload(module);
                      }}) {}
  ~HipDriver() override { kernels_.Unload(); }

  std::string_view name() const override { return "hip"; }
  std::string version() const override { return VersionText(version_); }
  int device_count() const override { return device_count_; }
  StatusOr<DeviceInfo> GetDeviceInfo(int device) override;

  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override;
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override;
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override;
  Status Free(PointerKind kind, void* pointer) override;
  PointerInfo Identify(const void* pointer) override;
  Status Export(void* base, IpcHandle* handle) override;
  StatusOr<void*> Import(int device, const IpcHandle& handle) override;
  Status CloseImport(void* base) override;
  StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) override;
  Status Register(void* pointer, uint64_t size_bytes) override;
  Status Unregister(void* pointer) override;

  StatusOr<NativeStream> CreateStream(int device) override;
  Status CheckStream(int device, NativeStream stream) override;
  void DestroyStream(int device, NativeStream stream) override;
  Status QueryStream(int device, NativeStream stream) override;
  Status Copy(int device, NativeStream stream, void* destination, const void* source,
              uint64_t size_bytes) override;
  StatusOr<NativeEvent> CreateEvent(int device) override;
  void DestroyEvent(int device, NativeEvent event) override;
  Status RecordEvent(int device, NativeStream stream, NativeEvent event) override;
  Status QueryEvent(int device, NativeEvent event) override;
  Status WaitEvent(int device, NativeStream stream, NativeEvent event) override;
  bool has_stream_words(int device) const override;
  Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) override;
  Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                  WaitCondition condition) override;
  Status LoadKernels(int device) override { return kernels_.Load(device); }
  KernelPowers kernel_powers(int device) const override {
    return {true, HasAttribute(kHipAttributeHostNativeAtomics, device), true};
  }
  Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                std::span<const KernelArgument> arguments) override;
  Status EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) override;
  bool host_steps_hold() const override { return false; }

 private:
  Status KernelsAvailable() const;
  StatusOr<void*> LoadModule(int device, const DeviceImage& image);
  StatusOr<void*> FindKernel(int device, void* module, const char* kernel);
  // Whether a device's streams write and wait for words; found out when it is first asked.
  struct Words {
    std::once_flag once;
    bool work = false;
  };

  bool is_rocm_5() const { return version_ / kHipVersionMajor == 5; }
  bool HasAttribute(int attribute, int device) const;
  bool TryWords(int device) const;
  PointerKind KindOf(const HipPointerAttributes& attributes) const;
  // The address at which devices see memory that HIP knows.
  StatusOr<void*> DeviceAddress(const void* pointer) const;

  const HipApi api_;
  const int version_;
  const int device_count_;
  OwnStreams own_streams_;
  mutable std::vector<Words> words_;
  KernelModules kernels_;
  // Some host memory has another address for devices.
  std::atomic<bool> addresses_differ_{false};
};

bool HipDriver::HasAttribute(int attribute, int device) const {
  int value = 0;
  return api_.device_get_attribute(&value, attribute, device) == kHipSuccess && value != 0;
}

StatusOr<DeviceInfo> HipDriver::GetDeviceInfo(int device) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  char name[256] = {};
  FERRY_RETURN_IF_ERROR(
      api_.Check("hipDeviceGetName", api_.device_get_name(name, sizeof(name) - 1, device)));
  DeviceInfo info;
  info.name = name;
  size_t total_bytes = 0;
  FERRY_RETURN_IF_ERROR(
      api_.Check("hipDeviceTotalMem", api_.device_total_mem(&total_bytes, device)));
  info.total_bytes = total_bytes;
  size_t free_bytes = 0;
  FERRY_RETURN_IF_ERROR(api_.Check("hipMemGetInfo", api_.mem_get_info(&free_bytes, &total_bytes)));
  info.free_bytes = free_bytes;
  char address[64] = {};
  if (api_.device_get_pci_bus_id(address, sizeof(address) - 1, device) == kHipSuccess) {
    info.pci_address = KernelPciAddress(address);
    info.numa_node = PciNumaNode(info.pci_address);
  }
  const Status kernels = kernels_.Known(device);
  info.kernels = kernels.ok();
  info.no_kernels_because = kernels.message();
  info.stream_words = has_stream_words(device) ? StreamWords::kNative
                      : info.kernels           ? StreamWords::kKernel
                                               : StreamWords::kHelper;
  info.ipc = true;
  info.dmabuf =
      api_.hsa_export_dmabuf != nullptr || api_.mem_get_handle_for_address_range != nullptr;
  info.managed = HasAttribute(kHipAttributeManagedMemory, device);
  return info;
}

StatusOr<void*> HipDriver::AllocateDevice(int device, uint64_t size_bytes) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(api_.Check("hipMalloc", api_.malloc(&pointer, size_bytes)));
  return pointer;
}

StatusOr<void*> HipDriver::AllocatePinned(uint64_t size_bytes) {
  HipScope scope(api_, kAnyDevice);
  // Coherent, whatever HIP_HOST_COHERENT says: CPUs and running kernels exchange words here.
  constexpr unsigned kFlags =
      kHipHostMallocPortable | kHipHostMallocMapped | kHipHostMallocCoherent;
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(
      api_.Check("hipHostMalloc", api_.host_malloc(&pointer, size_bytes, kFlags)));
  return pointer;
}

StatusOr<void*> HipDriver::AllocateManaged(int device, uint64_t size_bytes) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(api_.Check("hipMallocManaged",
                                   api_.malloc_managed(&pointer, size_bytes, kHipMemAttachGlobal)));
  return pointer;
}

Status HipDriver::Free(PointerKind kind, void* pointer) {
  HipScope scope(api_, kAnyDevice);
  return kind == PointerKind::kPinned ? api_.Check("hipHostFree", api_.host_free(pointer))
                                      : api_.Check("hipFree", api_.free(pointer));
}

PointerKind HipDriver::KindOf(const HipPointerAttributes& attributes) const {
  const int type = attributes.memory_type;
  if (attributes.is_managed != 0 ||
      type == (is_rocm_5() ? kHip5MemoryManaged : kHip6MemoryManaged)) {
    return PointerKind::kManaged;
  }
  if (type == (is_rocm_5() ? kHip5MemoryDevice : kHip6MemoryDevice)) {
    return PointerKind::kDevice;
  }
  if (type == (is_rocm_5() ? kHip5MemoryHost : kHip6MemoryHost)) {
    return PointerKind::kPinned;
  }
  return PointerKind::kUnknown;
}

PointerInfo HipDriver::Identify(const void* pointer) {
  HipScope scope(api_, kAnyDevice);
  HipPointerAttributes attributes{};
  // Other memory is an error up to ROCm 5, and of no type since.
  if (api_.pointer_get_attributes(&attributes, pointer) != kHipSuccess) {
    return {};
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
  if (api_.mem_get_address_range(&base, &size_bytes, seen_by_devices) == kHipSuccess) {
    info.base = static_cast<std::byte*>(const_cast<void*>(pointer)) -
                (static_cast<std::byte*>(seen_by_devices) - static_cast<std::byte*>(base));
    info.size_bytes = size_bytes;
  }
  uint64_t id = 0;  // some releases write 32 bits of it
  if (api_.pointer_get_attribute != nullptr &&
      api_.pointer_get_attribute(&id, kHipPointerAttributeBufferId, seen_by_devices) ==
          kHipSuccess) {
    info.allocation_id = id;
  }
  return info;
}

Status HipDriver::Export(void* base, IpcHandle* handle) {
  HipPointerAttributes attributes{};
  {
    HipScope scope(api_, kAnyDevice);
    FERRY_RETURN_IF_ERROR(
        api_.Check("hipPointerGetAttributes", api_.pointer_get_attributes(&attributes, base)));
  }
  HipScope scope(api_, attributes.device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipIpcMemHandle native{};
  FERRY_RETURN_IF_ERROR(api_.Check("hipIpcGetMemHandle", api_.ipc_get_mem_handle(&native, base)));
  std::memcpy(handle->opaque.data(), &native, sizeof(native));
  return {};
}

StatusOr<void*> HipDriver::Import(int device, const IpcHandle& handle) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipIpcMemHandle native{};
  std::memcpy(&native, handle.opaque.data(), sizeof(native));
  const unsigned flags = is_rocm_5() ? kHip5IpcLazyPeerAccess : kHip6IpcLazyPeerAccess;
  void* pointer = nullptr;
  HipError error = api_.ipc_open_mem_handle(&pointer, native, flags);
  if (error == kHipErrorInvalidValue) {
    // The flag's value changed in the midst of ROCm 5, and each release refuses the other.
    error = api_.ipc_open_mem_handle(&pointer, native,
                                     kHip5IpcLazyPeerAccess + kHip6IpcLazyPeerAccess - flags);
  }
  FERRY_RETURN_IF_ERROR(api_.Check("hipIpcOpenMemHandle", error));
  return pointer;
}

Status HipDriver::CloseImport(void* base) {
  HipScope scope(api_, kAnyDevice);
  return api_.Check("hipIpcCloseMemHandle", api_.ipc_close_mem_handle(base));
}

StatusOr<Dmabuf> HipDriver::ExportDmabuf(void* base, uint64_t size_bytes) {
  HipScope scope(api_, kAnyDevice);
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
    FERRY_RETURN_IF_ERROR(api_.Check(
        "hipMemGetHandleForAddressRange",
        api_.mem_get_handle_for_address_range(&fd, base, size_bytes, kHipMemRangeHandleTypeDmabuf,
                                              /*flags=*/0)));
  } else {
    return Status(ErrorCode::kUnsupported, version() + " exports no dma-bufs");
  }
  dmabuf.fd.Reset(fd);
  return dmabuf;
}

Status HipDriver::Register(void* pointer, uint64_t size_bytes) {
  HipScope scope(api_, kAnyDevice);
  FERRY_RETURN_IF_ERROR(api_.Check(
      "hipHostRegister",
      api_.host_register(pointer, size_bytes, kHipHostRegisterPortable | kHipHostRegisterMapped)));
  void* seen_by_devices = nullptr;
  Status mapped = api_.Check("hipHostGetDevicePointer",
                             api_.host_get_device_pointer(&seen_by_devices, pointer, 0));
  if (!mapped.ok()) {
    (void)api_.host_unregister(pointer);
    return mapped;
  }
  if (seen_by_devices != pointer) {
    addresses_differ_.store(true, std::memory_order_relaxed);
  }
  return {};
}

Status HipDriver::Unregister(void* pointer) {
  HipScope scope(api_, kAnyDevice);
  return api_.Check("hipHostUnregister", api_.host_unregister(pointer));
}

StatusOr<NativeStream> HipDriver::CreateStream(int device) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipStream stream = nullptr;
  FERRY_RETURN_IF_ERROR(api_.Check("hipStreamCreateWithFlags",
                                   api_.stream_create_with_flags(&stream, kHipStreamNonBlocking)));
  own_streams_.Add(stream);
  return stream;
}

Status HipDriver::CheckStream(int device, NativeStream stream) {
  if (reinterpret_cast<uintptr_t>(stream) == kHipStreamPerThread) {
    return {ErrorCode::kInvalidArgument,
            "hipStreamPerThread is another stream for each thread that names it"};
  }
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  unsigned flags = 0;
  if (const Status status = api_.Check("hipStreamGetFlags", api_.stream_get_flags(stream, &flags));
      !status.ok()) {
    return {ErrorCode::kInvalidArgument, "not a stream of HIP: " + status.message()};
  }
  int own_device = device;
  if (api_.stream_get_device != nullptr) {
    FERRY_RETURN_IF_ERROR(
        api_.Check("hipStreamGetDevice", api_.stream_get_device(stream, &own_device)));
  }
  if (own_device != device) {
    return {ErrorCode::kInvalidArgument, "the stream is of device " + std::to_string(own_device) +
                                             ", not of device " + std::to_string(device)};
  }
  return {};
}

void HipDriver::DestroyStream(int device, NativeStream stream) {
  if (!own_streams_.Remove(stream)) {
    return;  // the application's
  }
  HipScope scope(api_, device);
  (void)api_.stream_destroy(stream);
}

Status HipDriver::QueryStream(int device, NativeStream stream) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("hipStreamQuery", api_.stream_query(stream));
}

Status HipDriver::Copy(int device, NativeStream stream, void* destination, const void* source,
                       uint64_t size_bytes) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("hipMemcpyAsync",
                    api_.memcpy_async(destination, source, size_bytes, kHipMemcpyDefault, stream));
}

StatusOr<NativeEvent> HipDriver::CreateEvent(int device) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipEvent event = nullptr;
  FERRY_RETURN_IF_ERROR(api_.Check("hipEventCreateWithFlags",
                                   api_.event_create_with_flags(&event, kHipEventDisableTiming)));
  return event;
}

void HipDriver::DestroyEvent(int device, NativeEvent event) {
  HipScope scope(api_, device);
  (void)api_.event_destroy(event);
}

Status HipDriver::RecordEvent(int device, NativeStream stream, NativeEvent event) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("hipEventRecord", api_.event_record(event, stream));
}

Status HipDriver::QueryEvent(int device, NativeEvent event) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("hipEventQuery", api_.event_query(event));
}

Status HipDriver::WaitEvent(int device, NativeStream stream, NativeEvent event) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("hipStreamWaitEvent", api_.stream_wait_event(stream, event, /*flags=*/0));
}

bool HipDriver::has_stream_words(int device) const {
  Words& words = words_[device];
  std::call_once(words.once, [&] { words.work = TryWords(device); });
  return words.work;
}

// The attribute alone does not tell: releases differ in which memory they wait in. So it is tried,
// with a word that is there already.
bool HipDriver::TryWords(int device) const {
  HipScope scope(api_, device);
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

StatusOr<void*> HipDriver::DeviceAddress(const void* pointer) const {
  auto* address = const_cast<void*>(pointer);
  if (addresses_differ_.load(std::memory_order_relaxed)) {
    HipPointerAttributes attributes{};
    FERRY_RETURN_IF_ERROR(
        api_.Check("hipPointerGetAttributes", api_.pointer_get_attributes(&attributes, pointer)));
    address = attributes.device_pointer;
  }
  return address;
}

Status HipDriver::WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  StatusOr<void*> address = DeviceAddress(word);
  FERRY_RETURN_IF_ERROR(address.status());
  return api_.Check("hipStreamWriteValue64",
                    api_.stream_write_value64(stream, *address, value, /*flags=*/0));
}

Status HipDriver::WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                           WaitCondition condition) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  StatusOr<void*> address = DeviceAddress(word);
  FERRY_RETURN_IF_ERROR(address.status());
  const unsigned flags =
      condition == WaitCondition::kEqual ? kHipStreamWaitValueEq : kHipStreamWaitValueGte;
  return api_.Check("hipStreamWaitValue64",
                    api_.stream_wait_value64(stream, *address, value, flags, ~uint64_t{0}));
}

// ---- Kernels ----

Status HipDriver::KernelsAvailable() const {
  const bool has_all = api_.module_load_data != nullptr && api_.module_unload != nullptr &&
                       api_.module_get_function != nullptr && api_.module_launch_kernel != nullptr;
  return has_all ? Status() : Status(ErrorCode::kUnsupported, version() + " loads no modules");
}

StatusOr<void*> HipDriver::LoadModule(int device, const DeviceImage& image) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipModule module = nullptr;
  Status status =
      api_.Check("hipModuleLoadData", api_.module_load_data(&module, image.bytes.data()));
  if (!status.ok()) {
    return Status(status.code(), status.message() + ", of code for " + image.architecture);
  }
  return module;
}

StatusOr<void*> HipDriver::FindKernel(int device, void* module, const char* kernel) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  HipFunction function = nullptr;
  FERRY_RETURN_IF_ERROR(
      api_.Check("hipModuleGetFunction", api_.module_get_function(&function, module, kernel)));
  return function;
}

Status HipDriver::Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                         std::span<const KernelArgument> arguments) {
  const StatusOr<void*> function = kernels_.Find(device, kernel);
  FERRY_RETURN_IF_ERROR(function.status());
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  KernelValues values;
  FERRY_RETURN_IF_ERROR(
      values.Set(arguments, [this](const void* pointer) { return DeviceAddress(pointer); }));
  const KernelModules::Shape shape = KernelModules::ShapeOf(threads);
  return api_.Check(
      "hipModuleLaunchKernel",
      api_.module_launch_kernel(*function, shape.groups, 1, 1, shape.group_threads, 1, 1,
                                /*shared_bytes=*/0, stream, values.pointers(), nullptr));
}

Status HipDriver::EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) {
  HipScope scope(api_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  void* held = HoldHostStep(step, argument);
  Status status =
      api_.launch_host_func != nullptr
          ? api_.Check("hipLaunchHostFunc", api_.launch_host_func(stream, &RunHostStep, held))
          : api_.Check("hipStreamAddCallback",
                       api_.stream_add_callback(stream, &OnStreamCallback, held, /*flags=*/0));
  if (!status.ok()) {
    DropHostStep(held);
  }
  return status;
}

}  // namespace

StatusOr<std::unique_ptr<Driver>> OpenHipDriver(std::string_view library) {
  StatusOr<HipApi> api = OpenHipApi(library);
  FERRY_RETURN_IF_ERROR(api.status());
  HipScope scope(*api, kAnyDevice);
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

}  // namespace ferry::gpu
