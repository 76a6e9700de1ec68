// Runs the conformance suite on the CUDA backend, over stand-ins for the driver of CUDA 11, without
// kernels, and of CUDA 13, with kernels, and with words by kernels only.
#include "gpu_backends/cuda/cuda_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  return {
      {"Cuda11", [] { return CreateCudaBackend({"tests/fixtures/cuda/libcuda_11.so"}); }},
      {"Cuda13", [] { return CreateCudaBackend({"tests/fixtures/cuda/libcuda_13.so"}); }},
      {"Cuda13WithoutWords", [] {
         return WithWords(CreateCudaBackend({"tests/fixtures/cuda/libcuda_13_without_words.so"}));
       }}};
}

}  // namespace ferry::gpu
