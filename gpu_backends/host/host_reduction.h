// Ferry's reducing kernels for an emulated device, run by the calling thread.
//
// Calling thread: any. Does not return before the result is there.
#pragma once

#include "gpu_backends/api/reduction.h"

namespace ferry::gpu {

// Reduces as Stream::Reduce does; the arguments have been checked, and CPUs reach the memory.
void ReduceOnHost(const Reduction& reduction);

}  // namespace ferry::gpu
