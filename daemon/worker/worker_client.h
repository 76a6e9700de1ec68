// What the daemon asks of the progress worker: to match and copy for ranks while they compute.
//
// Only the worker touches a rank's match table and private memory, so that it can run under the
// job's own uid. Today it is a thread of the daemon (progress_worker.h).
//
// Calling thread: any control thread, unless noted; members block until done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/progress/data_plane.h"
#include "daemon/session/session.h"
#include "daemon/worker/attend_flag.h"

namespace ferry::daemon {

class WorkerClient {
 public:
  virtual ~WorkerClient() = default;

  virtual void AddJob(const JobPlan& plan) = 0;
  virtual void RemoveJob(const std::string& job_id) = 0;

  // Starts to serve the rank; its engine runs once all ranks of the node are there. The flag is
  // for Attend. kCorrupt, kVersionMismatch: its segments are not what they should be.
  virtual StatusOr<AttendFlagPtr> AddSession(std::shared_ptr<Session> session) = 0;
  // On return the worker touches neither the rank's process nor its regions, nor runs its engine.
  virtual void RemoveSession(const std::string& job_id, uint32_t rank) = 0;
  virtual void AddRegion(const std::string& job_id, uint32_t rank,
                         std::shared_ptr<const Region> region) = 0;
  // On return the worker does not touch the region.
  virtual void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) = 0;

  // Asks to look after the rank. Any thread; never blocks for long.
  virtual void Attend(AttendFlag& flag) = 0;
  // Nothing asked for is left undone. Any thread.
  virtual bool Idle() const = 0;
};

}  // namespace ferry::daemon
