// NVIDIA GPUs, by the CUDA driver of CUDA 11 or later, opened at run time. Memory, streams and
// events are those of each device's primary context, which CUDA's run time uses too.
//
// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is left alone: it makes the synchronous copies of others wait
// for the device, and is meant for memory that a NIC reads behind CUDA's back. Here device memory
// is out of NICs' direct reach, and Ferry's own copies are all asynchronous and waited for by
// events.
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

// kNotFound: no library, no driver or no device; kUnsupported: too old. Any thread; blocks while
// the driver starts, and makes no context; a context is made when its device is first used.
StatusOr<std::unique_ptr<GpuBackend>> CreateCudaBackend(const CudaBackendOptions& options);
// What the backend stands on. `library`, errors, threads and blocking as of CreateCudaBackend.
StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(std::string_view library);

}  // namespace ferry::gpu
