// Ferry's kernels that reduce, as an emulated device runs them: by the calling thread.
//
// Calling thread: any. Does not return before the result is there.
#pragma once

#include "gpu_backends/api/reduction.h"

namespace ferry::gpu {

// As Stream::Reduce; the arguments have been checked, and CPUs reach the memory.
void ReduceOnHost(const Reduction& reduction);

}  // namespace ferry::gpu
