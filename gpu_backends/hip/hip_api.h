// The functions of AMD's HIP run time, found in its library at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/hip/hip_abi.h"

namespace ferry::gpu {

// Each member is the function hip... of that name. Optional functions that the library lacks are
// null.
struct HipApi {
  HipError (*runtime_get_version)(int* version);
  HipError (*get_device_count)(int* count);
  HipError (*get_device)(int* device);
  HipError (*set_device)(int device);
  HipError (*device_get_name)(char* name, int length, int device);
  HipError (*device_total_mem)(size_t* bytes, int device);
  HipError (*device_get_pci_bus_id)(char* address, int length, int device);
  HipError (*device_get_attribute)(int* value, int attribute, int device);
  HipError (*mem_get_info)(size_t* free_bytes, size_t* total_bytes);
  const char* (*get_error_name)(HipError error);
  HipError (*get_last_error)();
  HipError (*peek_at_last_error)();

  HipError (*malloc)(void** pointer, size_t bytes);
  HipError (*free)(void* pointer);
  HipError (*host_malloc)(void** pointer, size_t bytes, unsigned flags);
  HipError (*host_free)(void* pointer);
  HipError (*malloc_managed)(void** pointer, size_t bytes, unsigned flags);
  HipError (*pointer_get_attributes)(HipPointerAttributes* attributes, const void* pointer);
  HipError (*mem_get_address_range)(void** base, size_t* bytes, void* pointer);
  HipError (*ipc_get_mem_handle)(HipIpcMemHandle* handle, void* pointer);
  HipError (*ipc_open_mem_handle)(void** pointer, HipIpcMemHandle handle, unsigned flags);
  HipError (*ipc_close_mem_handle)(void* pointer);
  HipError (*device_can_access_peer)(int* can, int device, int peer);
  HipError (*device_enable_peer_access)(int peer, unsigned flags);
  HipError (*host_register)(void* pointer, size_t bytes, unsigned flags);
  HipError (*host_unregister)(void* pointer);
  HipError (*host_get_device_pointer)(void** device_pointer, void* pointer, unsigned flags);

  HipError (*stream_create_with_flags)(HipStream* stream, unsigned flags);
  HipError (*stream_destroy)(HipStream stream);
  HipError (*stream_query)(HipStream stream);
  HipError (*stream_get_flags)(HipStream stream, unsigned* flags);
  HipError (*memcpy_async)(void* destination, const void* source, size_t bytes, int kind,
                           HipStream stream);
  HipError (*event_create_with_flags)(HipEvent* event, unsigned flags);
  HipError (*event_destroy)(HipEvent event);
  HipError (*event_record)(HipEvent event, HipStream stream);
  HipError (*event_query)(HipEvent event);
  HipError (*stream_wait_event)(HipStream stream, HipEvent event, unsigned flags);
  HipError (*stream_add_callback)(HipStream stream, HipStreamCallback callback, void* user_data,
                                  unsigned flags);

  // Optional.
  HipError (*stream_write_value64)(HipStream stream, void* word, uint64_t value, unsigned flags);
  HipError (*stream_wait_value64)(HipStream stream, void* word, uint64_t value, unsigned flags,
                                  uint64_t mask);
  HipError (*launch_host_func)(HipStream stream, HipHostFunction function, void* user_data);
  HipError (*stream_get_device)(HipStream stream, int* device);
  HipError (*pointer_get_attribute)(void* data, int attribute, void* pointer);
  HipError (*mem_get_access)(unsigned long long* flags, const HipMemLocation* location,
                             void* pointer);
  HipError (*mem_get_handle_for_address_range)(void* handle, void* pointer, size_t bytes, int type,
                                               unsigned long long flags);
  // hsa_amd_portable_export_dmabuf, from the library under HIP; returns an hsa_status_t, 0 for
  // success.
  int (*hsa_export_dmabuf)(const void* pointer, size_t bytes, int* fd, uint64_t* offset);
  HipError (*module_load_data)(HipModule* module, const void* image);
  HipError (*module_unload)(HipModule module);
  HipError (*module_get_function)(HipFunction* function, HipModule module, const char* name);
  HipError (*module_launch_kernel)(HipFunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, HipStream stream,
                                   void** arguments, void** extra);

  // Returns the status for the result of `call` (driver.h lists the codes).
  Status Check(const char* call, HipError error) const;
};

// Opens `path` or, if that is empty, the library that the dynamic linker finds. kNotFound: not
// installed. kUnsupported: functions are missing.
StatusOr<HipApi> OpenHipApi(std::string_view path);

}  // namespace ferry::gpu
