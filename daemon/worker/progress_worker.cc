#include "daemon/worker/progress_worker.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr size_t kBounceBytes = 128 * 1024;
constexpr uint32_t kYieldsForLease = 32;  // then the worker sleeps between attempts
constexpr int kLeaseRetryMs = 1;

}  // namespace

ProgressWorker::ProgressWorker(const engine::EngineOptions& options,
                               std::function<void()> ring_daemon)
    : options_(options),
      ring_daemon_(std::move(ring_daemon)),
      bounce_(kBounceBytes),
      thread_([this] { Loop(); }) {}

ProgressWorker::~ProgressWorker() {
  stop_.store(true, std::memory_order_relaxed);
  mailbox_.Ring();
  thread_.join();
}

// ---- Control
// -------------------------------------------------------------------------------------

// Between two turns, so that nothing is in use while the call changes it.
void ProgressWorker::Call(const std::function<void()>& call) const {
  std::promise<void> done;
  mailbox_.Post([&] {
    call();
    done.set_value();
  });
  done.get_future().wait();
}

WorkerRank* ProgressWorker::Find(const std::string& job_id, uint32_t rank) {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second->Find(rank);
}

void ProgressWorker::AddJob(const JobPlan& plan) {
  Call([&] { jobs_[plan.job_id] = std::make_unique<WorkerJob>(plan); });
}

void ProgressWorker::RemoveJob(const std::string& job_id) {
  Call([&] { jobs_.erase(job_id); });
}

StatusOr<AttendFlagPtr> ProgressWorker::AddSession(std::shared_ptr<Session> session) {
  std::optional<StatusOr<AttendFlagPtr>> flag;
  Call([&] { flag.emplace(jobs_.at(session->job_id)->AddRank(std::move(session), options_)); });
  return std::move(*flag);
}

