// Copies between a device and each kind of memory.
#pragma once

#include "benchmarks/gpu/bare_gpu.h"

namespace ferry::bench {

// Prints a line "copy DIRECTION MEMORY SIZE FERRY_US BARE_US FERRY_MB_PER_S BARE_MB_PER_S" for each
// case, medians: the time of one copy that is waited for, and the bandwidth of a window of them.
// `bare` may be null; its figures are then "-".
void MeasureCopies(gpu::GpuBackend& backend, BareGpu* bare, int repetitions);

}  // namespace ferry::bench
