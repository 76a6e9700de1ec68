// ProgressCore: two ranks that begin anew with each other. See progress_core.h.
//
// The ranks have lost a direct link, of which this core knows nothing, and with it perhaps
// messages. Their operations with each other by this core fail, too, as after a cut of their nodes;
// but other ranks do not notice, and the link between the nodes goes on. So older packets may still
// come: they are dropped until the other node has sent its last one (kParted).
#include <utility>

#include "internode/core/progress_core.h"
#include "shm/atomic.h"

namespace ferry::progress {

void ProgressCore::PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  if (served == nullptr || served->ended || !served->job->IsRank(peer) ||
      served->job->IsLocal(peer) || served->job->ended[peer] != ErrorCode::kOk ||
      std::exchange(served->partings[peer].is_here, true)) {
    return;
  }
  constexpr ErrorCode kError = ErrorCode::kLinkDown;
  rndv_gets_.FailBetween(served, peer, kError, now_ns_);
  staged_sends_.FailBetween(*served, peer, kError, now_ns_);
  rndv_puts_.FailBetween(served, peer, kError, now_ns_);
  served->notes.erase(peer);
  rtrs_.FailBetween(*served, peer, kError, now_ns_);
  one_sided_.FailBetween(*served, peer, kError);
  served->delivery.ForgetRtsOf(peer);
  served->delivery.DropWaitingOf(peer);
  shm::SessionLayout& session = *served->session->layout();
  // As in MarkDead: pair with PeerEnds::ForgetCredits, DeathOf and the acquire of death_epoch.
  shm::FetchAdd(session.rtrs[peer].cuts, 1U, std::memory_order_release);
  shm::StoreRelease(session.peers[peer].dead, static_cast<uint32_t>(kError));
  AnnounceDeath(*served);
}

// A rank that is gone, or whose peer is, has nothing to notice.
bool ProgressCore::AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  if (served == nullptr || served->ended || !served->IsPartedFrom(peer)) {
    return true;
  }
  if (!HasSettled(*served)) {
    return false;
  }
  if (!std::exchange(served->partings[peer].is_told, true)) {
    outbound_.Post(*served->job, PacketKind::kParted, rank, peer,
                   WireEnded{static_cast<uint32_t>(ErrorCode::kLinkDown), 0}, now_ns_);
    TryJoin(*served, peer);
  }
  return true;
}

// Each node joins the two as soon as both have said their last words. So whatever one of them sends
// then comes to a rank that can answer: the word of the other one went before it.
void ProgressCore::TryJoin(ServedRank& rank, uint32_t peer) {
  const auto parting = rank.partings.find(peer);
  if (!parting->second.is_here || !parting->second.is_told || !parting->second.is_there) {
    return;
  }
  rank.partings.erase(parting);
  if (rank.job->ended[peer] == ErrorCode::kOk) {  // Pairs with SendEngine::CanLeave.
    shm::StoreRelease(rank.session->layout()->peers[peer].dead, 0U);
    AnnounceDeath(rank);
  }
}

bool ProgressCore::AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  if (served != nullptr && served->job->IsRank(peer) &&
      served->job->ended[peer] != ErrorCode::kOk) {
    served->partings.erase(peer);  // neither node sends more packets of the two
  }
  return served == nullptr || !served->IsPartedFrom(peer);
}

}  // namespace ferry::progress
