#include "daemon/worker/progress_worker.h"

#include <poll.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr int kLeaseRetryMs = 1;

}  // namespace

class ProgressWorker::Flag final : public Attention {
 public:
  Flag(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<std::atomic<bool>> sleeping)
      : mailbox_(std::move(mailbox)), sleeping_(std::move(sleeping)) {}

  void Raise() override {
    // Pairs with Sleep: either it sees the flag, or we see that it sleeps.
    if (shm::Exchange(wanted_, 1U, std::memory_order_seq_cst) == 0 &&
        sleeping_->load(std::memory_order_seq_cst)) {
      mailbox_->Ring();
    }
  }
  uint32_t* word() { return &wanted_; }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const std::shared_ptr<std::atomic<bool>> sleeping_;
  uint32_t wanted_ = 0;
};

ProgressWorker::ProgressWorker(const engine::EngineOptions& options,
                               std::function<void()> ring_daemon)
    : options_(options), ring_daemon_(std::move(ring_daemon)), thread_([this] { Loop(); }) {}

ProgressWorker::~ProgressWorker() {
  stop_.store(true, std::memory_order_relaxed);
  mailbox_->Ring();
  thread_.join();
}

// ---- Control -----------------------------------------------------------------------------------

// Between two turns, so that nothing is in use while the call changes it.
void ProgressWorker::Call(const std::function<void()>& call) const {
  std::promise<void> done;
  mailbox_->Post([&] {
    call();
    done.set_value();
  });
  done.get_future().wait();
}

WorkerRank* ProgressWorker::Find(const std::string& job_id, uint32_t rank) {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second->job.Find(rank);
}

void ProgressWorker::AddJob(const JobPlan& plan) {
  Call([&] { jobs_[plan.job_id] = std::make_unique<Served>(plan, ring_daemon_); });
}

void ProgressWorker::RemoveJob(const std::string& job_id) {
  Call([&] { jobs_.erase(job_id); });
}

StatusOr<WorkerSeat> ProgressWorker::AddSession(std::shared_ptr<Session> session) {
  auto flag = std::make_shared<Flag>(mailbox_, sleeping_);
  Status status;
  Call([&] {
    WorkerJob& job = jobs_.at(session->job_id)->job;
    std::shared_ptr<uint32_t> wanted(flag, flag->word());
    status = job.AddRank(std::move(session), std::move(wanted), options_);
  });
  FERRY_RETURN_IF_ERROR(status);
  WorkerSeat seat;
  seat.attention = std::move(flag);
  return seat;
}

void ProgressWorker::RemoveSession(const std::string& job_id, uint32_t rank) {
  Call([&] {
    if (const auto found = jobs_.find(job_id); found != jobs_.end()) {
      found->second->job.RemoveRank(rank);
    }
  });
}

void ProgressWorker::AddRegion(const std::string& job_id, uint32_t rank,
                               std::shared_ptr<const Region> region) {
  Call([&] {
    if (WorkerRank* found = Find(job_id, rank); found != nullptr) {
      found->regions[region->id] = region;
    }
  });
}

void ProgressWorker::RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) {
  Call([&] {
    if (WorkerRank* found = Find(job_id, rank); found != nullptr) {
      found->regions.erase(region);
    }
  });
}

bool ProgressWorker::Idle() const {
  bool idle = false;
  Call([&] { idle = !IsBusy() && !IsWanted(); });
  return idle;
}

// ---- The thread --------------------------------------------------------------------------------

void ProgressWorker::Loop() {
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t done = mailbox_->Open();
    for (const auto& [id, served] : jobs_) {
      done += served->turns.Turn();
    }
    if (done == 0) {
      Sleep();
    }
  }
}

bool ProgressWorker::IsBusy() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return entry.second->turns.IsBusy(); });
}

bool ProgressWorker::IsWanted() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return entry.second->turns.IsWanted(); });
}

void ProgressWorker::Sleep() {
  sleeping_->store(true, std::memory_order_seq_cst);
  if (!IsWanted()) {  // Pairs with Flag::Raise.
    // Busy here means: a rank holds its lease and is not running.
    pollfd bell{mailbox_->fd(), POLLIN, 0};
    if (poll(&bell, 1, IsBusy() ? kLeaseRetryMs : -1) > 0) {
      mailbox_->Silence();
    }
  }
  sleeping_->store(false, std::memory_order_relaxed);
}

}  // namespace ferry::daemon
