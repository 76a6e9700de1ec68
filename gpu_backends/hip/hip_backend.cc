#include "gpu_backends/hip/hip_backend.h"

#include <utility>

#include "gpu_backends/driver/driver_backend.h"
#include "gpu_backends/hip/hip_driver.h"

namespace ferry::gpu {

StatusOr<std::unique_ptr<GpuBackend>> CreateHipBackend(const HipBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenHipDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
