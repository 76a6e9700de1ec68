#include "gpu_backends/cuda/cuda_backend.h"

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
#include "gpu_backends/driver/cuda_like_driver.h"
#include "gpu_backends/driver/driver_backend.h"

namespace ferry::gpu {
namespace {

constexpr int kOldestMajor = 11;

static_assert(sizeof(CudaDevicePtr) == sizeof(void*));

std::string VersionText(int version) {
  return "CUDA " + std::to_string(version / kCudaVersionMajor) + "." +
         std::to_string(version % kCudaVersionMajor / kCudaVersionMinor);
}

// The driver's description of a pointer. With memory_type 0 the driver does not know the pointer.
struct PointerAttributes {
  unsigned memory_type = 0;
  unsigned is_managed = 0;
  int ordinal = -1;
  CudaDevicePtr device_pointer = 0;
  unsigned long long buffer_id = 0;
  CudaDevicePtr range_start = 0;
  size_t range_size = 0;
};

struct CudaVendor {
  using Api = CudaApi;
  using Error = CudaError;
  using Address = CudaDevicePtr;
  using IpcHandle = CudaIpcMemHandle;
  using Devices = PrimaryContexts;
  using DeviceList = std::vector<CudaDevice>;
  using Scope = CudaScope;

  static constexpr char kName[] = "cuda";
  static constexpr char kPrefix[] = "cu";
  static constexpr char kStreamCreate[] = "StreamCreate";
  static constexpr char kEventCreate[] = "EventCreate";
  static constexpr char kLaunchKernel[] = "LaunchKernel";
  static constexpr auto kCreateStream = &CudaApi::stream_create;
  static constexpr auto kCreateEvent = &CudaApi::event_create;
  static constexpr auto kLaunch = &CudaApi::launch_kernel;
  static constexpr unsigned kStreamNonBlocking = kCudaStreamNonBlocking;
  static constexpr unsigned kEventDisableTiming = kCudaEventDisableTiming;
  static constexpr int kHostNativeAtomics = kCudaAttributeHostNativeAtomics;
  static constexpr int kManagedMemory = kCudaAttributeManagedMemory;
};

class CudaDriver final : public CudaLikeDriver<CudaVendor> {
 public:
  CudaDriver(const CudaApi& api, int version, std::vector<CudaDevice> devices)
      : CudaLikeDriver(api, std::move(devices), VersionText(version), {ImageFormat::kPtx},
                       api.module_load_data_ex != nullptr && api.module_unload != nullptr &&
                           api.module_get_function != nullptr && api.launch_kernel != nullptr) {
    for (int device = 0; device < device_count(); ++device) {
      same_addresses_ &= HasAttribute(kCudaAttributeHostPointerForRegistered, device);
      stream_words_.push_back(api_.stream_write_value64 != nullptr &&
                              api_.stream_wait_value64 != nullptr &&
                              HasAttribute(kCudaAttributeStreamMemOps64, device));
    }
  }

  StatusOr<DeviceInfo> GetDeviceInfo(int device) override;

  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override {
    return Make(device, "MemAlloc", api_.mem_alloc, size_bytes);
  }
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override {
    return Make(devices_.HostDevice(), "MemHostAlloc", api_.mem_host_alloc, size_bytes,
                kCudaHostAllocPortable | kCudaHostAllocDeviceMap);
  }
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override {
    return Make(device, "MemAllocManaged", api_.mem_alloc_managed, size_bytes,
                kCudaMemAttachGlobal);
  }
  Status Free(PointerKind kind, void* pointer) override;
  PointerInfo Identify(const void* pointer) override;
  StatusOr<MemoryPiece> PieceAround(const void* pointer, const PointerInfo& info) override;
  StatusOr<void*> Import(int device, const IpcHandle& handle) override;
  Status CloseImport(void* base) override;
  StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) override;
  Status Register(void* pointer, uint64_t size_bytes) override {
    return Call(devices_.HostDevice(), "MemHostRegister", api_.mem_host_register, pointer,
                size_bytes, kCudaHostRegisterPortable | kCudaHostRegisterDeviceMap);
  }
  Status RegisterIo(void* pointer, uint64_t size_bytes) override {
    return Call(devices_.HostDevice(), "MemHostRegister", api_.mem_host_register, pointer,
                size_bytes,
                kCudaHostRegisterPortable | kCudaHostRegisterDeviceMap | kCudaHostRegisterIoMemory);
  }
  Status Unregister(void* pointer) override {
    return Call(devices_.HostDevice(), "MemHostUnregister", api_.mem_host_unregister, pointer);
  }

  Status CheckStream(int device, NativeStream stream) override;
  Status Copy(int device, NativeStream stream, void* destination, const void* source,
              uint64_t size_bytes) override {
    return Call(device, "MemcpyAsync", api_.memcpy_async, ToAddress(destination), ToAddress(source),
                size_bytes, stream);
  }
  bool has_stream_words(int device) const override { return stream_words_[device]; }
  Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                  WaitCondition condition) override {
    return CallWith(device, word, "StreamWaitValue64", [&](CudaDevicePtr address) {
      return api_.stream_wait_value64(
          stream, address, value,
          condition == WaitCondition::kEqual ? kCudaWaitValueEq : kCudaWaitValueGeq);
    });
  }

