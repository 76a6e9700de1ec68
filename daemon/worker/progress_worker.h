// The progress worker as a thread of this process.
//
// Right where the daemon runs as the job's own user: it reaches into the ranks' private memory.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "daemon/plane/mailbox.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/job_turns.h"
#include "daemon/worker/worker_job.h"

namespace ferry::daemon {

class ProgressWorker final : public WorkerClient {
 public:
  // `ring_daemon` (any thread) wakes the progress thread: a rank's lane to it has something.
  ProgressWorker(const engine::EngineOptions& options, std::function<void()> ring_daemon);
  ~ProgressWorker() override;

  void AddJob(const JobPlan& plan) override;
  void RemoveJob(const std::string& job_id) override;
  StatusOr<WorkerSeat> AddSession(std::shared_ptr<Session> session) override;
  bool ImportRegion(const Session& /*session*/, std::shared_ptr<const Region> /*region*/) override {
    return false;
  }
  void RemoveSession(const std::string& job_id, uint32_t rank) override;
  void AddRegion(const std::string& job_id, uint32_t rank,
                 std::shared_ptr<const Region> region) override;
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) override;
  int BellOf(const std::string& /*job_id*/) const override { return -1; }
  bool Idle() const override;

 private:
  class Flag;
  struct Served {
    Served(const JobPlan& plan, const std::function<void()>& ring) : job(plan), turns(job, ring) {}
    WorkerJob job;
    JobTurns turns;
  };

  void Call(const std::function<void()>& call) const;
  WorkerRank* Find(const std::string& job_id, uint32_t rank);
  void Loop();
  bool IsBusy() const;
  bool IsWanted() const;
  void Sleep();

  const engine::EngineOptions options_;
  const std::function<void()> ring_daemon_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();  // flags outlive the worker
  std::shared_ptr<std::atomic<bool>> sleeping_ = std::make_shared<std::atomic<bool>>(false);
  std::map<std::string, std::unique_ptr<Served>> jobs_;  // the thread's

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ferry::daemon
