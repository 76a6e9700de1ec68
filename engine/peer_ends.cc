#include "engine/peer_ends.h"

#include <algorithm>
#include <atomic>

#include "engine/peer_paths.h"
#include "engine/rank_engine.h"
#include "engine/receive_engine.h"
#include "engine/receiver_first.h"
#include "engine/request_end.h"
#include "engine/send_engine.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::RequestLayout;
using shm::RequestState;

ErrorCode PeerEnds::DeathOf(int32_t peer) const {
  if (!IsRank(peer)) {
    return any_died_;
  }
  const auto rank = static_cast<uint32_t>(peer);
  return deaths_[rank] == ErrorCode::kLinkDown
             ? static_cast<ErrorCode>(shm::LoadAcquire(view_.by_rank.peers[rank].dead))
             : deaths_[rank];
}

ErrorCode PeerEnds::CauseOfLoss(const RequestLayout& slot) const {
  const bool receives = slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive);
  const int32_t peer = receives ? slot.status_source : slot.peer;
  if (!IsRank(peer)) {
    return ErrorCode::kLinkDown;
  }
  const auto dead = static_cast<ErrorCode>(shm::LoadAcquire(view_.by_rank.peers[peer].dead));
  const bool is_parted = slot.link_end == static_cast<uint32_t>(shm::LinkEnd::kParted);
  return dead == ErrorCode::kOk && is_parted ? ErrorCode::kLinkDown : dead;
}

// The rank has learned that the link to the peer was cut.
void PeerEnds::CountAsTold(int32_t peer) {
  shm::PeerWords& words = view_.by_rank.peers[peer];
  const bool back = shm::LoadAcquire(words.dead) == 0;
  shm::StoreRelaxed(words.cut,
                    static_cast<uint32_t>(back ? shm::CutState::kNone : shm::CutState::kTold));
}

void PeerEnds::ApplyDeaths(Effects& effects) {
  // Stored first: a death that comes meanwhile bumps the epoch again.
  const uint32_t epoch = shm::LoadAcquire(wake_.layout()->death_epoch);
  shm::StoreRelaxed(deaths_seen_, epoch);
  shm::ForEachRankIn(view_.by_rank.gone, view_.job_size, [&](uint32_t rank) {
    ApplyDeath(rank, effects);
    return true;
  });
  if (any_died_ == ErrorCode::kOk && view_.job_size > 1 && left_ == view_.job_size - 1) {
    any_died_ = ErrorCode::kNotFound;
  }
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    FailIfEnded(request, effects);
  }
  // Pairs with CoreEnds::HasSettled: the rank keeps nothing from before a cut.
  shm::StoreRelease(view_.layout->deaths_applied, epoch);
  effects.self = true;
}

void PeerEnds::ApplyDeath(uint32_t rank, Effects& effects) {
  shm::PeerWords& words = view_.by_rank.peers[rank];
  const auto death = static_cast<ErrorCode>(shm::LoadAcquire(words.dead));
  if (death == ErrorCode::kOk &&
      shm::LoadRelaxed(words.cut) == static_cast<uint32_t>(shm::CutState::kTold)) {
    shm::StoreRelaxed(words.cut, static_cast<uint32_t>(shm::CutState::kNone));
  }
  // The link may have been back, and cut again, since this engine looked last.
  const shm::RtrBook& book = view_.by_rank.rtrs[rank];
  const bool is_cut_again =
      death == ErrorCode::kLinkDown && shm::LoadAcquire(book.cuts) != book.cuts_applied;
  if (death == deaths_[rank] && !is_cut_again) {
    return;
  }
  // Messages that the dead rank sent before still count: empty its lane first.
  if (const Peer& peer = peers_.by_rank[rank]; peer.local) {
    engine_.DrainLane(peer.local_index, shm::kLaneSlots, effects);
  } else {
    engine_.DrainLane(LaneOf(Core::kDaemon), shm::kLaneSlots, effects);
    engine_.DrainLane(LaneOf(Core::kLink), shm::kLaneSlots, effects);
  }
  left_ -= deaths_[rank] == ErrorCode::kNotFound ? 1 : 0;
  left_ += death == ErrorCode::kNotFound ? 1 : 0;
  deaths_[rank] = death;
  if (death == ErrorCode::kLinkDown) {
    ForgetCredits(rank);
  } else if (death != ErrorCode::kOk) {
    paths_.EndPaths(rank);
  }
  if (death != ErrorCode::kLinkDown && death != ErrorCode::kOk && death != ErrorCode::kNotFound) {
    any_died_ = death;
  }
}

// The source has left, and all that it sent was in front of this descriptor.
void PeerEnds::HandleLeft(const Arrival& arrival) {
  view_.by_rank.StoreDeadIfAlive(arrival.source, ErrorCode::kNotFound);
  // Pairs with ApplyDeaths, of this engine and of the session's other one.
  shm::FetchAdd(wake_.layout()->death_epoch, 1U, std::memory_order_release);
  engine_.Consume(arrival);
  journal_.Commit();
}