 private:
  StatusOr<int> DeviceOf(const void* pointer) override;
  StatusOr<CudaDevicePtr> DeviceAddress(const void* pointer) override;
  StatusOr<void*> LoadModule(int device, const DeviceImage& image) override;
  Status EnablePeerAccess(int device, int other) override;
  Status EnqueueHeldStep(int device, NativeStream stream, void* held) override {
    return Call(device, "LaunchHostFunc", api_.launch_host_func, stream, &RunHostStep, held);
  }
  StatusOr<PointerAttributes> Ask(const void* pointer);

  std::vector<bool> stream_words_;
  bool same_addresses_ = true;  // devices reach registered memory at its own address

  std::mutex imports_mutex_;
  // The device in whose context memory was opened and is closed; the memory may be another
  // device's.
  std::multimap<void*, int> importing_devices_;
};

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
    return Check("PointerGetAttributes",
                 api_.pointer_get_attributes(static_cast<unsigned>(count), attributes.data(),
                                             data.data(), ToAddress(pointer)));
  };
  if (same_addresses_) {
    FERRY_RETURN_IF_ERROR(ask(attributes.size() - 1));
    answer.device_pointer = ToAddress(pointer);
    return answer;
  }
  const int device = devices_.ActiveDevice();
  if (device < 0) {
    return answer;  // without a context there is no memory
  }
  CudaScope scope(devices_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  FERRY_RETURN_IF_ERROR(ask(attributes.size()));
  return answer;
}

StatusOr<int> CudaDriver::DeviceOf(const void* pointer) {
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  FERRY_RETURN_IF_ERROR(attributes.status());
  const int device = devices_.DeviceOf(attributes->ordinal);
  if (attributes->memory_type == 0 || device < 0) {
    return Status(ErrorCode::kInvalidArgument, "CUDA knows nothing of this memory");
  }
  return device;
}

StatusOr<DeviceInfo> CudaDriver::GetDeviceInfo(int device) {
  StatusOr<DeviceInfo> info = Describe(device);
  FERRY_RETURN_IF_ERROR(info.status());
  // Known only with a context, which is too expensive to make just for this.
  if (devices_.IsActive(device)) {
    CudaScope scope(devices_, device);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (scope.status().ok() && api_.mem_get_info(&free_bytes, &total_bytes) == kCudaSuccess) {
      info->free_bytes = free_bytes;
    }
  }
  info->dmabuf = api_.mem_get_handle_for_address_range != nullptr &&
                 HasAttribute(kCudaAttributeDmabufSupported, device);
  return info;
}

// ---- Memory ----

Status CudaDriver::Free(PointerKind kind, void* pointer) {
  if (kind == PointerKind::kPinned) {
    return Call(devices_.HostDevice(), "MemFreeHost", api_.mem_free_host, pointer);
  }
  const StatusOr<int> device = DeviceOf(pointer);
  FERRY_RETURN_IF_ERROR(device.status());
  return Call(*device, "MemFree", api_.mem_free, ToAddress(pointer));
}

PointerInfo CudaDriver::Identify(const void* pointer) {
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  // For memory that is not its own CUDA returns no type, or calls the pointer invalid.
  if (!attributes.ok() && attributes.status().code() != ErrorCode::kInvalidArgument) {
    return LookupFailed(attributes.status());
  }
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
  info.device = is_host ? -1 : devices_.DeviceOf(attributes->ordinal);
  info.direct = {info.kind != PointerKind::kDevice, is_host};
  // The range is in the addresses by which devices see the memory.
  const CudaDevicePtr seen_by_devices =
      attributes->device_pointer != 0 ? attributes->device_pointer : ToAddress(pointer);
  info.base = ToPointer(ToAddress(pointer) - (seen_by_devices - attributes->range_start));
  info.size_bytes = attributes->range_size;
  info.allocation_id = attributes->buffer_id;
  return info;
}

// For memory that was mapped by cuMemMap the range above covers all that was reserved together.
StatusOr<MemoryPiece> CudaDriver::PieceAround(const void* pointer, const PointerInfo& info) {
  CudaDevicePtr begin = 0;
  size_t size_bytes = 0;
  std::array<int, 2> attributes = {kCudaPointerMappingBase, kCudaPointerMappingSize};
  std::array<void*, 2> data = {&begin, &size_bytes};
  FERRY_RETURN_IF_ERROR(
      Check("PointerGetAttributes",
            api_.pointer_get_attributes(static_cast<unsigned>(attributes.size()), attributes.data(),
                                        data.data(), ToAddress(pointer))));
  if (ToAddress(pointer) - begin >= size_bytes) {  // CUDA's release does not tell the mapping
    return Status(ErrorCode::kUnsupported, "CUDA tells of no mapping at this address");
  }
  const auto* const piece = static_cast<const std::byte*>(ToPointer(begin));
  const bool is_whole = piece == info.base && size_bytes == info.size_bytes;
  return MemoryPiece{piece, piece + size_bytes, !is_whole};
}

