// The program ferry-worker: the progress worker of one job, as the job's user.
//
// It trusts ferryd's messages. That endangers nothing: the program can do only what its user can
// do. It ends when ferryd hangs up.
//
// Main thread only; the program has no others but those of GPU backends and their drivers.
#pragma once

#include <memory>

#include "common/status.h"
#include "gpu_backends/api/gpu_source.h"

namespace ferry::daemon {

// Serves the job until ferryd hangs up (ok), or a failure ends the worker for good. `socket`: the
// end that ferryd gave this process. `gpus`: for device memory.
Status RunWorkerProgram(int socket, std::shared_ptr<gpu::GpuSource> gpus);

}  // namespace ferry::daemon
