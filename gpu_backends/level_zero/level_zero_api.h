// The functions of Level Zero's loader that Ferry calls, found at run time, and the meaning of
// their results.
//
// Source: oneAPI Level Zero specification 1.4 (the headers that this is compiled with); functions
// that came later, and Intel's own extensions (zex), are declared here.
#pragma once

#include <level_zero/loader/ze_loader.h>
#include <level_zero/ze_api.h>

#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/driver/library.h"

namespace ferry::gpu {

// ---- Intel's extensions: zeDriverGetExtensionFunctionAddress finds them, or does not ----

// Scope in both descriptors below: the host sees the write, or its writes end the wait.
inline constexpr uint32_t kZexScopeHost = 1U << 2;
inline constexpr uint32_t kZexWaitEqual = 1U << 0;
inline constexpr uint32_t kZexWaitGreaterOrEqual = 1U << 3;

struct ZexWaitDescriptor {
  uint32_t condition;
  uint32_t scope;
};
struct ZexWriteDescriptor {
  uint32_t scope;
};
using ZexAppendWaitOnMemory64 = ze_result_t (*)(ze_command_list_handle_t list,
                                                ZexWaitDescriptor* descriptor, void* word,
                                                uint64_t value, ze_event_handle_t signal);
using ZexAppendWriteToMemory = ze_result_t (*)(ze_command_list_handle_t list,
                                               ZexWriteDescriptor* descriptor, void* word,
                                               uint64_t value);
using ZexImportExternalPointer = ze_result_t (*)(ze_driver_handle_t driver, void* pointer,
                                                 size_t size_bytes);
using ZexReleaseImportedPointer = ze_result_t (*)(ze_driver_handle_t driver, void* pointer);

// ---- The loader's functions ----

struct LevelZeroApi {
  decltype(&zeInit) init;
  decltype(&zeDriverGet) driver_get;
  decltype(&zeDriverGetApiVersion) driver_get_api_version;
  decltype(&zeDriverGetProperties) driver_get_properties;
  decltype(&zeDriverGetIpcProperties) driver_get_ipc_properties;
  decltype(&zeDriverGetExtensionProperties) driver_get_extension_properties;
  decltype(&zeDeviceGet) device_get;
  decltype(&zeDeviceGetSubDevices) device_get_sub_devices;
  decltype(&zeDeviceGetProperties) device_get_properties;
  decltype(&zeDeviceGetMemoryProperties) device_get_memory_properties;
  decltype(&zeDeviceGetMemoryAccessProperties) device_get_memory_access_properties;
  decltype(&zeDeviceGetExternalMemoryProperties) device_get_external_memory_properties;
  decltype(&zeDeviceGetCommandQueueGroupProperties) device_get_command_queue_group_properties;
  decltype(&zeDeviceCanAccessPeer) device_can_access_peer;
  decltype(&zeContextCreate) context_create;
  decltype(&zeContextDestroy) context_destroy;
  decltype(&zeCommandListCreateImmediate) command_list_create_immediate;
  decltype(&zeCommandListDestroy) command_list_destroy;
  decltype(&zeCommandListAppendBarrier) command_list_append_barrier;
  decltype(&zeCommandListAppendMemoryCopy) command_list_append_memory_copy;
  decltype(&zeCommandListAppendWaitOnEvents) command_list_append_wait_on_events;
  decltype(&zeEventPoolCreate) event_pool_create;
  decltype(&zeEventPoolDestroy) event_pool_destroy;
  decltype(&zeEventCreate) event_create;
  decltype(&zeEventDestroy) event_destroy;
  decltype(&zeEventHostSignal) event_host_signal;
  decltype(&zeEventHostSynchronize) event_host_synchronize;
  decltype(&zeEventQueryStatus) event_query_status;
  decltype(&zeEventHostReset) event_host_reset;
  decltype(&zeMemAllocDevice) mem_alloc_device;
  decltype(&zeMemAllocHost) mem_alloc_host;
  decltype(&zeMemAllocShared) mem_alloc_shared;
  decltype(&zeMemFree) mem_free;
  decltype(&zeMemGetAllocProperties) mem_get_alloc_properties;
  decltype(&zeMemGetAddressRange) mem_get_address_range;
  decltype(&zeMemGetIpcHandle) mem_get_ipc_handle;
  decltype(&zeMemOpenIpcHandle) mem_open_ipc_handle;
  decltype(&zeMemCloseIpcHandle) mem_close_ipc_handle;

  // Null where the loader is too old for them.
  decltype(&zeDriverGetExtensionFunctionAddress) driver_get_extension_function_address;
  decltype(&zeDevicePciGetPropertiesExt) device_pci_get_properties_ext;
  decltype(&zeVirtualMemGetAccessAttribute) virtual_mem_get_access_attribute;
  decltype(&zelLoaderTranslateHandle) loader_translate_handle;
  decltype(&zeDeviceGetStatus) device_get_status;
  decltype(&zeModuleCreate) module_create;
  decltype(&zeModuleDestroy) module_destroy;
  decltype(&zeModuleBuildLogGetString) module_build_log_get_string;
  decltype(&zeModuleBuildLogDestroy) module_build_log_destroy;
  decltype(&zeKernelCreate) kernel_create;
  decltype(&zeKernelDestroy) kernel_destroy;
  decltype(&zeKernelSetGroupSize) kernel_set_group_size;
  decltype(&zeKernelSetArgumentValue) kernel_set_argument_value;
  decltype(&zeCommandListAppendLaunchKernel) command_list_append_launch_kernel;
  // Level Zero 1.6: gives the handle's descriptor back to the driver.
  ze_result_t (*mem_put_ipc_handle)(ze_context_handle_t context, ze_ipc_mem_handle_t handle);
};

// kNotFound: there is no loader; kUnsupported: it is too old.
StatusOr<LevelZeroApi> OpenLevelZero(std::string_view library_path);

// The specification's name of a result; in hexadecimal if it has none.
std::string ZeResultName(ze_result_t result);

// Ok, or "CALL: NAME" with kOutOfMemory, kUnsupported, kInvalidArgument or, where the result is
// none of these, kSystem. kWouldBlock for ZE_RESULT_NOT_READY.
Status ZeStatus(const char* call, ze_result_t result);

}  // namespace ferry::gpu
