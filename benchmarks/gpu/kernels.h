// Measures how fast Ferry's own kernels move bytes, compared with the copy engine.
#pragma once

#include "gpu_backends/api/backend.h"

namespace ferry::bench {

// Prints medians of the times waited, in microseconds:
//   "store WHERE SIZE KERNEL_US ENGINE_US": a put by loads and stores of one kernel, and by
//     CopyAsync, within the device ("device") and to pinned memory of the host ("pinned");
//   "pack BLOCK_BYTES COUNT KERNEL_US COPIES_US": blocks one every two of their size, packed by one
//     kernel, and by a CopyAsync each.
// Prints nothing where the device runs no kernels.
void MeasureKernels(gpu::GpuBackend& backend, int repetitions);

}  // namespace ferry::bench
