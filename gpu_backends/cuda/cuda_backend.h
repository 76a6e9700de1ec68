// CreateCudaBackend: NVIDIA GPUs, by the driver of CUDA 11 or later, opened at run time. Memory,
// streams and events belong to each device's primary context, which CUDA's run time uses too.
//
// The backend does not set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: the attribute makes the application's
// synchronous copies wait for the device, and is meant for memory that a NIC reads behind CUDA's
// back. Here device memory is out of NICs' direct reach, and Ferry's own copies are all
// asynchronous and waited for by events.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

struct CudaBackendOptions {
  std::string library;  // a file; empty: libcuda as the dynamic linker finds it
};

// Opens the driver. Makes no context: a device's context is made when the device is first used. Any
// thread; blocks while the driver starts. kNotFound: no library, no driver or no device;
// kUnsupported: too old.
StatusOr<std::unique_ptr<GpuBackend>> CreateCudaBackend(const CudaBackendOptions& options);
// Opens the driver on which the backend is built. `library`, errors, threads and blocking as of
// CreateCudaBackend.
StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(std::string_view library);

}  // namespace ferry::gpu
