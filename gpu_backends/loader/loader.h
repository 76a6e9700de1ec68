// Opens the GPU backend that the options name. The only place that names concrete backends: the
// daemon, libferry and the tools come here.
//
// Calling thread: any.
#pragma once

#include <memory>

#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

// Does not block, takes no device memory. kConfiguration for a backend that this build does not
// have, and what the backend itself says about its options.
StatusOr<std::unique_ptr<GpuBackend>> OpenBackend(const config::Options& options);

}  // namespace ferry::gpu
