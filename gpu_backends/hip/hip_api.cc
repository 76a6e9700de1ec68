#include "gpu_backends/hip/hip_api.h"

#include "gpu_backends/driver/library.h"

namespace ferry::gpu {
namespace {

ErrorCode CodeOf(HipError error) {
  switch (error) {
    case kHipErrorNotReady:
      return ErrorCode::kWouldBlock;
    case kHipErrorOutOfMemory:
      return ErrorCode::kOutOfMemory;
    case kHipErrorPeerAccessAlreadyEnabled:
    case kHipErrorHostMemoryAlreadyRegistered:
      return ErrorCode::kAlreadyExists;
    case kHipErrorNotSupported:
      return ErrorCode::kUnsupported;
    case kHipErrorInvalidValue:
    case kHipErrorInvalidDevicePointer:
    case kHipErrorInvalidDevice:
    case kHipErrorInvalidHandle:
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kSystem;
  }
}

Status ResolveAll(const Library& library, HipApi& api) {
  return library.Resolve({
      Symbol::Required("hipRuntimeGetVersion", &api.runtime_get_version),
      Symbol::Required("hipGetDeviceCount", &api.get_device_count),
      Symbol::Required("hipGetDevice", &api.get_device),
      Symbol::Required("hipSetDevice", &api.set_device),
      Symbol::Required("hipDeviceGetName", &api.device_get_name),
      Symbol::Required("hipDeviceTotalMem", &api.device_total_mem),
      Symbol::Required("hipDeviceGetPCIBusId", &api.device_get_pci_bus_id),
      Symbol::Required("hipDeviceGetAttribute", &api.device_get_attribute),
      Symbol::Required("hipMemGetInfo", &api.mem_get_info),
      Symbol::Required("hipGetErrorName", &api.get_error_name),
      Symbol::Required("hipGetLastError", &api.get_last_error),
      Symbol::Required("hipPeekAtLastError", &api.peek_at_last_error),
      Symbol::Required("hipMalloc", &api.malloc),
      Symbol::Required("hipFree", &api.free),
      Symbol::Required("hipHostMalloc", &api.host_malloc),
      Symbol::Required("hipHostFree", &api.host_free),
      Symbol::Required("hipMallocManaged", &api.malloc_managed),
      Symbol::Required("hipPointerGetAttributes", &api.pointer_get_attributes),
      Symbol::Required("hipMemGetAddressRange", &api.mem_get_address_range),
      Symbol::Required("hipIpcGetMemHandle", &api.ipc_get_mem_handle),
      Symbol::Required("hipIpcOpenMemHandle", &api.ipc_open_mem_handle),
      Symbol::Required("hipIpcCloseMemHandle", &api.ipc_close_mem_handle),
      Symbol::Required("hipDeviceCanAccessPeer", &api.device_can_access_peer),
      Symbol::Required("hipDeviceEnablePeerAccess", &api.device_enable_peer_access),
      Symbol::Required("hipHostRegister", &api.host_register),
      Symbol::Required("hipHostUnregister", &api.host_unregister),
      Symbol::Required("hipHostGetDevicePointer", &api.host_get_device_pointer),
      Symbol::Optional("hipPointerGetAttribute", &api.pointer_get_attribute),
      Symbol::Optional("hipMemGetAccess", &api.mem_get_access),
      Symbol::Optional("hipMemGetHandleForAddressRange", &api.mem_get_handle_for_address_range),
      // Found through the library, which depends on the one that has it.
      Symbol::Optional("hsa_amd_portable_export_dmabuf", &api.hsa_export_dmabuf),

      Symbol::Required("hipStreamCreateWithFlags", &api.stream_create_with_flags),
      Symbol::Required("hipStreamDestroy", &api.stream_destroy),
      Symbol::Required("hipStreamQuery", &api.stream_query),
      Symbol::Required("hipStreamGetFlags", &api.stream_get_flags),
      Symbol::Required("hipMemcpyAsync", &api.memcpy_async),
      Symbol::Required("hipEventCreateWithFlags", &api.event_create_with_flags),
      Symbol::Required("hipEventDestroy", &api.event_destroy),
      Symbol::Required("hipEventRecord", &api.event_record),
      Symbol::Required("hipEventQuery", &api.event_query),
      Symbol::Required("hipStreamWaitEvent", &api.stream_wait_event),
      Symbol::Required("hipStreamAddCallback", &api.stream_add_callback),
      Symbol::Optional("hipStreamWriteValue64", &api.stream_write_value64),
      Symbol::Optional("hipStreamWaitValue64", &api.stream_wait_value64),
      Symbol::Optional("hipLaunchHostFunc", &api.launch_host_func),
      Symbol::Optional("hipStreamGetDevice", &api.stream_get_device),
      Symbol::Optional("hipModuleLoadData", &api.module_load_data),
      Symbol::Optional("hipModuleUnload", &api.module_unload),
      Symbol::Optional("hipModuleGetFunction", &api.module_get_function),
      Symbol::Optional("hipModuleLaunchKernel", &api.module_launch_kernel),
  });
}

}  // namespace

Status HipApi::Check(const char* call, HipError error) const {
  if (error == kHipSuccess) {
    return {};
  }
  const char* name = get_error_name(error);
  return {CodeOf(error), std::string(call) + ": " +
                             (name != nullptr ? name : "HIP error " + std::to_string(error))};
}

StatusOr<HipApi> OpenHipApi(std::string_view path) {
  StatusOr<Library> library =
      Library::Open("AMD's HIP run time", path,
                    {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"});
  FERRY_RETURN_IF_ERROR(library.status());
  HipApi api{};
  FERRY_RETURN_IF_ERROR(ResolveAll(*library, api));
  return api;
}

}  // namespace ferry::gpu
