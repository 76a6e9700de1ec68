#include "daemon/worker/job_workers.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/status.h"
#include "common/thread.h"
#include "config/environment.h"
#include "config/options.h"
#include "daemon/plane/mailbox.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/job_turns.h"
#include "daemon/worker/worker_job.h"
#include "daemon/worker/worker_supervisor.h"
#include "internode/staging/staging_pool.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr int kLeaseRetryMs = 1;

constexpr uint64_t kNsPerMs = 1'000'000;

engine::EngineOptions EngineOptionsOf(const config::Options& options) {
  engine::EngineOptions engine;
  engine.chunk_bytes = static_cast<uint32_t>(options.rendezvous_chunk_bytes);
  return engine;
}

WorkerLetter StartLetter(const JobPlan& plan, const std::shared_ptr<WorkerChannel>& channel,
                         uint32_t chunk_bytes) {
  WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kStart),
                      {channel->control_fd(), channel->bell()},
                      channel};
  letter.message.capacity = channel->capacity();
  letter.message.chunk_bytes = chunk_bytes;
  letter.message.job_size = plan.size();
  letter.message.local_size = static_cast<uint32_t>(
      std::count(plan.node_of_rank.begin(), plan.node_of_rank.end(), plan.node));
  letter.message.node = plan.node;
  strncpy(letter.message.job_id, plan.job_id.c_str(), sizeof(letter.message.job_id) - 1);
  return letter;
}

// The progress worker as a thread of this process.
//
// Right where the daemon runs as the job's own user: it reaches into the ranks' private memory.
class ProgressWorker final : public WorkerClient {
 public:
  // `ring_daemon` (any thread) wakes the progress thread: a rank's lane to it has something.
  ProgressWorker(const engine::EngineOptions& options, std::function<void()> ring_daemon)
      : options_(options),
        ring_daemon_(std::move(ring_daemon)),
        thread_(MakeThread("ferry-match", [this] { Loop(); })) {}

  ~ProgressWorker() override {
    stop_.store(true, std::memory_order_relaxed);
    mailbox_->Ring();
    thread_.join();
  }

  void AddJob(const JobPlan& plan) override {
    Call([&] { jobs_[plan.job_id] = std::make_unique<Served>(plan, ring_daemon_); });
  }

  void RemoveJob(const std::string& job_id) override {
    Call([&] { jobs_.erase(job_id); });
  }

  StatusOr<WorkerSeat> AddSession(std::shared_ptr<Session> session) override {
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

  bool ImportRegion(const Session& /*session*/, std::shared_ptr<const Region> /*region*/) override {
    return false;
  }
  void RemoveSession(const std::string& job_id, uint32_t rank) override {
    Call([&] {
      if (const auto found = jobs_.find(job_id); found != jobs_.end()) {
        found->second->job.RemoveRank(rank);
      }
    });
  }

  void AddRegion(const std::string& job_id, uint32_t rank,
                 std::shared_ptr<const Region> region) override {
    Call([&] {
      if (WorkerRank* found = Find(job_id, rank); found != nullptr) {
        found->regions[region->id] = region;
      }
    });
  }

  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) override {
    Call([&] {
      if (WorkerRank* found = Find(job_id, rank); found != nullptr) {
        found->regions.erase(region);
      }
    });
  }

  int BellOf(const std::string& /*job_id*/) const override { return -1; }
  bool Idle() const override {
    bool idle = false;
    Call([&] { idle = !IsBusy() && !IsWanted(); });
    return idle;
  }

 private:
  class Flag final : public progress::Attention {
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
  struct Served {
    Served(const JobPlan& plan, const std::function<void()>& ring) : job(plan), turns(job, ring) {}
    WorkerJob job;
    JobTurns turns;
  };

  // Between two turns, so that nothing is in use while the call changes it.
  void Call(const std::function<void()>& call) const {
    std::promise<void> done;
    mailbox_->Post([&] {
      call();
      done.set_value();
    });
    done.get_future().wait();
  }

  WorkerRank* Find(const std::string& job_id, uint32_t rank) {
    const auto found = jobs_.find(job_id);
    return found == jobs_.end() ? nullptr : found->second->job.Find(rank);
  }

  void Loop() {
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

  bool IsBusy() const {
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [](const auto& entry) { return entry.second->turns.IsBusy(); });
  }

  bool IsWanted() const {
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [](const auto& entry) { return entry.second->turns.IsWanted(); });
  }

