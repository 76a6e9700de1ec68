// Measures the time that a call of the backend interface takes of its thread.
#pragma once

#include "benchmarks/gpu/bare_gpu.h"

namespace ferry::bench {

// Prints a line "call|NAME|VENDOR'S CALL|FERRY_NS|BARE_NS" for each, medians of batches; "-" where
// there is no such call. Work is enqueued on streams that wait, where they can. `imported` is an
// allocation of another process. `bare` may be null.
void MeasureCalls(gpu::GpuBackend& backend, BareGpu* bare, const gpu::IpcHandle& imported,
                  int repetitions);

}  // namespace ferry::bench
