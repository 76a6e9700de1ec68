// Chooses the worker of each job: the daemon's thread for ranks of its own user, a process for
// ranks of other users (option worker_mode).
//
// The first rank of a job decides for which user the job is served on this node; ranks of other
// users are refused.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "config/options.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/worker_supervisor.h"

namespace ferry::daemon {

// `ring_daemon` (any thread) wakes the progress thread when a rank's lane to it has descriptors.
// kNotFound: worker_mode is process, and there is no ferry-worker.
StatusOr<std::unique_ptr<WorkerClient>> CreateJobWorkers(const config::Options& options,
                                                         std::function<void()> ring_daemon,
                                                         SupervisorEvents events);

}  // namespace ferry::daemon
