// Runs the conformance suite with the vendors' own libraries: backends that find no device are
// skipped.
#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/hip/hip_backend.h"
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  return {{"Cuda", [] { return CreateCudaBackend({}); }},
          {"Hip", [] { return CreateHipBackend({}); }},
          {"HipOnCuda",
           [] { return CreateHipBackend({"tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so"}); }},
          {"LevelZero", [] { return CreateLevelZeroBackend({}); }}};
}

}  // namespace ferry::gpu
