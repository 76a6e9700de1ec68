#include "gpu_backends/cuda/cuda_driver.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu_backends/cuda/cuda_api.h"
#include "gpu_backends/cuda/primary_contexts.h"
#include "gpu_backends/driver/host_steps.h"
#include "gpu_backends/driver/kernel_modules.h"
#include "gpu_backends/driver/kernel_values.h"
#include "gpu_backends/driver/own_streams.h"
#include "gpu_backends/driver/pci.h"

namespace ferry::gpu {
namespace {

constexpr int kOldestMajor = 11;

static_assert(sizeof(CudaIpcMemHandle) == sizeof(IpcHandle::opaque));
static_assert(sizeof(CudaDevicePtr) == sizeof(void*));

CudaDevicePtr ToDevicePtr(const void* pointer) { return reinterpret_cast<CudaDevicePtr>(pointer); }
void* ToPointer(CudaDevicePtr pointer) { return reinterpret_cast<void*>(pointer); }

std::string VersionText(int version) {
  return "CUDA " + std::to_string(version / kCudaVersionMajor) + "." +
         std::to_string(version % kCudaVersionMajor / kCudaVersionMinor);
}

// What the driver says about a pointer. All zero, with type 0: nothing.
struct PointerAttributes {
  unsigned memory_type = 0;
  unsigned is_managed = 0;
  int ordinal = -1;
  CudaDevicePtr device_pointer = 0;
  unsigned long long buffer_id = 0;
  CudaDevicePtr range_start = 0;
  size_t range_size = 0;
};

class CudaDriver final : public Driver {
 public:
  CudaDriver(const CudaApi& api, int version, std::vector<CudaDevice> devices)
      : api_(api),
        version_(version),
        contexts_(api_, std::move(devices)),
        kernels_(contexts_.device_count(), {ImageFormat::kPtx}, KernelsAvailable(),
                 {.load = [this](int device,
                                 const DeviceImage& image) { return LoadModule(device, image); },
                  .find = [this](int device, void* module,
                                 const char* kernel) { return FindKernel(device, module, kernel); },
                  .unload =
                      [this](int device, void* module) {
                        CudaScope scope(contexts_, device);
                        (void)api_.module_unload(module);
                      }}) {
    for (int device = 0; device < contexts_.device_count(); ++device) {
      same_addresses_ &= HasAttribute(kCudaAttributeHostPointerForRegistered, device);
      stream_words_.push_back(api_.stream_write_value64 != nullptr &&
                              api_.stream_wait_value64 != nullptr &&
                              HasAttribute(kCudaAttributeStreamMemOps64, device));
    }
  }
  ~CudaDriver() override { kernels_.Unload(); }

  std::string_view name() const override { return "cuda"; }
  std::string version() const override { return VersionText(version_); }
  int device_count() const override { return contexts_.device_count(); }
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
  bool has_stream_words(int device) const override { return stream_words_[device]; }
  Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) override;
  Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                  WaitCondition condition) override;
  Status LoadKernels(int device) override { return kernels_.Load(device); }
  KernelPowers kernel_powers(int device) const override {
    return {true, HasAttribute(kCudaAttributeHostNativeAtomics, device), true};
  }
  Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                std::span<const KernelArgument> arguments) override;
  Status EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) override;
  bool host_steps_hold() const override { return false; }

 private:
  Status KernelsAvailable() const;
  StatusOr<void*> LoadModule(int device, const DeviceImage& image);
  StatusOr<void*> FindKernel(int device, void* module, const char* kernel);
  bool HasAttribute(int attribute, int device) const;
  StatusOr<PointerAttributes> Ask(const void* pointer);
  // The device of device or managed memory that CUDA knows.
  StatusOr<int> DeviceOf(const void* pointer);
  // The address at which devices see memory that CUDA knows.
  StatusOr<CudaDevicePtr> DeviceAddress(const void* pointer);

  const CudaApi api_;
  const int version_;
  PrimaryContexts contexts_;
  KernelModules kernels_;
  std::vector<bool> stream_words_;
  bool same_addresses_ = true;  // devices reach registered memory at its own address

  OwnStreams own_streams_;

  std::mutex imports_mutex_;
  // The device in whose context memory was opened and is closed; the memory may be another
  // device's.
  std::map<void*, int> importing_devices_;
};

bool CudaDriver::HasAttribute(int attribute, int device) const {
  int value = 0;
  return api_.device_get_attribute(&value, attribute, contexts_.native(device)) == kCudaSuccess &&
         value != 0;
}

