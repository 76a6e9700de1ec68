// Runs the conformance suite on the Level Zero backend, over the loader of the distribution and the
// driver that ZE_ENABLE_ALT_DRIVERS names: the one in tests/fixtures/level_zero.
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  return {{"LevelZero", [] { return CreateLevelZeroBackend({}); }}};
}

}  // namespace ferry::gpu
