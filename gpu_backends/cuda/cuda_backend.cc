#include "gpu_backends/cuda/cuda_backend.h"

#include <utility>

#include "gpu_backends/cuda/cuda_driver.h"
#include "gpu_backends/driver/driver_backend.h"

namespace ferry::gpu {

StatusOr<std::unique_ptr<GpuBackend>> CreateCudaBackend(const CudaBackendOptions& options) {
  StatusOr<std::unique_ptr<Driver>> driver = OpenCudaDriver(options.library);
  FERRY_RETURN_IF_ERROR(driver.status());
  return CreateDriverBackend(std::move(*driver));
}

}  // namespace ferry::gpu