StatusOr<PointerAttributes> CudaDriver::Ask(const void* pointer) {
  PointerAttributes answer;
  // CUDA tells the devices' address of the memory only in a context, so it is asked last and
  // seldom.
  std::array<int, 7> attributes = {kCudaPointerMemoryType,    kCudaPointerIsManaged,
                                   kCudaPointerDeviceOrdinal, kCudaPointerBufferId,
                                   kCudaPointerRangeStart,    kCudaPointerRangeSize,
                                   kCudaPointerDevicePointer};
  std::array<void*, 7> data = {&answer.memory_type,   &answer.is_managed,  &answer.ordinal,
                               &answer.buffer_id,     &answer.range_start, &answer.range_size,
                               &answer.device_pointer};
  const auto ask = [&](size_t count) {
    return api_.Check("cuPointerGetAttributes",
                      api_.pointer_get_attributes(static_cast<unsigned>(count), attributes.data(),
                                                  data.data(), ToDevicePtr(pointer)));
  };
  if (same_addresses_) {
    FERRY_RETURN_IF_ERROR(ask(attributes.size() - 1));
    answer.device_pointer = ToDevicePtr(pointer);
    return answer;
  }
  const int device = contexts_.ActiveDevice();
  if (device < 0) {
    return answer;  // without a context there is no memory
  }
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  FERRY_RETURN_IF_ERROR(ask(attributes.size()));
  return answer;
}

StatusOr<int> CudaDriver::DeviceOf(const void* pointer) {
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  FERRY_RETURN_IF_ERROR(attributes.status());
  const int device = contexts_.DeviceOf(attributes->ordinal);
  if (attributes->memory_type == 0 || device < 0) {
    return Status(ErrorCode::kInvalidArgument, "CUDA knows nothing of this memory");
  }
  return device;
}

StatusOr<DeviceInfo> CudaDriver::GetDeviceInfo(int device) {
  const CudaDevice native = contexts_.native(device);
  char name[256] = {};
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuDeviceGetName", api_.device_get_name(name, sizeof(name) - 1, native)));
  DeviceInfo info;
  info.name = name;
  size_t total_bytes = 0;
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuDeviceTotalMem", api_.device_total_mem(&total_bytes, native)));
  info.total_bytes = total_bytes;
  // Known only with a context, which is too expensive to make just for this.
  if (contexts_.IsActive(device)) {
    CudaScope scope(contexts_, device);
    size_t free_bytes = 0;
    if (scope.status().ok() && api_.mem_get_info(&free_bytes, &total_bytes) == kCudaSuccess) {
      info.free_bytes = free_bytes;
    }
  }
  char address[64] = {};
  if (api_.device_get_pci_bus_id(address, sizeof(address) - 1, native) == kCudaSuccess) {
    info.pci_address = KernelPciAddress(address);
    info.numa_node = PciNumaNode(info.pci_address);
  }
  const Status kernels = kernels_.Known(device);
  info.kernels = kernels.ok();
  info.no_kernels_because = kernels.message();
  info.stream_words = stream_words_[device] ? StreamWords::kNative
                      : info.kernels        ? StreamWords::kKernel
                                            : StreamWords::kHelper;
  info.ipc = true;
  info.dmabuf = api_.mem_get_handle_for_address_range != nullptr &&
                HasAttribute(kCudaAttributeDmabufSupported, device);
  info.managed = HasAttribute(kCudaAttributeManagedMemory, device);
  return info;
}

// ---- Memory ----

StatusOr<void*> CudaDriver::AllocateDevice(int device, uint64_t size_bytes) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaDevicePtr pointer = 0;
  FERRY_RETURN_IF_ERROR(api_.Check("cuMemAlloc", api_.mem_alloc(&pointer, size_bytes)));
  return ToPointer(pointer);
}

StatusOr<void*> CudaDriver::AllocatePinned(uint64_t size_bytes) {
  CudaScope scope(contexts_, contexts_.HostDevice());
  FERRY_RETURN_IF_ERROR(scope.status());
  void* pointer = nullptr;
  FERRY_RETURN_IF_ERROR(api_.Check(
      "cuMemHostAlloc",
      api_.mem_host_alloc(&pointer, size_bytes, kCudaHostAllocPortable | kCudaHostAllocDeviceMap)));
  return pointer;
}

StatusOr<void*> CudaDriver::AllocateManaged(int device, uint64_t size_bytes) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaDevicePtr pointer = 0;
  FERRY_RETURN_IF_ERROR(api_.Check(
      "cuMemAllocManaged", api_.mem_alloc_managed(&pointer, size_bytes, kCudaMemAttachGlobal)));
  return ToPointer(pointer);
}

