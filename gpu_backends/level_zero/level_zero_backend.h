// The Level Zero backend: Intel's GPUs, through libze_loader, which is opened at run time.
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

struct LevelZeroBackendOptions {
  std::string library;  // path of the loader; empty: as the dynamic linker finds libze_loader.so.1
};

// kNotFound: no loader, no driver or no GPU; kUnsupported: a loader or a driver of the wrong
// version; or the error of a driver that fails to start. Any thread; may block while drivers start.
StatusOr<std::unique_ptr<GpuBackend>> CreateLevelZeroBackend(
    const LevelZeroBackendOptions& options);

}  // namespace ferry::gpu