  void Sleep() {
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

  const engine::EngineOptions options_;
  const std::function<void()> ring_daemon_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();  // flags outlive the worker
  std::shared_ptr<std::atomic<bool>> sleeping_ = std::make_shared<std::atomic<bool>>(false);
  std::map<std::string, std::unique_ptr<Served>> jobs_;  // the thread's

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class JobWorkers final : public WorkerClient {
 public:
  JobWorkers(const config::Options& options, std::function<void()> ring_daemon,
             SupervisorEvents events)
      : options_(options),
        engine_(EngineOptionsOf(options)),
        thread_(engine_, std::move(ring_daemon)),
        supervisor_(options.operation_timeout_ms * kNsPerMs, std::move(events)) {}

  // The program of worker processes, opened once. kNotFound.
  StatusOr<std::shared_ptr<UniqueFd>> Program() {
    if (program_ == nullptr) {
      StatusOr<UniqueFd> opened = OpenWorkerProgram(options_.worker_program);
      FERRY_RETURN_IF_ERROR(opened.status());
      program_ = std::make_shared<UniqueFd>(std::move(*opened));
    }
    return program_;
  }

  void AddJob(const JobPlan& plan) override {
    std::lock_guard lock(mutex_);
    entries_[plan.job_id].plan = plan;
  }

  void RemoveJob(const std::string& job_id) override {
    if (const std::shared_ptr<Worker> worker = ProcessOf(job_id); worker != nullptr) {
      supervisor_.End(worker);
    } else {
      thread_.RemoveJob(job_id);
    }
    std::lock_guard lock(mutex_);
    entries_.erase(job_id);
  }

  StatusOr<WorkerSeat> AddSession(std::shared_ptr<Session> session) override {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[session->job_id];
    if (!entry.decided) {
      FERRY_RETURN_IF_ERROR(Decide(entry, *session));
    }
    if (session->uid != entry.user.uid) {
      return Status(ErrorCode::kPermissionDenied,
                    "rank " + std::to_string(session->rank) + " of job " + session->job_id +
                        " belongs to uid " + std::to_string(session->uid) +
                        ", the others on this node to uid " + std::to_string(entry.user.uid) +
                        ": run all ranks of a job as one user");
    }
    return Seat(entry, session);
  }

  bool ImportRegion(const Session& session, std::shared_ptr<const Region> region) override {
    const std::shared_ptr<Worker> worker = ProcessOf(session.job_id);
    if (worker == nullptr) {
      return false;
    }
    WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kDevice), {}, region};
    letter.message.rank = session.rank;
    letter.message.region = region->id;
    letter.message.size_bytes = region->size_bytes();
    letter.message.allocation_id = region->allocation_id;
    letter.message.device = region->device;
    std::copy(region->handle.begin(), region->handle.end(), std::begin(letter.message.handle));
    if (region->fd.valid()) {
      letter.fds = {region->fd.get()};
    }
    supervisor_.SendDevice(worker, std::move(letter));
    return true;
  }