Status CudaDriver::Free(PointerKind kind, void* pointer) {
  if (kind == PointerKind::kPinned) {
    CudaScope scope(contexts_, contexts_.HostDevice());
    FERRY_RETURN_IF_ERROR(scope.status());
    return api_.Check("cuMemFreeHost", api_.mem_free_host(pointer));
  }
  const StatusOr<int> device = DeviceOf(pointer);
  FERRY_RETURN_IF_ERROR(device.status());
  CudaScope scope(contexts_, *device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuMemFree", api_.mem_free(ToDevicePtr(pointer)));
}

PointerInfo CudaDriver::Identify(const void* pointer) {
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  if (!attributes.ok() || attributes->memory_type == 0) {
    return {};
  }
  PointerInfo info;
  if (attributes->is_managed != 0) {
    info.kind = PointerKind::kManaged;
  } else if (attributes->memory_type == kCudaMemoryDevice) {
    info.kind = PointerKind::kDevice;
  } else if (attributes->memory_type == kCudaMemoryHost) {
    info.kind = PointerKind::kPinned;
  } else {
    return {};  // an array, which has no address
  }
  const bool is_host = info.kind == PointerKind::kPinned;
  info.device = is_host ? -1 : contexts_.DeviceOf(attributes->ordinal);
  info.direct = {info.kind != PointerKind::kDevice, is_host};
  // The range is where devices see it.
  const CudaDevicePtr seen_by_devices =
      attributes->device_pointer != 0 ? attributes->device_pointer : ToDevicePtr(pointer);
  info.base = ToPointer(ToDevicePtr(pointer) - (seen_by_devices - attributes->range_start));
  info.size_bytes = attributes->range_size;
  info.allocation_id = attributes->buffer_id;
  return info;
}

Status CudaDriver::Export(void* base, IpcHandle* handle) {
  const StatusOr<int> device = DeviceOf(base);
  FERRY_RETURN_IF_ERROR(device.status());
  CudaScope scope(contexts_, *device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaIpcMemHandle native{};
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuIpcGetMemHandle", api_.ipc_get_mem_handle(&native, ToDevicePtr(base))));
  std::memcpy(handle->opaque.data(), &native, sizeof(native));
  return {};
}

StatusOr<void*> CudaDriver::Import(int device, const IpcHandle& handle) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaIpcMemHandle native{};
  std::memcpy(&native, handle.opaque.data(), sizeof(native));
  CudaDevicePtr pointer = 0;
  FERRY_RETURN_IF_ERROR(api_.Check(
      "cuIpcOpenMemHandle", api_.ipc_open_mem_handle(&pointer, native, kCudaIpcLazyPeerAccess)));
  std::lock_guard lock(imports_mutex_);
  importing_devices_[ToPointer(pointer)] = device;
  return ToPointer(pointer);
}

Status CudaDriver::CloseImport(void* base) {
  int device = 0;
  {
    std::lock_guard lock(imports_mutex_);
    auto known = importing_devices_.extract(base);
    if (known.empty()) {
      return {ErrorCode::kInvalidArgument, "this memory was not imported by CUDA"};
    }
    device = known.mapped();
  }
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuIpcCloseMemHandle", api_.ipc_close_mem_handle(ToDevicePtr(base)));
}

StatusOr<Dmabuf> CudaDriver::ExportDmabuf(void* base, uint64_t size_bytes) {
  if (api_.mem_get_handle_for_address_range == nullptr) {
    return Status(ErrorCode::kUnsupported, version() + " exports no dma-bufs");
  }
  const StatusOr<int> device = DeviceOf(base);
  FERRY_RETURN_IF_ERROR(device.status());
  CudaScope scope(contexts_, *device);
  FERRY_RETURN_IF_ERROR(scope.status());
  // Whole pages of the host's are asked for; the driver's own blocks are larger.
  const auto page_bytes = static_cast<CudaDevicePtr>(sysconf(_SC_PAGESIZE));
  const CudaDevicePtr begin = ToDevicePtr(base) & ~(page_bytes - 1);
  const CudaDevicePtr end = (ToDevicePtr(base) + size_bytes + page_bytes - 1) & ~(page_bytes - 1);
  int fd = -1;
  FERRY_RETURN_IF_ERROR(api_.Check(
      "cuMemGetHandleForAddressRange",
      api_.mem_get_handle_for_address_range(&fd, begin, end - begin, kCudaMemRangeHandleTypeDmabuf,
                                            /*flags=*/0)));
  Dmabuf dmabuf;
  dmabuf.fd.Reset(fd);
  dmabuf.offset_bytes = ToDevicePtr(base) - begin;
  return dmabuf;
}

Status CudaDriver::Register(void* pointer, uint64_t size_bytes) {
  CudaScope scope(contexts_, contexts_.HostDevice());
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuMemHostRegister",
                    api_.mem_host_register(pointer, size_bytes,
                                           kCudaHostRegisterPortable | kCudaHostRegisterDeviceMap));
}

