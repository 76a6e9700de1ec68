// Measures copies between host and device memory of a GPU backend.
//
// One thread; it blocks. Takes three buffers of the largest size, and gives them back.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "tools/tune/curve.h"

namespace ferry::tools {

struct CopyCurves {
  Curve to_host;  // from the device to pinned host memory
  Curve to_device;
  Curve pageable_to_host;  // with ordinary host memory
  Curve pageable_to_device;
};

// Medians of `repetitions` (1 or more) copies of each size (not 0). kInvalidArgument for a device
// that the backend does not have; else the backend's error.
StatusOr<CopyCurves> MeasureCopies(gpu::GpuBackend& backend, int device,
                                   std::span<const uint64_t> sizes, uint32_t repetitions);

}  // namespace ferry::tools
