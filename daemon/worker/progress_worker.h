// The progress worker as a thread of this process: matches and copies for ranks that compute.
//
// Whoever brings work to a rank that is not inside the library asks for it. The worker then takes
// the rank's lease (it never waits for a rank: a lease that is taken is tried again later), runs
// its engine until nothing is left, wakes whom the engine names, and copies the transfers it
// matched, or that the rank had matched before it went, chunk by chunk, beside the ranks
// themselves.
//
// Right where the daemon runs as the job's own user: it reaches into the ranks' private memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/progress/mailbox.h"
#include "daemon/worker/worker_client.h"
#include "daemon/worker/worker_job.h"
#include "engine/effects.h"

namespace ferry::daemon {

class ProgressWorker final : public WorkerClient {
 public:
  // `ring_daemon` (any thread) wakes the progress thread: a rank's lane to it has something.
  ProgressWorker(const engine::EngineOptions& options, std::function<void()> ring_daemon);
  ~ProgressWorker() override;

  void AddJob(const JobPlan& plan) override;
  void RemoveJob(const std::string& job_id) override;
  StatusOr<AttendFlagPtr> AddSession(std::shared_ptr<Session> session) override;
  void RemoveSession(const std::string& job_id, uint32_t rank) override;
  void AddRegion(const std::string& job_id, uint32_t rank,
                 std::shared_ptr<const Region> region) override;
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) override;
  void Attend(AttendFlag& flag) override;
  bool Idle() const override;

 private:
  void Call(const std::function<void()>& call) const;
  WorkerRank* Find(const std::string& job_id, uint32_t rank);

  void Loop();
  uint32_t Turn();
  uint32_t AttendRank(WorkerJob& job, WorkerRank& rank);
  void Perform(WorkerJob& job, WorkerRank& rank, const engine::Effects& effects);
  void AddCopy(WorkerRank& rank, uint32_t request);
  void FindCopies(WorkerRank& rank);
  uint32_t CopyNext(WorkerJob& job, WorkerRank& rank);
  bool IsBusy() const;
  bool IsWanted() const;
  void Sleep();

  const engine::EngineOptions options_;
  const std::function<void()> ring_daemon_;
  mutable Mailbox mailbox_;
  // The thread's.
  std::map<std::string, std::unique_ptr<WorkerJob>> jobs_;
  std::vector<std::byte> bounce_;

  std::atomic<bool> sleeping_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ferry::daemon