Status CudaDriver::Unregister(void* pointer) {
  CudaScope scope(contexts_, contexts_.HostDevice());
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuMemHostUnregister", api_.mem_host_unregister(pointer));
}

// ---- Streams ----

StatusOr<NativeStream> CudaDriver::CreateStream(int device) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaStream stream = nullptr;
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuStreamCreate", api_.stream_create(&stream, kCudaStreamNonBlocking)));
  own_streams_.Add(stream);
  return stream;
}

Status CudaDriver::CheckStream(int device, NativeStream stream) {
  if (reinterpret_cast<uintptr_t>(stream) == kCudaStreamPerThread) {
    return {ErrorCode::kInvalidArgument,
            "CU_STREAM_PER_THREAD is another stream for each thread that names it"};
  }
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaContext own = nullptr;
  if (const Status status = api_.Check("cuStreamGetCtx", api_.stream_get_ctx(stream, &own));
      !status.ok()) {
    return {ErrorCode::kInvalidArgument, "not a stream of CUDA: " + status.message()};
  }
  const StatusOr<CudaContext> expected = contexts_.Get(device);
  FERRY_RETURN_IF_ERROR(expected.status());
  if (own != *expected) {
    return {ErrorCode::kInvalidArgument,
            "the stream is of another context than the primary one "
            "of device " +
                std::to_string(device)};
  }
  return {};
}

void CudaDriver::DestroyStream(int device, NativeStream stream) {
  if (!own_streams_.Remove(stream)) {
    return;  // the application's
  }
  CudaScope scope(contexts_, device);
  (void)api_.stream_destroy(stream);
}

Status CudaDriver::QueryStream(int device, NativeStream stream) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuStreamQuery", api_.stream_query(stream));
}

Status CudaDriver::Copy(int device, NativeStream stream, void* destination, const void* source,
                        uint64_t size_bytes) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuMemcpyAsync", api_.memcpy_async(ToDevicePtr(destination),
                                                       ToDevicePtr(source), size_bytes, stream));
}

StatusOr<NativeEvent> CudaDriver::CreateEvent(int device) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaEvent event = nullptr;
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuEventCreate", api_.event_create(&event, kCudaEventDisableTiming)));
  return event;
}

void CudaDriver::DestroyEvent(int device, NativeEvent event) {
  CudaScope scope(contexts_, device);
  (void)api_.event_destroy(event);
}

Status CudaDriver::RecordEvent(int device, NativeStream stream, NativeEvent event) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuEventRecord", api_.event_record(event, stream));
}

Status CudaDriver::QueryEvent(int device, NativeEvent event) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuEventQuery", api_.event_query(event));
}

Status CudaDriver::WaitEvent(int device, NativeStream stream, NativeEvent event) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  return api_.Check("cuStreamWaitEvent", api_.stream_wait_event(stream, event, /*flags=*/0));
}

StatusOr<CudaDevicePtr> CudaDriver::DeviceAddress(const void* pointer) {
  if (same_addresses_) {
    return ToDevicePtr(pointer);
  }
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  FERRY_RETURN_IF_ERROR(attributes.status());
  return attributes->device_pointer;
}

Status CudaDriver::WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  const StatusOr<CudaDevicePtr> address = DeviceAddress(word);
  FERRY_RETURN_IF_ERROR(address.status());
  return api_.Check("cuStreamWriteValue64",
                    api_.stream_write_value64(stream, *address, value, kCudaWriteValueDefault));
}

Status CudaDriver::WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                            WaitCondition condition) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  const StatusOr<CudaDevicePtr> address = DeviceAddress(word);
  FERRY_RETURN_IF_ERROR(address.status());
  return api_.Check("cuStreamWaitValue64",
                    api_.stream_wait_value64(
                        stream, *address, value,
                        condition == WaitCondition::kEqual ? kCudaWaitValueEq : kCudaWaitValueGeq));
}

// ---- Kernels ----

