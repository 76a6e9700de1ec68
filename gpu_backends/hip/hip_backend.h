// AMD GPUs, by the HIP run time of ROCm 5 or later, opened at run time.
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

struct HipBackendOptions {
  std::string library;  // a file; empty: libamdhip64 as the dynamic linker finds it
};

// kNotFound: no library, no driver or no device; kUnsupported: too old. Any thread; blocks while
// the run time starts.
StatusOr<std::unique_ptr<GpuBackend>> CreateHipBackend(const HipBackendOptions& options);

}  // namespace ferry::gpu
