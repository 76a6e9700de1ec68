// The daemon's requests to the progress workers: to match and copy for ranks while they compute.
//
// Only the worker of a job touches its ranks' match tables and private memory, as the job's own
// user: a thread of the daemon where that user is the daemon's (job_workers.h), else a process
// (worker_supervisor.h); job_workers.h chooses.
//
// Calling thread: any control thread; no member waits for a worker process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "internode/delivery/attention.h"
#include "internode/staging/copier.h"

namespace ferry::daemon {

// The means by which the progress thread reaches the worker that serves a rank.
struct WorkerSeat {
  progress::AttentionPtr attention;
  std::shared_ptr<progress::Copier> copier;  // of the job; null: the daemon's own threads copy
  int bell = -1;  // eventfd that the job's worker writes and never reads; -1: it has none
};

class WorkerClient {
 public:
  virtual ~WorkerClient() = default;

  virtual void AddJob(const JobPlan& plan) = 0;
  virtual void RemoveJob(const std::string& job_id) = 0;

  // Starts to serve the rank; its engine runs once all ranks of the node are there. kCorrupt,
  // kVersionMismatch: its segments are not what they should be; kPermissionDenied: the daemon
  // cannot work for the rank's user.
  virtual StatusOr<WorkerSeat> AddSession(std::shared_ptr<Session> session) = 0;
  // Asks the job's worker process to import device memory that only streams reach; the result comes
  // by SupervisorEvents::on_import. False where the daemon itself is to import it.
  virtual bool ImportRegion(const Session& session, std::shared_ptr<const Region> region) = 0;
  // On return no thread of the daemon touches the rank's process or its regions for it, nor runs
  // its engine; a worker process may until it has read the news.
  virtual void RemoveSession(const std::string& job_id, uint32_t rank) = 0;
  virtual void AddRegion(const std::string& job_id, uint32_t rank,
                         std::shared_ptr<const Region> region) = 0;
  // Does for one region what RemoveSession does for a rank.
  virtual void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) = 0;

  // Returns the WorkerSeat::bell of the job's ranks; -1: the job has none.
  virtual int BellOf(const std::string& job_id) const = 0;
  // Returns true if no request is left undone. Any thread.
  virtual bool Idle() const = 0;
};

}  // namespace ferry::daemon
