// NVIDIA GPUs, by the CUDA driver of CUDA 11 or later, opened at run time. Memory, streams and
// events are those of each device's primary context, which CUDA's run time uses too.
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

struct CudaBackendOptions {
  std::string library;  // a file; empty: libcuda as the dynamic linker finds it
};

// kNotFound: no library, no driver or no device; kUnsupported: too old. Any thread; blocks while
// the driver starts, and makes no context; a context is made when its device is first used.
StatusOr<std::unique_ptr<GpuBackend>> CreateCudaBackend(const CudaBackendOptions& options);

}  // namespace ferry::gpu