  void RemoveSession(const std::string& job_id, uint32_t rank) override {
    const std::shared_ptr<Worker> worker = ProcessOf(job_id);
    if (worker == nullptr) {
      return thread_.RemoveSession(job_id, rank);
    }
    WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kEndSession), {}, nullptr};
    letter.message.rank = rank;
    supervisor_.Send(worker, std::move(letter));
  }

  void AddRegion(const std::string& job_id, uint32_t rank,
                 std::shared_ptr<const Region> region) override {
    const std::shared_ptr<Worker> worker = ProcessOf(job_id);
    if (worker == nullptr) {
      return thread_.AddRegion(job_id, rank, std::move(region));
    }
    if (region->by_stream) {
      return;  // ImportRegion has brought it, if it was to
    }
    const auto kind = region->lent ? WorkerMessageKind::kLent : WorkerMessageKind::kRegion;
    WorkerLetter letter{MakeWorkerMessage(kind), {region->fd.get()}, region};
    letter.message.rank = rank;
    letter.message.region = region->id;
    letter.message.size_bytes = region->size_bytes();
    supervisor_.Send(worker, std::move(letter));
  }

  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) override {
    const std::shared_ptr<Worker> worker = ProcessOf(job_id);
    if (worker == nullptr) {
      return thread_.RemoveRegion(job_id, rank, region);
    }
    WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kEndRegion), {}, nullptr};
    letter.message.rank = rank;
    letter.message.region = region;
    supervisor_.Send(worker, std::move(letter));
  }

  int BellOf(const std::string& job_id) const override {
    const std::shared_ptr<Worker> worker = ProcessOf(job_id);
    return worker == nullptr ? -1 : worker->channel->bell();
  }

  bool Idle() const override {
    if (!thread_.Idle()) {
      return false;
    }
    std::lock_guard lock(mutex_);
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      const std::shared_ptr<Worker>& worker = entry.second.worker;
      return worker == nullptr || shm::LoadRelaxed(worker->channel->control()->sleeping) != 0;
    });
  }

 private:
  struct Entry {
    JobPlan plan;
    bool decided = false;
    WorkerUser user;                 // once decided
    std::shared_ptr<Worker> worker;  // null: the thread
  };

  Status Decide(Entry& entry, const Session& session) {
    const bool own = session.uid == geteuid();
    const std::string users = "a rank of uid " + std::to_string(session.uid) +
                              " and ferryd of uid " + std::to_string(geteuid());
    if (!own && options_.worker_mode == "thread") {
      return {
          ErrorCode::kPermissionDenied,
          users + ": worker_mode is thread, which serves only ferryd's own user; set it to auto"};
    }
    if (!own && !MayBecomeOthers()) {
      return {ErrorCode::kPermissionDenied,
              users +
                  ": this ferryd cannot work as another user; run it as root (or with CAP_SETUID "
                  "and CAP_SETGID), or start one as the rank's user"};
    }
    entry.user = {session.uid, session.gid, !own};
    if (!own || options_.worker_mode == "process") {
      FERRY_RETURN_IF_ERROR(StartProcess(entry));
    } else {
      thread_.AddJob(entry.plan);
    }
    entry.decided = true;
    return {};
  }

  Status StartProcess(Entry& entry) {
    StatusOr<std::shared_ptr<UniqueFd>> program = Program();
    FERRY_RETURN_IF_ERROR(program.status());
    const uint64_t copies = options_.staging_blocks + options_.pipeline_staging_blocks +
                            2 * uint64_t{progress::StagingPool::kCells};
    StatusOr<std::shared_ptr<WorkerChannel>> channel =
        WorkerChannel::Create(entry.plan, static_cast<uint32_t>(std::bit_ceil(copies)));
    FERRY_RETURN_IF_ERROR(channel.status());
    auto worker = std::make_shared<Worker>();
    worker->job_id = entry.plan.job_id;
    worker->user = entry.user;
    worker->environment = config::GpuEnvironment(options_, config::ProcessEnvironment());
    worker->channel = *channel;
    const std::weak_ptr<Worker> weak = worker;
    worker->copier = std::make_shared<RemoteCopier>(
        *channel,
        [this, weak](progress::StagingPool& pool, uint32_t number) {
          WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kStaging), {}, pool.fd()};
          letter.message.pool = number;
          letter.message.size_bytes = pool.size_bytes();
          letter.message.chunk_bytes = static_cast<uint32_t>(pool.block_bytes());
          letter.fds = {pool.fd()->get()};
          supervisor_.Send(weak.lock(), std::move(letter));
        },
        [this, weak](const std::string& text) { supervisor_.Condemn(weak.lock(), text); });
    supervisor_.Start(worker, *program, StartLetter(entry.plan, *channel, engine_.chunk_bytes));
    entry.worker = std::move(worker);
    return {};
  }

  StatusOr<WorkerSeat> Seat(const Entry& entry, const std::shared_ptr<Session>& session) {
    if (entry.worker == nullptr) {
      return thread_.AddSession(session);
    }
    FERRY_RETURN_IF_ERROR(CheckSegments(*session, entry.plan).status());
    session->private_memory_reachable = false;
    session->reach_settled = false;
    supervisor_.SendSession(entry.worker, session);
    WorkerSeat seat;
    seat.attention = MakeRemoteAttention(entry.worker->channel, session->local_index);
    seat.copier = entry.worker->copier;
    seat.bell = entry.worker->channel->bell();
    return seat;
  }

  // The worker process of a job; null if a thread serves the job, or none does.
  std::shared_ptr<Worker> ProcessOf(const std::string& job_id) const {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(job_id);
    return found == entries_.end() ? nullptr : found->second.worker;
  }

  const config::Options options_;
  const engine::EngineOptions engine_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::shared_ptr<UniqueFd> program_;
  ProgressWorker thread_;
  WorkerSupervisor supervisor_;
};

}  // namespace

StatusOr<std::unique_ptr<WorkerClient>> CreateJobWorkers(const config::Options& options,
                                                         std::function<void()> ring_daemon,
                                                         SupervisorEvents events) {
  auto workers = std::make_unique<JobWorkers>(options, std::move(ring_daemon), std::move(events));
  if (options.worker_mode == "process") {
    FERRY_RETURN_IF_ERROR(workers->Program().status());
  }
  return std::unique_ptr<WorkerClient>(std::move(workers));
}

}  // namespace ferry::daemon
