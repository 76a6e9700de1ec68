#include "daemon/worker/job_turns.h"

#include <sched.h>

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr size_t kBounceBytes = size_t{128} << 10;
constexpr uint32_t kYieldsForLease = 32;  // then the worker sleeps between attempts

}  // namespace

JobTurns::JobTurns(WorkerJob& job, const std::function<void()>& ring_daemon)
    : job_(job), ring_daemon_(ring_daemon), bounce_(kBounceBytes) {}

uint32_t JobTurns::Turn() {
  uint32_t done = 0;
  for (const auto& [number, rank] : job_.ranks()) {
    if (shm::LoadRelaxed(*rank->wanted) != 0) {
      // Pairs with Attention::Raise: acquires the work for which it was set.
      shm::Exchange(*rank->wanted, 0U, std::memory_order_acquire);
      rank->attending = true;
    }
    if (rank->attending && rank->engine != nullptr) {
      done += AttendRank(*rank);
    }
    if (!rank->copies.empty()) {
      done += CopyNext(*rank);
    }
  }
  return done;
}

uint32_t JobTurns::AttendRank(WorkerRank& rank) {
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
  Perform(rank, effects);
  for (uint32_t i = 0; i < effects.transfer_count; ++i) {
    AddCopy(rank, effects.transfers[i], false);
  }
  if (handled == 0) {
    rank.attending = false;
    FindCopies(rank);
  }
  return 1;
}

// Does what the rank would do after a step of its engine (engine/effects.h).
void JobTurns::Perform(WorkerRank& rank, const engine::Effects& effects) {
  const auto for_peer = [&](uint32_t lane, auto&& act) {
    if (WorkerRank* peer = job_.FindLocal(lane); peer != nullptr) {
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

// ---- Copies ------------------------------------------------------------------------------------

// The rank may use the request anew meanwhile, and then this is put together of two messages.
void JobTurns::AddCopy(WorkerRank& rank, uint32_t request, bool is_ranks) {
  const shm::RequestLayout& slot = *rank.view.request(request);
  WorkerCopy copy;
  copy.is_ranks = is_ranks;
  copy.own.certain = false;
  copy.own.rank = rank.session->rank;
  copy.own.peer = shm::LoadAcquire(slot.transfer_rank);
  copy.transfer = shm::LoadAcquire(slot.transfer_index);
  copy.generation = shm::LoadAcquire(slot.transfer_generation);
  copy.own.where = {shm::LoadAcquire(slot.buffer.region), 0, shm::LoadAcquire(slot.buffer.address)};
  copy.own.size_bytes = shm::LoadAcquire(slot.size_bytes);
  rank.copies.Put(request, copy);
}

// Receives that the rank itself had matched before it went computing.
void JobTurns::FindCopies(WorkerRank& rank) {
  const uint32_t fresh =
      std::min(shm::LoadAcquire(rank.view.layout->request_fresh), rank.view.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    const shm::RequestLayout& slot = *rank.view.request(request);
    if (shm::LoadAcquire(slot.state) == static_cast<uint32_t>(shm::RequestState::kTransferring) &&
        slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive)) {
      AddCopy(rank, request, true);
    }
  }
}

// Copies one chunk of the next transfer in turn.
uint32_t JobTurns::CopyNext(WorkerRank& rank) {
  const WorkerCopy& copy = rank.copies.Next();
  if (copy.is_ranks && rank.wake.HasVisitors()) {
    rank.copies.DropLast();
    return 0;
  }
  const engine::InboxView inbox = job_.Inbox(copy.own.peer);
  shm::TransferLayout* slot = inbox.valid() ? inbox.transfer(copy.transfer) : nullptr;
  WorkerMemory memory(job_, bounce_);
  const engine::ChunkResult result =
      slot == nullptr ? engine::ChunkResult::kNothing
                      : engine::CopyChunk(*slot, copy.generation, memory, &copy.own);
  if (result != engine::ChunkResult::kCopied) {
    rank.copies.DropLast();
  }
  if (result == engine::ChunkResult::kNothing || result == engine::ChunkResult::kLeft) {
    return 0;
  }
  if (result == engine::ChunkResult::kFinished) {
    rank.wake.Publish();
    shm::Wake(inbox.wake()).Publish();
  }
  rank.statistics.AddShared(shm::Statistic::kChunksCopiedByWorker);
  return 1;
}

// ---- Sleeping ----------------------------------------------------------------------------------

bool JobTurns::IsBusy() const {
  return std::any_of(job_.ranks().begin(), job_.ranks().end(), [](const auto& entry) {
    const WorkerRank& rank = *entry.second;
    return !rank.copies.empty() || (rank.attending && rank.engine != nullptr);
  });
}

bool JobTurns::IsWanted() const {
  return std::any_of(job_.ranks().begin(), job_.ranks().end(), [](const auto& entry) {
    return shm::Load(*entry.second->wanted, std::memory_order_seq_cst) != 0;
  });
}

}  // namespace ferry::daemon