Status CudaDriver::KernelsAvailable() const {
  const bool has_all = api_.module_load_data_ex != nullptr && api_.module_unload != nullptr &&
                       api_.module_get_function != nullptr && api_.launch_kernel != nullptr;
  return has_all ? Status() : Status(ErrorCode::kUnsupported, version() + " loads no modules");
}

StatusOr<void*> CudaDriver::LoadModule(int device, const DeviceImage& image) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  char log[1024] = {};
  std::array<int, 2> options = {kCudaJitErrorLogBuffer, kCudaJitErrorLogBufferBytes};
  std::array<void*, 2> values = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  CudaModule module = nullptr;
  Status status = api_.Check("cuModuleLoadDataEx",
                             api_.module_load_data_ex(&module, image.bytes.data(), options.size(),
                                                      options.data(), values.data()));
  if (!status.ok()) {
    return Status(status.code(), status.message() + (log[0] != 0 ? ": " : "") + log);
  }
  return module;
}

StatusOr<void*> CudaDriver::FindKernel(int device, void* module, const char* kernel) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaFunction function = nullptr;
  FERRY_RETURN_IF_ERROR(
      api_.Check("cuModuleGetFunction", api_.module_get_function(&function, module, kernel)));
  return function;
}

Status CudaDriver::Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                          std::span<const KernelArgument> arguments) {
  const StatusOr<void*> function = kernels_.Find(device, kernel);
  FERRY_RETURN_IF_ERROR(function.status());
  KernelValues values;
  FERRY_RETURN_IF_ERROR(
      values.Set(arguments, [this](const void* pointer) { return DeviceAddress(pointer); }));
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  const KernelModules::Shape shape = KernelModules::ShapeOf(threads);
  return api_.Check("cuLaunchKernel",
                    api_.launch_kernel(*function, shape.groups, 1, 1, shape.group_threads, 1, 1,
                                       /*shared_bytes=*/0, stream, values.pointers(), nullptr));
}

Status CudaDriver::EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) {
  CudaScope scope(contexts_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  void* held = HoldHostStep(step, argument);
  Status status = api_.Check("cuLaunchHostFunc", api_.launch_host_func(stream, &RunHostStep, held));
  if (!status.ok()) {
    DropHostStep(held);
  }
  return status;
}

// Whether the driver can be used at all.
Status Start(const CudaApi& api) {
  const CudaError error = api.init(0);
  switch (error) {
    case kCudaErrorNoDevice:
      return {ErrorCode::kNotFound, "CUDA finds no device"};
    case kCudaErrorStubLibrary:
      return {ErrorCode::kNotFound,
              "libcuda is the toolkit's stub; install the driver, or have it found first"};
    case kCudaErrorSystemDriverMismatch:
    case kCudaErrorCompatNotSupportedOnDevice:
      return {ErrorCode::kUnsupported, api.Check("cuInit", error).message() +
                                           ": the library does not fit the kernel's driver"};
    default:
      return api.Check("cuInit", error);
  }
}

StatusOr<std::vector<CudaDevice>> FindDevices(const CudaApi& api) {
  int count = 0;
  FERRY_RETURN_IF_ERROR(api.Check("cuDeviceGetCount", api.device_get_count(&count)));
  if (count == 0) {
    return Status(ErrorCode::kNotFound, "CUDA finds no device");
  }
  std::vector<CudaDevice> devices(static_cast<size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    FERRY_RETURN_IF_ERROR(
        api.Check("cuDeviceGet", api.device_get(&devices[static_cast<size_t>(ordinal)], ordinal)));
  }
  return devices;
}

}  // namespace

StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(std::string_view library) {
  const StatusOr<CudaApi> api = OpenCudaApi(library);
  FERRY_RETURN_IF_ERROR(api.status());
  FERRY_RETURN_IF_ERROR(Start(*api));
  int version = 0;
  FERRY_RETURN_IF_ERROR(api->Check("cuDriverGetVersion", api->driver_get_version(&version)));
  if (version / kCudaVersionMajor < kOldestMajor) {
    return Status(ErrorCode::kUnsupported, "the driver is of " + VersionText(version) +
                                               ": Ferry needs one of CUDA " +
                                               std::to_string(kOldestMajor) + " or later");
  }
  StatusOr<std::vector<CudaDevice>> devices = FindDevices(*api);
  FERRY_RETURN_IF_ERROR(devices.status());
  return std::unique_ptr<Driver>(std::make_unique<CudaDriver>(*api, version, std::move(*devices)));
}

}  // namespace ferry::gpu