StatusOr<void*> CudaDriver::Import(int device, const IpcHandle& handle) {
  CudaIpcMemHandle native{};
  std::memcpy(&native, handle.opaque.data(), sizeof(native));
  StatusOr<void*> pointer =
      Make(device, "IpcOpenMemHandle", api_.ipc_open_mem_handle, native, kCudaIpcLazyPeerAccess);
  if (pointer.ok()) {
    std::lock_guard lock(imports_mutex_);
    importing_devices_.emplace(*pointer, device);
  }
  return pointer;
}

Status CudaDriver::CloseImport(void* base) {
  std::multimap<void*, int>::node_type import;
  {
    std::lock_guard lock(imports_mutex_);
    import = importing_devices_.extract(base);
  }
  if (import.empty()) {
    return {ErrorCode::kInvalidArgument, "this memory was not imported by CUDA"};
  }
  Status closed =
      Call(import.mapped(), "IpcCloseMemHandle", api_.ipc_close_mem_handle, ToAddress(base));
  if (!closed.ok()) {
    std::lock_guard lock(imports_mutex_);
    importing_devices_.insert(std::move(import));
  }
  return closed;
}

StatusOr<Dmabuf> CudaDriver::ExportDmabuf(void* base, uint64_t size_bytes) {
  if (api_.mem_get_handle_for_address_range == nullptr) {
    return Status(ErrorCode::kUnsupported, version() + " exports no dma-bufs");
  }
  const StatusOr<int> device = DeviceOf(base);
  FERRY_RETURN_IF_ERROR(device.status());
  // Whole pages of the host's are asked for; the driver's own blocks are larger.
  const auto page_bytes = static_cast<CudaDevicePtr>(sysconf(_SC_PAGESIZE));
  const CudaDevicePtr begin = ToAddress(base) & ~(page_bytes - 1);
  const CudaDevicePtr end = (ToAddress(base) + size_bytes + page_bytes - 1) & ~(page_bytes - 1);
  int fd = -1;
  FERRY_RETURN_IF_ERROR(Call(*device, "MemGetHandleForAddressRange",
                             api_.mem_get_handle_for_address_range, &fd, begin, end - begin,
                             kCudaMemRangeHandleTypeDmabuf, /*flags=*/0));
  Dmabuf dmabuf;
  dmabuf.fd.Reset(fd);
  dmabuf.offset_bytes = ToAddress(base) - begin;
  return dmabuf;
}

Status CudaDriver::EnablePeerAccess(int device, int other) {
  const StatusOr<CudaContext> context = devices_.Get(other);
  FERRY_RETURN_IF_ERROR(context.status());
  return Call(device, "CtxEnablePeerAccess", api_.ctx_enable_peer_access, *context, /*flags=*/0U);
}

// ---- Streams ----

Status CudaDriver::CheckStream(int device, NativeStream stream) {
  if (reinterpret_cast<uintptr_t>(stream) == kCudaStreamPerThread) {
    return {ErrorCode::kInvalidArgument,
            "CU_STREAM_PER_THREAD is another stream for each thread that names it"};
  }
  CudaScope scope(devices_, device);
  FERRY_RETURN_IF_ERROR(scope.status());
  CudaContext own = nullptr;
  if (const Status status = Check("StreamGetCtx", api_.stream_get_ctx(stream, &own));
      !status.ok()) {
    return {ErrorCode::kInvalidArgument, "not a stream of CUDA: " + status.message()};
  }
  const StatusOr<CudaContext> expected = devices_.Get(device);
  FERRY_RETURN_IF_ERROR(expected.status());
  if (own != *expected) {
    return {ErrorCode::kInvalidArgument,
            "the stream is of another context than the primary one "
            "of device " +
                std::to_string(device)};
  }
  return {};
}

StatusOr<CudaDevicePtr> CudaDriver::DeviceAddress(const void* pointer) {
  if (same_addresses_) {
    return ToAddress(pointer);
  }
  const StatusOr<PointerAttributes> attributes = Ask(pointer);
  FERRY_RETURN_IF_ERROR(attributes.status());
  return attributes->device_pointer;
}

// ---- Kernels ----

StatusOr<void*> CudaDriver::LoadModule(int device, const DeviceImage& image) {
  char log[1024] = {};
  std::array<int, 2> options = {kCudaJitErrorLogBuffer, kCudaJitErrorLogBufferBytes};
  std::array<void*, 2> values = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  CudaModule module = nullptr;
  Status status = Call(device, "ModuleLoadDataEx", api_.module_load_data_ex, &module,
                       image.bytes.data(), options.size(), options.data(), values.data());
  if (!status.ok()) {
    return Status(status.code(), status.message() + (log[0] != 0 ? ": " : "") + log);
  }
  return module;
}

// Starts the driver, and checks that it can be used at all.
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

StatusOr<std::unique_ptr<GpuBackend>> CreateCudaBackend(const CudaBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenCudaDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
