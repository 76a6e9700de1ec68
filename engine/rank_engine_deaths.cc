// RankEngine: what happens to a rank's requests when another rank is gone. See rank_engine.h.
#include <algorithm>

#include "engine/rank_engine.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::RequestLayout;
using shm::RequestState;

// The error of a receive from, or a send to, `peer`. A receive from any source fails once any rank
// has died (it could wait for ever), but not because others have left in good order.
ErrorCode RankEngine::DeathOf(int32_t peer) const {
  if (peer >= 0) {
    return static_cast<ErrorCode>(shm::LoadAcquire(view_.layout->peers[peer].dead));
  }
  return any_died_;
}

void RankEngine::ApplyDeaths(Effects& effects) {
  shm::StoreRelaxed(deaths_seen_, shm::LoadAcquire(wake_.layout()->death_epoch));
  // What the dead had sent before still counts: empty the lanes first.
  for (uint32_t lane = 0; lane < consumers_.size(); ++lane) {
    DrainLane(lane, shm::kLaneSlots, effects);
  }
  any_died_ = ErrorCode::kOk;
  for (uint32_t rank = 0; rank < view_.job_size; ++rank) {
    const auto death = static_cast<ErrorCode>(shm::LoadAcquire(view_.layout->peers[rank].dead));
    if (death != ErrorCode::kOk && death != ErrorCode::kNotFound) {
      any_died_ = death;
    }
  }
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    FailIfDead(request);
  }
  effects.self = true;
}

void RankEngine::FailIfDead(uint32_t request) {
  RequestLayout& slot = *view_.request(request);
  const auto state = static_cast<RequestState>(shm::LoadAcquire(slot.state));
  switch (state) {
    case RequestState::kQueued:
      if (DeathOf(slot.peer) == ErrorCode::kOk) {
        return;
      }
      Unqueue(request);
      Complete(slot, DeathOf(slot.peer));
      return;
    case RequestState::kPosted:
      if (DeathOf(slot.peer) == ErrorCode::kOk) {
        return;
      }
      match_.Remove(slot.match_entry);
      journal_.Commit();
      Complete(slot, DeathOf(slot.peer));
      return;
    case RequestState::kTransferring:
    case RequestState::kRemoteWait: {
      const bool receive = slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive);
      const ErrorCode death = DeathOf(receive ? slot.status_source : slot.peer);
      if (death == ErrorCode::kOk ||
          (state == RequestState::kTransferring && IsTransferDone(slot))) {
        return;
      }
      statistics_.Add(shm::Statistic::kErrors);
      Complete(slot, death);
      return;
    }
    default:
      return;
  }
}

// A transfer whose last chunk was copied counts, even if the other side died afterwards.
bool RankEngine::IsTransferDone(const RequestLayout& slot) const {
  const shm::TransferLayout* transfer =
      peers_.by_rank[slot.transfer_rank].inbox.transfer(slot.transfer_index);
  // Pairs with FinishChunk in engine/transfer.cc.
  return transfer != nullptr &&
         shm::LoadAcquire(transfer->state) >= static_cast<uint32_t>(shm::TransferState::kDone);
}

}  // namespace ferry::engine
