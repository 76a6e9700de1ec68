#include "daemon/worker/job_workers.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "config/environment.h"
#include "daemon/staging/staging_pool.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

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

}  // namespace

StatusOr<std::unique_ptr<JobWorkers>> JobWorkers::Create(const config::Options& options,
                                                         std::function<void()> ring_daemon,
                                                         SupervisorEvents events) {
  std::unique_ptr<JobWorkers> workers(
      new JobWorkers(options, std::move(ring_daemon), std::move(events)));
  if (options.worker_mode == "process") {
    FERRY_RETURN_IF_ERROR(workers->Program().status());
  }
  return workers;
}

JobWorkers::JobWorkers(const config::Options& options, std::function<void()> ring_daemon,
                       SupervisorEvents events)
    : options_(options),
      engine_(EngineOptionsOf(options)),
      thread_(engine_, std::move(ring_daemon)),
      supervisor_(options.operation_timeout_ms * kNsPerMs, std::move(events)) {}

// ---- Choosing ----------------------------------------------------------------------------------

StatusOr<std::shared_ptr<UniqueFd>> JobWorkers::Program() {
  if (program_ == nullptr) {
    StatusOr<UniqueFd> opened = OpenWorkerProgram(options_.worker_program);
    FERRY_RETURN_IF_ERROR(opened.status());
    program_ = std::make_shared<UniqueFd>(std::move(*opened));
  }
  return program_;
}

Status JobWorkers::Decide(Entry& entry, const Session& session) {
  const bool own = session.uid == geteuid();
  const std::string users = "a rank of uid " + std::to_string(session.uid) + " and ferryd of uid " +
                            std::to_string(geteuid());
  if (!own && options_.worker_mode == "thread") {
    return {ErrorCode::kPermissionDenied,
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

Status JobWorkers::StartProcess(Entry& entry) {
  StatusOr<std::shared_ptr<UniqueFd>> program = Program();
  FERRY_RETURN_IF_ERROR(program.status());
  const uint64_t copies = options_.staging_blocks + options_.pipeline_staging_blocks +
                          2 * uint64_t{StagingPool::kCells};
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
      [this, weak](StagingPool& pool, uint32_t number) {
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

// ---- WorkerClient ------------------------------------------------------------------------------

std::shared_ptr<Worker> JobWorkers::ProcessOf(const std::string& job_id) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(job_id);
  return found == entries_.end() ? nullptr : found->second.worker;
}

void JobWorkers::AddJob(const JobPlan& plan) {
  std::lock_guard lock(mutex_);
  entries_[plan.job_id].plan = plan;
}

void JobWorkers::RemoveJob(const std::string& job_id) {
  if (const std::shared_ptr<Worker> worker = ProcessOf(job_id); worker != nullptr) {
    supervisor_.End(worker);
  } else {
    thread_.RemoveJob(job_id);
  }
  std::lock_guard lock(mutex_);
  entries_.erase(job_id);
}

StatusOr<WorkerSeat> JobWorkers::AddSession(std::shared_ptr<Session> session) {
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

StatusOr<WorkerSeat> JobWorkers::Seat(const Entry& entry, const std::shared_ptr<Session>& session) {
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

bool JobWorkers::ImportRegion(const Session& session, std::shared_ptr<const Region> region) {
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

void JobWorkers::RemoveSession(const std::string& job_id, uint32_t rank) {
  const std::shared_ptr<Worker> worker = ProcessOf(job_id);
  if (worker == nullptr) {
    return thread_.RemoveSession(job_id, rank);
  }
  WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kEndSession), {}, nullptr};
  letter.message.rank = rank;
  supervisor_.Send(worker, std::move(letter));
}

void JobWorkers::AddRegion(const std::string& job_id, uint32_t rank,
                           std::shared_ptr<const Region> region) {
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

void JobWorkers::RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) {
  const std::shared_ptr<Worker> worker = ProcessOf(job_id);
  if (worker == nullptr) {
    return thread_.RemoveRegion(job_id, rank, region);
  }
  WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kEndRegion), {}, nullptr};
  letter.message.rank = rank;
  letter.message.region = region;
  supervisor_.Send(worker, std::move(letter));
}

int JobWorkers::BellOf(const std::string& job_id) const {
  const std::shared_ptr<Worker> worker = ProcessOf(job_id);
  return worker == nullptr ? -1 : worker->channel->bell();
}

bool JobWorkers::Idle() const {
  if (!thread_.Idle()) {
    return false;
  }
  std::lock_guard lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    const std::shared_ptr<Worker>& worker = entry.second.worker;
    return worker == nullptr || shm::LoadRelaxed(worker->channel->control()->sleeping) != 0;
  });
}

}  // namespace ferry::daemon
