#include "benchmarks/gpu/bare_gpu.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace ferry::bench {

StatusOr<std::unique_ptr<BareGpu>> OpenBareGpu(std::string_view backend,
                                               const config::Options& options) {
  if (backend == "cuda") {
    return OpenBareCuda(options);
  }
  if (backend == "hip") {
    return OpenBareHip(options);
  }
  if (backend == "level_zero") {
    return OpenBareLevelZero(options);
  }
  return OpenBareHost(options);
}

void CheckStatus(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "gpu: %s\n", status.ToString().c_str());
    std::exit(1);
  }
}

void FailCall(const char* call, int64_t error) {
  std::fprintf(stderr, "gpu: %s failed with error %" PRId64 "\n", call, error);
  std::exit(1);
}

}  // namespace ferry::bench