// Resets the counts for a peer, once for each cut of the link: all that was under way is lost, so
// both ends begin anew.
void PeerEnds::ForgetCredits(uint32_t rank) {
  shm::PeerWords& peer = view_.by_rank.peers[rank];
  shm::RtrBook& book = view_.by_rank.rtrs[rank];
  // Pairs with CoreEnds::MarkDead, which stores it before `dead`.
  const uint32_t cuts = shm::LoadAcquire(book.cuts);
  if (cuts == book.cuts_applied) {
    return;  // another engine of the session has seen to it
  }
  journal_.Set(&book.cuts_applied, cuts);
  journal_.Set(&book.sent, uint64_t{0});
  journal_.Set(&book.taken, uint64_t{0});
  journal_.Set(&book.held, 0U);
  if (PeerPaths::Owes(peer)) {
    journal_.Set(&view_.layout->credits_owed, view_.layout->credits_owed - 1);
  }
  for (uint32_t* const word :
       {&peer.sent, &peer.credited, &peer.drained, &peer.returned, &peer.marker_owed, &peer.pushed,
        &peer.pushed_credited, &peer.pushed_taken, &peer.pushed_returned}) {
    journal_.Set(word, 0U);
  }
  paths_.SetPaths(rank, shm::PeerPath::kDaemon, shm::PeerPath::kDaemon);
  paths_.SetLinkState(rank, shm::LinkState::kNone);
  receives_.LoseRtsFrom(rank, LaneOf(Core::kLink), 0);
  journal_.Commit();
  if (shm::LoadRelaxed(peer.cut) == static_cast<uint32_t>(shm::CutState::kNone)) {
    shm::StoreRelaxed(peer.cut, static_cast<uint32_t>(shm::CutState::kTell));
  }
}

void PeerEnds::FailIfEnded(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const uint32_t generation = shm::LoadAcquire(slot.generation);
  const auto state = static_cast<RequestState>(shm::LoadAcquire(slot.state));
  const bool matched = state == RequestState::kTransferring || state == RequestState::kRemoteWait;
  if (!matched && state != RequestState::kQueued && state != RequestState::kPosted) {
    return;  // the rest of the slot may be changing
  }
  const bool receive = slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive);
  const ErrorCode death = DeathOf(matched && receive ? slot.status_source : slot.peer);
  if (death == ErrorCode::kOk || (state == RequestState::kTransferring && IsTransferDone(slot))) {
    return;
  }
  // The core answers every rendezvous get. Until then the NIC may write to the buffer.
  if (state == RequestState::kRemoteWait && receive &&
      slot.link_end != static_cast<uint32_t>(shm::LinkEnd::kHeld)) {
    if (death == ErrorCode::kLinkDown && CoreOfRndvGet(slot) == Core::kLink) {
      journal_.Set(&slot.link_end, static_cast<uint32_t>(shm::LinkEnd::kParted));
      journal_.Commit();
    }
    return;
  }
  if (death == ErrorCode::kLinkDown && (slot.flags & kRequestUnwatched) == 0) {
    const int32_t peer = matched && receive ? slot.status_source : slot.peer;
    shm::StoreRelaxed(view_.by_rank.peers[peer].cut, static_cast<uint32_t>(shm::CutState::kTold));
  }
  if (state == RequestState::kQueued) {
    sends_.Unqueue(request);
  } else if (state == RequestState::kPosted &&
             slot.rtr != static_cast<uint32_t>(shm::RtrState::kQuiet)) {
    receiver_first_.FailReceiveByRtr(request, death, effects);
    return;
  } else if (state == RequestState::kPosted) {
    if (!receives_.Unpost(slot)) {
      return;
    }
  } else {
    statistics_.Add(shm::Statistic::kErrors);
    AbandonTransfer(request);
    if (state == RequestState::kRemoteWait) {  // no answer to a retraction will come
      journal_.Set(&slot.rtr, static_cast<uint32_t>(shm::RtrState::kQuiet));
    }
  }
  if (state == RequestState::kTransferring) {  // without the lease the rank may be ending it, too
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(death));
    (void)EndTransfer(slot, generation);
    return;
  }
  Complete(slot, death);
}

void PeerEnds::AbandonTransfer(uint32_t request) {
  const RequestLayout& slot = *view_.request(request);
  shm::TransferLayout& transfer = *view_.inbox.transfer(request);
  if (slot.transfer_rank != view_.rank || slot.transfer_index != request ||
      transfer.generation != slot.generation) {
    return;
  }
  const bool for_daemon =
      shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kRemoteWait);
  auto announced = static_cast<uint32_t>(for_daemon ? shm::TransferState::kMatched
                                                    : shm::TransferState::kAnnounced);
  shm::CompareExchange(transfer.state, announced,
                       static_cast<uint32_t>(shm::TransferState::kReleased),
                       std::memory_order_acq_rel);
}

// A transfer whose last chunk was copied counts, even if the other side died afterwards.
bool PeerEnds::IsTransferDone(const RequestLayout& slot) const {
  const shm::TransferLayout* transfer = TransferOf(slot);
  return transfer != nullptr && Look(*transfer, slot.transfer_generation).done;
}

}  // namespace ferry::engine
