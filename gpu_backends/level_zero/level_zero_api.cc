#include "gpu_backends/level_zero/level_zero_api.h"

#include <array>
#include <cstdio>

namespace ferry::gpu {
namespace {

struct ResultRow {
  ze_result_t result;
  const char* name;
  ErrorCode code;
};

#define FERRY_ZE_RESULT(result, code) \
  ResultRow { result, #result, ErrorCode::code }

// Those that the calls above can return.
constexpr std::array kResults = {
    FERRY_ZE_RESULT(ZE_RESULT_NOT_READY, kWouldBlock),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_DEVICE_LOST, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, kOutOfMemory),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, kOutOfMemory),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_NOT_AVAILABLE, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNINITIALIZED, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_VERSION, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_ARGUMENT, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, kSystem),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_NULL_POINTER, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_SIZE, kInvalidArgument),
    // Larger than the device's limit on one allocation.
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, kOutOfMemory),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_ENUMERATION, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_KERNEL_NAME, kUnsupported),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_OVERLAPPING_REGIONS, kInvalidArgument),
    FERRY_ZE_RESULT(ZE_RESULT_ERROR_UNKNOWN, kSystem),
};

#undef FERRY_ZE_RESULT

const ResultRow* FindResult(ze_result_t result) {
  for (const ResultRow& row : kResults) {
    if (row.result == result) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

StatusOr<LevelZeroApi> OpenLevelZero(std::string_view library_path) {
  StatusOr<Library> library =
      Library::Open("Level Zero", library_path, {"libze_loader.so.1", "libze_loader.so"});
  FERRY_RETURN_IF_ERROR(library.status());
  LevelZeroApi api{};
  FERRY_RETURN_IF_ERROR(library->Resolve({
      Symbol::Required("zeInit", &api.init),
      Symbol::Required("zeDriverGet", &api.driver_get),
      Symbol::Required("zeDriverGetApiVersion", &api.driver_get_api_version),
      Symbol::Required("zeDriverGetProperties", &api.driver_get_properties),
      Symbol::Required("zeDriverGetIpcProperties", &api.driver_get_ipc_properties),
      Symbol::Required("zeDriverGetExtensionProperties", &api.driver_get_extension_properties),
      Symbol::Required("zeDeviceGet", &api.device_get),
      Symbol::Required("zeDeviceGetSubDevices", &api.device_get_sub_devices),
      Symbol::Required("zeDeviceGetProperties", &api.device_get_properties),
      Symbol::Required("zeDeviceGetMemoryProperties", &api.device_get_memory_properties),
      Symbol::Required("zeDeviceGetMemoryAccessProperties",
                       &api.device_get_memory_access_properties),
      Symbol::Required("zeDeviceGetExternalMemoryProperties",
                       &api.device_get_external_memory_properties),
      Symbol::Required("zeDeviceGetCommandQueueGroupProperties",
                       &api.device_get_command_queue_group_properties),
      Symbol::Required("zeDeviceCanAccessPeer", &api.device_can_access_peer),
      Symbol::Required("zeContextCreate", &api.context_create),
      Symbol::Required("zeContextDestroy", &api.context_destroy),
      Symbol::Required("zeCommandListCreateImmediate", &api.command_list_create_immediate),
      Symbol::Required("zeCommandListDestroy", &api.command_list_destroy),
      Symbol::Required("zeCommandListAppendBarrier", &api.command_list_append_barrier),
      Symbol::Required("zeCommandListAppendMemoryCopy", &api.command_list_append_memory_copy),
      Symbol::Required("zeCommandListAppendWaitOnEvents", &api.command_list_append_wait_on_events),
      Symbol::Required("zeEventPoolCreate", &api.event_pool_create),
      Symbol::Required("zeEventPoolDestroy", &api.event_pool_destroy),
      Symbol::Required("zeEventCreate", &api.event_create),
      Symbol::Required("zeEventDestroy", &api.event_destroy),
      Symbol::Required("zeEventHostSignal", &api.event_host_signal),
      Symbol::Required("zeEventHostSynchronize", &api.event_host_synchronize),
      Symbol::Required("zeEventQueryStatus", &api.event_query_status),
      Symbol::Required("zeEventHostReset", &api.event_host_reset),
      Symbol::Required("zeMemAllocDevice", &api.mem_alloc_device),
      Symbol::Required("zeMemAllocHost", &api.mem_alloc_host),
      Symbol::Required("zeMemAllocShared", &api.mem_alloc_shared),
      Symbol::Required("zeMemFree", &api.mem_free),
      Symbol::Required("zeMemGetAllocProperties", &api.mem_get_alloc_properties),
      Symbol::Required("zeMemGetAddressRange", &api.mem_get_address_range),
      Symbol::Required("zeMemGetIpcHandle", &api.mem_get_ipc_handle),
      Symbol::Required("zeMemOpenIpcHandle", &api.mem_open_ipc_handle),
      Symbol::Required("zeMemCloseIpcHandle", &api.mem_close_ipc_handle),
      Symbol::Optional("zeDriverGetExtensionFunctionAddress",
                       &api.driver_get_extension_function_address),
      Symbol::Optional("zeDevicePciGetPropertiesExt", &api.device_pci_get_properties_ext),
      Symbol::Optional("zeDeviceGetStatus", &api.device_get_status),
      Symbol::Optional("zeModuleCreate", &api.module_create),
      Symbol::Optional("zeModuleDestroy", &api.module_destroy),
      Symbol::Optional("zeModuleBuildLogGetString", &api.module_build_log_get_string),
      Symbol::Optional("zeModuleBuildLogDestroy", &api.module_build_log_destroy),
      Symbol::Optional("zeKernelCreate", &api.kernel_create),
      Symbol::Optional("zeKernelDestroy", &api.kernel_destroy),
      Symbol::Optional("zeKernelSetGroupSize", &api.kernel_set_group_size),
      Symbol::Optional("zeKernelSetArgumentValue", &api.kernel_set_argument_value),
      Symbol::Optional("zeCommandListAppendLaunchKernel", &api.command_list_append_launch_kernel),
      Symbol::Optional("zeVirtualMemGetAccessAttribute", &api.virtual_mem_get_access_attribute),
      Symbol::Optional("zelLoaderTranslateHandle", &api.loader_translate_handle),
      Symbol::Optional("zeMemPutIpcHandle", &api.mem_put_ipc_handle),
  }));
  return api;
}

std::string ZeResultName(ze_result_t result) {
  if (const ResultRow* row = FindResult(result); row != nullptr) {
    return row->name;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "result 0x%08x", static_cast<unsigned>(result));
  return text;
}

Status ZeStatus(const char* call, ze_result_t result) {
  if (result == ZE_RESULT_SUCCESS) {
    return {};
  }
  const ResultRow* row = FindResult(result);
  return {row != nullptr ? row->code : ErrorCode::kSystem,
          std::string(call) + ": " + ZeResultName(result)};
}

}  // namespace ferry::gpu
