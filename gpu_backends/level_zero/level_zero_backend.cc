#include "gpu_backends/level_zero/level_zero_backend.h"

#include <utility>

#include "gpu_backends/driver/driver_backend.h"
#include "gpu_backends/level_zero/level_zero_driver.h"

namespace ferry::gpu {

StatusOr<std::unique_ptr<GpuBackend>> CreateLevelZeroBackend(
    const LevelZeroBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenLevelZeroDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