void ProgressWorker::RemoveSession(const std::string& job_id, uint32_t rank) {
  Call([&] {
    if (const auto found = jobs_.find(job_id); found != jobs_.end()) {
      found->second->RemoveRank(rank);
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

void ProgressWorker::Attend(AttendFlag& flag) {
  // Pairs with Sleep: either it sees the flag, or we see that it sleeps.
  if (!flag.wanted.exchange(true, std::memory_order_seq_cst) &&
      sleeping_.load(std::memory_order_seq_cst)) {
    mailbox_.Ring();
  }
}

bool ProgressWorker::Idle() const {
  bool idle = false;
  Call([&] { idle = !IsBusy() && !IsWanted(); });
  return idle;
}

// ---- The thread
// ----------------------------------------------------------------------------------

void ProgressWorker::Loop() {
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint32_t letters = mailbox_.Open();
    if (Turn() + letters == 0) {
      Sleep();
    }
  }
}

uint32_t ProgressWorker::Turn() {
  uint32_t done = 0;
  for (const auto& [id, job] : jobs_) {
    for (const auto& [number, rank] : job->ranks()) {
      if (rank->flag->wanted.load(std::memory_order_relaxed)) {
        // Pairs with Attend: acquires what it was set for.
        rank->flag->wanted.exchange(false, std::memory_order_acquire);
        rank->attending = true;
      }
      if (rank->attending && rank->engine != nullptr) {
        done += AttendRank(*job, *rank);
      }
      if (!rank->copies.empty()) {
        done += CopyNext(*job, *rank);
      }
    }
  }
  return done;
}

uint32_t ProgressWorker::AttendRank(WorkerJob& job, WorkerRank& rank) {
  if (!rank.lease.TryAcquire(shm::kLeaseWorker)) {
    if (++rank.refusals > kYieldsForLease) {
      return 0;  // sleep a little
    }
    sched_yield();
    return 1;
  }
  rank.refusals = 0;
  engine::Effects effects;
  const uint32_t handled = rank.engine->Progress(effects);
  rank.lease.Release(shm::kLeaseWorker);
  Perform(job, rank, effects);
  for (uint32_t i = 0; i < effects.transfer_count; ++i) {
    AddCopy(rank, effects.transfers[i]);
  }
  if (handled == 0) {
    rank.attending = false;
    FindCopies(rank);
  }
  return 1;
}

// What the rank would do after a step of its engine (engine/effects.h).
void ProgressWorker::Perform(WorkerJob& job, WorkerRank& rank, const engine::Effects& effects) {
  const auto for_peer = [&](uint32_t lane, auto&& act) {
    if (WorkerRank* peer = job.FindLocal(lane); peer != nullptr) {
      act(*peer);
    }
  };
  const uint32_t own_lane = rank.session->local_index;
  effects.lanes.ForEach([&](uint32_t lane) {
    for_peer(lane, [&](WorkerRank& peer) { peer.wake.PublishLane(own_lane); });
  });
  effects.wakes.ForEach(
      [&](uint32_t lane) { for_peer(lane, [](WorkerRank& peer) { peer.wake.Publish(); }); });
  effects.urgent.ForEach([&](uint32_t lane) {
    for_peer(lane, [](WorkerRank& peer) {
      if (peer.wake.MustAttend()) {
        peer.attending = true;
      }
    });
  });
  if (effects.to_daemon &&
      shm::Wake(&rank.view.layout->daemon_wake).AnnounceLane(rank.session->local_size)) {
    ring_daemon_();
  }
  if (effects.self) {
    rank.wake.Publish();
  }
}

// ---- Copies
// --------------------------------------------------------------------------------------

void ProgressWorker::AddCopy(WorkerRank& rank, uint32_t request) {
  const shm::RequestLayout& slot = *rank.view.request(request);
  const WorkerCopy copy{slot.transfer_rank, slot.transfer_index, slot.transfer_generation};
  const bool known = std::any_of(rank.copies.begin(), rank.copies.end(), [&](const auto& other) {
    return other.source == copy.source && other.transfer == copy.transfer;
  });
  if (!known) {
    rank.copies.push_back(copy);
  }
}

// Receives that the rank itself had matched before it went computing.
void ProgressWorker::FindCopies(WorkerRank& rank) {
  const uint32_t fresh =
      std::min(shm::LoadAcquire(rank.view.layout->request_fresh), rank.view.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    const shm::RequestLayout& slot = *rank.view.request(request);
    if (shm::LoadAcquire(slot.state) == static_cast<uint32_t>(shm::RequestState::kTransferring) &&
        slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive)) {
      AddCopy(rank, request);
    }
  }
}

// One chunk, of the transfers in turn.
uint32_t ProgressWorker::CopyNext(WorkerJob& job, WorkerRank& rank) {
  const WorkerCopy copy = rank.copies.front();
  rank.copies.erase(rank.copies.begin());
  const engine::InboxView inbox = job.Inbox(copy.source);
  shm::TransferLayout* slot = inbox.valid() ? inbox.transfer(copy.transfer) : nullptr;
  if (slot == nullptr) {
    return 0;
  }
  WorkerMemory memory(job, bounce_);
  switch (engine::CopyChunk(*slot, copy.generation, memory)) {
    case engine::ChunkResult::kNothing:
      return 0;
    case engine::ChunkResult::kCopied:
      rank.copies.push_back(copy);
      break;
    case engine::ChunkResult::kFinished:
      rank.wake.Publish();
      shm::Wake(inbox.wake()).Publish();
      break;
  }
  rank.statistics.AddShared(shm::Statistic::kChunksCopiedByWorker);
  return 1;
}

// ---- Sleeping
// ------------------------------------------------------------------------------------

bool ProgressWorker::IsBusy() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return std::any_of(job.second->ranks().begin(), job.second->ranks().end(),
                       [](const auto& entry) {
                         const WorkerRank& rank = *entry.second;
                         return !rank.copies.empty() || (rank.attending && rank.engine != nullptr);
                       });
  });
}

bool ProgressWorker::IsWanted() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return std::any_of(job.second->ranks().begin(), job.second->ranks().end(),
                       [](const auto& entry) {
                         return entry.second->flag->wanted.load(std::memory_order_seq_cst);
                       });
  });
}

void ProgressWorker::Sleep() {
  sleeping_.store(true, std::memory_order_seq_cst);
  if (!IsWanted()) {  // Pairs with Attend.
    // Busy here means: a rank holds its lease and is not running.
    pollfd bell{mailbox_.fd(), POLLIN, 0};
    if (poll(&bell, 1, IsBusy() ? kLeaseRetryMs : -1) > 0) {
      mailbox_.Silence();
    }
  }
  sleeping_.store(false, std::memory_order_relaxed);
}

}  // namespace ferry::daemon
