// Runs the conformance suite on the HIP backend, over stand-ins for its library as of ROCm 5,
// without kernels, of ROCm 6, with kernels, and with words by kernels only; and over HIP on the
// CUDA driver, which BUILD has the stand-in for.
#include "gpu_backends/hip/hip_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  return {
      {"HipRocm5", [] { return CreateHipBackend({"tests/fixtures/hip/libamdhip64_5.so"}); }},
      {"HipRocm6", [] { return CreateHipBackend({"tests/fixtures/hip/libamdhip64_6.so"}); }},
      {"HipRocm6WithoutWords",
       [] {
         return WithWords(CreateHipBackend({"tests/fixtures/hip/libamdhip64_6_without_words.so"}));
       }},
      {"HipOnCuda",
       [] { return CreateHipBackend({"tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so"}); }}};
}

}  // namespace ferry::gpu
