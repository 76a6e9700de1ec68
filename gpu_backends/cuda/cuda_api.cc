#include "gpu_backends/cuda/cuda_api.h"

#include "gpu_backends/driver/library.h"

namespace ferry::gpu {
namespace {

// cuGetProcAddress, as of CUDA 12 and of CUDA 11.3.
using GetProcAddress = CudaError (*)(const char* symbol, void** function, int cuda_version,
                                     uint64_t flags, int* result);
using GetProcAddress11 = CudaError (*)(const char* symbol, void** function, int cuda_version,
                                       uint64_t flags);

// One function: its name, the version of CUDA that brought the variant declared in CudaApi, and the
// name of that variant in the library.
struct Row {
  const char* name;
  int version;
  const char* exported_name;
  void** address;
  bool required;
};

template <typename Function>
Row Required(const char* name, int version, const char* exported_name, Function** function) {
  return {name, version, exported_name, reinterpret_cast<void**>(function), true};
}
template <typename Function>
Row Required(const char* name, int version, Function** function) {
  return Required(name, version, name, function);
}
template <typename Function>
Row Optional(const char* name, int version, const char* exported_name, Function** function) {
  return {name, version, exported_name, reinterpret_cast<void**>(function), false};
}

class Resolver {
 public:
  explicit Resolver(const Library& library)
      : library_(library),
        get_proc_address_(reinterpret_cast<GetProcAddress>(library.Find("cuGetProcAddress_v2"))),
        get_proc_address_11_(reinterpret_cast<GetProcAddress11>(library.Find("cuGetProcAddress"))) {
  }

  void Resolve(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      *row.address = Find(row);
      if (*row.address == nullptr && row.required) {
        missing_ += (missing_.empty() ? "" : ", ") + std::string(row.exported_name);
      }
    }
  }

  Status Missing() const {
    return missing_.empty()
               ? Status()
               : Status(ErrorCode::kUnsupported, library_.name() + " has no " + missing_ +
                                                     ": it is too old, or not what its name says");
  }

 private:
  void* Find(const Row& row) const {
    void* function = nullptr;
    int result = 0;
    if (get_proc_address_ != nullptr) {
      (void)get_proc_address_(row.name, &function, row.version, kCudaProcAddressLegacyStream,
                              &result);
    } else if (get_proc_address_11_ != nullptr) {
      (void)get_proc_address_11_(row.name, &function, row.version, kCudaProcAddressLegacyStream);
    }
    return function != nullptr ? function : library_.Find(row.exported_name);
  }

