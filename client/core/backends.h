// Opens the GPU backend that the options name. This is the only place in libferry that knows
// concrete backends.
#pragma once

#include <memory>

#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/registry.h"

namespace ferry::client {

// kConfiguration for a backend this build does not have, naming those it has.
StatusOr<std::unique_ptr<gpu::BackendRegistry>> OpenBackends(const config::Options& options);

}  // namespace ferry::client
