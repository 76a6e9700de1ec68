// The GpuBackend of a vendor: what all of them share, over the calls of its Driver.
#pragma once

#include <memory>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// Takes the driver. Any thread; does not block.
std::unique_ptr<GpuBackend> CreateDriverBackend(std::unique_ptr<Driver> driver);

}  // namespace ferry::gpu
