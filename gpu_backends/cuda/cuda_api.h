// The functions of NVIDIA's CUDA driver, found in its library at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/cuda/cuda_abi.h"

namespace ferry::gpu {

// Each member is the function cu... of that name, in the variant that the table in cuda_api.cc
// names. Optional functions that the library lacks are null.
struct CudaApi {
  CudaError (*init)(unsigned flags);
  CudaError (*driver_get_version)(int* version);
  CudaError (*get_error_name)(CudaError error, const char** name);
  CudaError (*device_get_count)(int* count);
  CudaError (*device_get)(CudaDevice* device, int ordinal);
  CudaError (*device_get_name)(char* name, int length, CudaDevice device);
  CudaError (*device_total_mem)(size_t* bytes, CudaDevice device);
  CudaError (*device_get_attribute)(int* value, int attribute, CudaDevice device);
  CudaError (*device_get_pci_bus_id)(char* address, int length, CudaDevice device);
  CudaError (*primary_ctx_retain)(CudaContext* context, CudaDevice device);
  CudaError (*primary_ctx_release)(CudaDevice device);
  CudaError (*primary_ctx_get_state)(CudaDevice device, unsigned* flags, int* active);
  CudaError (*ctx_push_current)(CudaContext context);
  CudaError (*ctx_pop_current)(CudaContext* context);

  CudaError (*mem_get_info)(size_t* free_bytes, size_t* total_bytes);
  CudaError (*mem_alloc)(CudaDevicePtr* pointer, size_t bytes);
  CudaError (*mem_free)(CudaDevicePtr pointer);
  CudaError (*mem_host_alloc)(void** pointer, size_t bytes, unsigned flags);
  CudaError (*mem_free_host)(void* pointer);
  CudaError (*mem_alloc_managed)(CudaDevicePtr* pointer, size_t bytes, unsigned flags);
  CudaError (*pointer_get_attributes)(unsigned count, int* attributes, void** data,
                                      CudaDevicePtr pointer);
  CudaError (*ipc_get_mem_handle)(CudaIpcMemHandle* handle, CudaDevicePtr pointer);
  CudaError (*ipc_open_mem_handle)(CudaDevicePtr* pointer, CudaIpcMemHandle handle, unsigned flags);
  CudaError (*ipc_close_mem_handle)(CudaDevicePtr pointer);
  CudaError (*device_can_access_peer)(int* can, CudaDevice device, CudaDevice peer);
  CudaError (*ctx_enable_peer_access)(CudaContext peer, unsigned flags);
  CudaError (*mem_host_register)(void* pointer, size_t bytes, unsigned flags);
  CudaError (*mem_host_unregister)(void* pointer);

  CudaError (*stream_create)(CudaStream* stream, unsigned flags);
  CudaError (*stream_destroy)(CudaStream stream);
  CudaError (*stream_query)(CudaStream stream);
  CudaError (*stream_get_ctx)(CudaStream stream, CudaContext* context);
  CudaError (*memcpy_async)(CudaDevicePtr destination, CudaDevicePtr source, size_t bytes,
                            CudaStream stream);
  CudaError (*event_create)(CudaEvent* event, unsigned flags);
  CudaError (*event_destroy)(CudaEvent event);
  CudaError (*event_record)(CudaEvent event, CudaStream stream);
  CudaError (*event_query)(CudaEvent event);
  CudaError (*stream_wait_event)(CudaStream stream, CudaEvent event, unsigned flags);
  CudaError (*launch_host_func)(CudaStream stream, CudaHostFunction function, void* user_data);

  // Optional.
  CudaError (*stream_write_value64)(CudaStream stream, CudaDevicePtr word, uint64_t value,
                                    unsigned flags);
  CudaError (*stream_wait_value64)(CudaStream stream, CudaDevicePtr word, uint64_t value,
                                   unsigned flags);
  CudaError (*mem_get_handle_for_address_range)(void* handle, CudaDevicePtr pointer, size_t bytes,
                                                int type, unsigned long long flags);
  CudaError (*module_load_data_ex)(CudaModule* module, const void* image, unsigned option_count,
                                   int* options, void** values);
  CudaError (*module_unload)(CudaModule module);
  CudaError (*module_get_function)(CudaFunction* function, CudaModule module, const char* name);
  CudaError (*launch_kernel)(CudaFunction function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CudaStream stream, void** arguments,
                             void** extra);

  // The status for the error that `call` returned (driver.h lists the codes).
  Status Check(const char* call, CudaError error) const;
};

// Opens `path` or, if that is empty, the library that the dynamic linker finds. kNotFound: not
// installed. kUnsupported: functions are missing.
StatusOr<CudaApi> OpenCudaApi(std::string_view path);

}  // namespace ferry::gpu
