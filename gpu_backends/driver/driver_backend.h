// The GpuBackend of a vendor: the part that all vendors share, over the calls of its Driver.
#pragma once

#include <memory>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// Takes the driver, and asks it about its devices. Fails with its error if it cannot describe one.
// Any thread; does not block.
StatusOr<std::unique_ptr<GpuBackend>> CreateDriverBackend(std::unique_ptr<Driver> driver);

}  // namespace ferry::gpu
