// Chooses the worker of each job: the thread of the daemon for ranks of its own user, a process for
// those of others (option worker_mode).
//
// The first rank of a job decides for whom the job is served on this node; ranks of other users are
// refused.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/status.h"
#include "config/options.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/progress_worker.h"
#include "daemon/worker/worker_supervisor.h"

namespace ferry::daemon {

class JobWorkers final : public WorkerClient {
 public:
  // `ring_daemon` as for ProgressWorker. kNotFound: worker_mode is process, and there
  // is no ferry-worker.
  static StatusOr<std::unique_ptr<JobWorkers>> Create(const config::Options& options,
                                                      std::function<void()> ring_daemon,
                                                      SupervisorEvents events);

  void AddJob(const JobPlan& plan) override;
  void RemoveJob(const std::string& job_id) override;
  StatusOr<WorkerSeat> AddSession(std::shared_ptr<Session> session) override;
  bool ImportRegion(const Session& session, std::shared_ptr<const Region> region) override;
  void RemoveSession(const std::string& job_id, uint32_t rank) override;
  void AddRegion(const std::string& job_id, uint32_t rank,
                 std::shared_ptr<const Region> region) override;
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) override;
  int BellOf(const std::string& job_id) const override;
  bool Idle() const override;

 private:
  struct Entry {
    JobPlan plan;
    bool decided = false;
    WorkerUser user;                 // once decided
    std::shared_ptr<Worker> worker;  // null: the thread
  };

  JobWorkers(const config::Options& options, std::function<void()> ring_daemon,
             SupervisorEvents events);

  StatusOr<std::shared_ptr<UniqueFd>> Program();
  Status Decide(Entry& entry, const Session& session);
  Status StartProcess(Entry& entry);
  StatusOr<WorkerSeat> Seat(const Entry& entry, const std::shared_ptr<Session>& session);
  // The process of a job; null if a thread serves it, or nobody.
  std::shared_ptr<Worker> ProcessOf(const std::string& job_id) const;

  const config::Options options_;
  const engine::EngineOptions engine_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::shared_ptr<UniqueFd> program_;
  ProgressWorker thread_;
  WorkerSupervisor supervisor_;
};

}  // namespace ferry::daemon
