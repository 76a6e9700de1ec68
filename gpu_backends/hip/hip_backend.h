// AMD GPUs, by the HIP run time of ROCm 5 or later, opened at run time.
//
// HIP knows a current device and a last error for each thread. Both belong to the application, so
// each call leaves them as they were.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

struct HipBackendOptions {
  std::string library;  // a file; empty: libamdhip64 as the dynamic linker finds it
};

// kNotFound: no library, no driver or no device; kUnsupported: too old. Any thread; blocks while
// the run time starts.
StatusOr<std::unique_ptr<GpuBackend>> CreateHipBackend(const HipBackendOptions& options);
// Opens the driver on which the backend is built. `library`, errors, threads and blocking are those
// of CreateHipBackend.
StatusOr<std::unique_ptr<Driver>> OpenHipDriver(std::string_view library);

}  // namespace ferry::gpu
