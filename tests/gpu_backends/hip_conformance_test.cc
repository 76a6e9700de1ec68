// Runs the conformance suite on the HIP backend, over stand-ins for its library as of ROCm 5,
// without kernels, of ROCm 6, with kernels, and with words by kernels only; and over HIP on the
// CUDA driver, which BUILD has the stand-in for.
#include "gpu_backends/device/kernel_images.h"
#include "gpu_backends/hip/hip_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

namespace {

// With code for AMD's devices. That there is none but NVIDIA's shows only when the first is loaded.
StatusOr<std::unique_ptr<GpuBackend>> WithKernels(const char* library) {
  if (const std::string_view missing = WhyNoKernelImages(ImageFormat::kAmdgcn); !missing.empty()) {
    return Status(ErrorCode::kUnsupported, "no words: made without " + std::string(missing));
  }
  return WithWords(CreateHipBackend({library}));
}

}  // namespace

std::vector<ConformanceBackend> ConformanceBackends() {
  return {{"HipRocm5", [] { return CreateHipBackend({"tests/fixtures/hip/libamdhip64_5.so"}); }},
          {"HipRocm6", [] { return CreateHipBackend({"tests/fixtures/hip/libamdhip64_6.so"}); }},
          {"HipRocm6WithoutWords",
           [] { return WithKernels("tests/fixtures/hip/libamdhip64_6_without_words.so"); }},
          {"HipOnCuda",
           [] { return CreateHipBackend({"tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so"}); }}};
}

}  // namespace ferry::gpu