  const Library& library_;
  const GetProcAddress get_proc_address_;
  const GetProcAddress11 get_proc_address_11_;
  std::string missing_;
};

void ResolveAll(Resolver& resolver, CudaApi& api) {
  resolver.Resolve({
      Required("cuInit", 2000, &api.init),
      Required("cuDriverGetVersion", 2020, &api.driver_get_version),
      Required("cuGetErrorName", 6000, &api.get_error_name),
      Required("cuDeviceGetCount", 2000, &api.device_get_count),
      Required("cuDeviceGet", 2000, &api.device_get),
      Required("cuDeviceGetName", 2000, &api.device_get_name),
      Required("cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2", &api.device_total_mem),
      Required("cuDeviceGetAttribute", 2000, &api.device_get_attribute),
      Required("cuDeviceGetPCIBusId", 4010, &api.device_get_pci_bus_id),
      Required("cuDevicePrimaryCtxRetain", 7000, &api.primary_ctx_retain),
      Required("cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2",
               &api.primary_ctx_release),
      Required("cuDevicePrimaryCtxGetState", 7000, &api.primary_ctx_get_state),
      Required("cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2", &api.ctx_push_current),
      Required("cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2", &api.ctx_pop_current),

      Required("cuMemGetInfo", 3020, "cuMemGetInfo_v2", &api.mem_get_info),
      Required("cuMemAlloc", 3020, "cuMemAlloc_v2", &api.mem_alloc),
      Required("cuMemFree", 3020, "cuMemFree_v2", &api.mem_free),
      Required("cuMemHostAlloc", 2020, &api.mem_host_alloc),
      Required("cuMemFreeHost", 2000, &api.mem_free_host),
      Required("cuMemAllocManaged", 6000, &api.mem_alloc_managed),
      Required("cuPointerGetAttributes", 7000, &api.pointer_get_attributes),
      Required("cuIpcGetMemHandle", 4010, &api.ipc_get_mem_handle),
      Required("cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2", &api.ipc_open_mem_handle),
      Required("cuIpcCloseMemHandle", 4010, &api.ipc_close_mem_handle),
      Required("cuDeviceCanAccessPeer", 4000, &api.device_can_access_peer),
      Required("cuCtxEnablePeerAccess", 4000, &api.ctx_enable_peer_access),
      Required("cuMemHostRegister", 6050, "cuMemHostRegister_v2", &api.mem_host_register),
      Required("cuMemHostUnregister", 4000, &api.mem_host_unregister),
      Optional("cuMemGetHandleForAddressRange", 11070, "cuMemGetHandleForAddressRange",
               &api.mem_get_handle_for_address_range),

      Required("cuStreamCreate", 2000, &api.stream_create),
      Required("cuStreamDestroy", 4000, "cuStreamDestroy_v2", &api.stream_destroy),
      Required("cuStreamQuery", 2000, &api.stream_query),
      Required("cuStreamGetCtx", 9020, &api.stream_get_ctx),
      Required("cuMemcpyAsync", 4000, &api.memcpy_async),
      Required("cuEventCreate", 2000, &api.event_create),
      Required("cuEventDestroy", 4000, "cuEventDestroy_v2", &api.event_destroy),
      Required("cuEventRecord", 2000, &api.event_record),
      Required("cuEventQuery", 2000, &api.event_query),
      Required("cuStreamWaitEvent", 3020, &api.stream_wait_event),
      Required("cuLaunchHostFunc", 10000, &api.launch_host_func),
      // The second variants: the first need an option of the kernel module.
      Optional("cuStreamWriteValue64", 11070, "cuStreamWriteValue64_v2", &api.stream_write_value64),
      Optional("cuStreamWaitValue64", 11070, "cuStreamWaitValue64_v2", &api.stream_wait_value64),

      Optional("cuModuleLoadDataEx", 2010, "cuModuleLoadDataEx", &api.module_load_data_ex),
      Optional("cuModuleUnload", 2000, "cuModuleUnload", &api.module_unload),
      Optional("cuModuleGetFunction", 2000, "cuModuleGetFunction", &api.module_get_function),
      Optional("cuLaunchKernel", 4000, "cuLaunchKernel", &api.launch_kernel),
  });
}

ErrorCode CodeOf(CudaError error) {
  switch (error) {
    case kCudaErrorNotReady:
      return ErrorCode::kWouldBlock;
    case kCudaErrorOutOfMemory:
      return ErrorCode::kOutOfMemory;
    case kCudaErrorPeerAccessAlreadyEnabled:
    case kCudaErrorHostMemoryAlreadyRegistered:
      return ErrorCode::kAlreadyExists;
    case kCudaErrorNotSupported:
      return ErrorCode::kUnsupported;
    case kCudaErrorInvalidValue:
    case kCudaErrorInvalidDevice:
    case kCudaErrorInvalidHandle:
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kSystem;
  }
}

}  // namespace

Status CudaApi::Check(const char* call, CudaError error) const {
  if (error == kCudaSuccess) {
    return {};
  }
  const char* name = nullptr;
  const bool has_name = get_error_name(error, &name) == kCudaSuccess && name != nullptr;
  return {CodeOf(error),
          std::string(call) + ": " + (has_name ? name : "CUDA error " + std::to_string(error))};
}

StatusOr<CudaApi> OpenCudaApi(std::string_view path) {
  StatusOr<Library> library =
      Library::Open("NVIDIA's CUDA driver", path, {"libcuda.so.1", "libcuda.so"});
  FERRY_RETURN_IF_ERROR(library.status());
  CudaApi api{};
  Resolver resolver(*library);
  ResolveAll(resolver, api);
  FERRY_RETURN_IF_ERROR(resolver.Missing());
  return api;
}

}  // namespace ferry::gpu
