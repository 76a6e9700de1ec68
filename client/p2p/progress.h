// The way of a rank's threads to its message engine, and the wake-ups that follow.
//
// The engine belongs to the holder of the progress lease. The holder releases the lease before it
// carries out the engine's effects (engine::Effects), since publishing can enter the kernel.
//
// Calling thread: any that the thread level allows. Blocks only for the lease, which each holder
// keeps for one step.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "client/p2p/link_turns.h"
#include "common/clock.h"
#include "common/error_code.h"
#include "engine/rank_engine.h"
#include "shm/atomic.h"
#include "shm/lease.h"
#include "shm/wait_policy.h"
#include "shm/wake.h"

namespace ferry::client {

class Progress {
 public:
  struct Parts {
    engine::SessionView view;
    const engine::PeerTable* peers;  // outlives it
    engine::EngineOptions engine;
    uint32_t own_lane;
    int doorbell;  // of the daemon
    shm::WaitPolicy wait_policy;
    bool threads;  // several threads may call at the same time
  };
  explicit Progress(const Parts& parts);
  // Sets the rank's direct links, which outlive this, before the first send or receive. `note` is
  // called with transfers that begin while the links are turned for another purpose: no other
  // thread would copy them.
  void SetLinks(LinkTurns* links, std::function<void(const engine::Effects&)> note) {
    links_ = links;
    note_transfers_ = std::move(note);
  }

  engine::RankEngine& engine() { return engine_; }
  engine::PeerPaths& paths() { return engine_.paths(); }
  const engine::SessionView& view() const { return view_; }
  const engine::PeerTable& peers() const { return peers_; }
  shm::Wake& wake() { return wake_; }
  ErrorCode poison() const { return wake_.poison(); }
  // Returns kOk, or why nothing passes between this rank and that one: its end, a cut, this one's
  // poison.
  ErrorCode PeerState(uint32_t rank) const {
    // Pairs with the daemon's store when it has noticed the end.
    const auto death = static_cast<ErrorCode>(shm::LoadAcquire(view_.by_rank.peers[rank].dead));
    return death != ErrorCode::kOk ? death : poison();
  }

  // True if several threads may call. It changes only while no other call is under way.
  const bool& threads() const { return threads_; }
  void SetThreads(bool threads);

  // The calling thread's number as a holder of the lease.
  static uint32_t ThreadId();
  // Takes the lease if it is free.
  bool TryEnter() { return lease_.TryAcquire(Holder()); }
  // Takes the lease. False: the rank is poisoned, since the lease's holder is dead.
  bool Enter() { return TryEnter() || lease_.Acquire(Holder(), &wake_.layout()->poison); }
  void Exit() { lease_.Release(Holder()); }
  // Runs `action(effects)`, which returns an ErrorCode, as the holder of the lease, then carries
  // out the effects. Fails with the rank's poison.
  template <typename Action>
  ErrorCode UnderLease(Action&& action, engine::LaneSet* later = nullptr) {
    if (!Enter()) {
      return poison();
    }
    engine::Effects effects;
    const ErrorCode result = action(effects);
    const uint32_t transfers = effects.transfer_count;
    if (effects.to_link) {
      TurnLinks(effects);
    }
    Exit();
    if (effects.transfer_count != transfers) [[unlikely]] {
      note_transfers_(effects);
    }
    Perform(effects, later);
    return result;
  }

  // One round of the engine and of the direct links, for the holder of the lease. Returns how much
  // was done.
  uint32_t Step(engine::Effects& effects) {
    uint32_t done = TurnLinks(effects);
    done += engine_.Progress(effects);
    return effects.to_link ? done + TurnLinks(effects) : done;
  }
  // Runs one round of the direct links alone, for the holder of the lease. It also answers what the
  // engine says of a link that has ended.
  uint32_t TurnLinks(engine::Effects& effects) {
    return links_ != nullptr && (effects.to_link || links_->NeedsTurns()) ? links_->Turn(effects)
                                                                          : 0;
  }

  // Runs one round of the links only if something is known to wait for it; what the peers may have
  // sent is no reason.
  uint32_t TurnBusyLinks(engine::Effects& effects) {
    return links_ != nullptr && (effects.to_link || links_->HasWork()) ? links_->Turn(effects) : 0;
  }

  // LinkTurns::Gathers, after a message was sent by a link.
  bool Gathers(uint32_t peer, uint64_t size_bytes) {
    return links_->Gathers(peer, size_bytes, MonotonicNs());
  }

  // Wakes the ranks, and the daemon, that the engine named. A caller that goes on to wait takes the
  // ranks that need the worker into `later`: most of them come into the library by themselves in a
  // moment.
  void Perform(const engine::Effects& effects, engine::LaneSet* later = nullptr);
  // Performs effects on a thread that is not the program's. The program's own threads may sleep,
  // even where only one of them may call, so this wakes them, too.
  void PerformElsewhere(const engine::Effects& effects);
  // Returns true if PerformElsewhere has found copies to be made, of which no thread of the program
  // knows. The worker makes them for a rank whose threads are all away, and leaves them to a rank
  // that waits.
  bool has_copies_elsewhere() const { return shm::LoadAcquire(copies_elsewhere_) != 0; }
  bool TakeCopiesElsewhere() {
    return has_copies_elsewhere() &&
           shm::Exchange(copies_elsewhere_, 0U, std::memory_order_acq_rel) != 0;
  }
  // Tells a rank of this node that its lane from here has a new message.
  void Announce(uint32_t rank) {
    shm::Wake(peers_.by_rank[rank].inbox.wake()).PublishLane(own_lane_);
  }
  // Wakes a rank of this node that sleeps.
  void WakeRank(uint32_t rank) const { shm::Wake(peers_.Wake(rank)).Publish(); }
  // Wakes those threads of a rank of this node that rest, because its memory was changed.
  void TellOfChange(uint32_t rank) const { shm::Wake(peers_.Wake(rank)).PublishChange(); }
  // Calls the worker for those of the ranks (given by lane) that compute.
  void AskToAttend(const engine::LaneSet& ranks);
  // Calls the worker for this rank.
  void AskToAttendSelf();
  // Asks the daemon to look at its lane from this rank.
  void RingDaemon() { CallWorker({}, true); }

  // Asks the daemon to look at a command that is in the lane to it.
  void AnnounceCommand();

  // Returns true if messages with `peer` pass other nodes; if `peer` is negative: with some rank.
  bool MayBeRemote(int32_t peer) const {
    return peer < 0 ? peers_.rank_of_local.size() != view_.job_size
                    : !peers_.by_rank[static_cast<uint32_t>(peer)].local;
  }
  // Returns true if the rank may get direct links at all.
  bool MayHaveLinks() const { return links_ != nullptr; }
  // LinkTurns::GiveUpLinks, if the rank may have links. Messages to peers whose path is the
  // daemons' stay there then.
  void GiveUpLinks() const {
    if (MayHaveLinks()) {
      links_->GiveUpLinks();
    }
  }
  // Like LinkTurns::CarryDeviceMemory; false where the rank gets no links.
  bool LinksCarryDeviceMemory() const { return MayHaveLinks() && links_->CarryDeviceMemory(); }
  // Returns true if messages to the peer take its direct link now; ReceivesByLink: messages from
  // it.
  bool SendsByLink(int32_t peer) const {
    return MayHaveLinks() && peer >= 0 &&
           engine_.paths().PathTo(static_cast<uint32_t>(peer)) == shm::PeerPath::kLink;
  }
  // Returns true if messages to the peer take its direct link, or will once they have switched to
  // it.
  bool WillSendByLink(int32_t peer) const {
    const shm::PeerPath path = engine_.paths().PathTo(static_cast<uint32_t>(peer));
    return path == shm::PeerPath::kLink || path == shm::PeerPath::kToLink;
  }
  // Holds the peer's link (LinkTurns::Hold) if messages to the peer take it now. Only where the
  // rank may have links.
  bool TryHoldLink(uint32_t peer) {
    links_->Hold(peer);
    if (SendsByLink(static_cast<int32_t>(peer))) {
      return true;
    }
    links_->LetGo(peer);
    return false;
  }
  void LetGoOfLink(uint32_t peer) { links_->LetGo(peer); }
  // LinkTurns::Serve. Only where the rank may have links.
  void ServeByLinks() const { links_->Serve(); }
  bool ReceivesByLink(int32_t peer) const {
    return MayHaveLinks() && peer >= 0 &&
           engine_.LaneOf(peer) == shm::LinkLane(view_.inbox.local_size);
  }
  // Returns how to wait for a rank (or for any). A message from another node passes two daemons,
  // which may need this core: then the rank waits without pauses.
  shm::WaitPolicy PolicyFor(int32_t peer) const;

 private:
  void TellOthers(const engine::Effects& effects, engine::LaneSet* later);
  uint32_t Holder() const { return threads_ ? ThreadId() : holder_; }
  void CallWorker(const engine::LaneSet& ranks, bool to_daemon);

  const engine::SessionView view_;
  const engine::PeerTable& peers_;
  engine::RankEngine engine_;
  shm::Lease lease_;
  shm::Wake wake_;
  shm::Wake daemon_wake_;
  const uint32_t own_lane_;
  const uint32_t holder_;  // of the lease, when only one thread calls at a time
  const int doorbell_;
  uint32_t copies_elsewhere_ = 0;
  LinkTurns* links_ = nullptr;
  std::function<void(const engine::Effects&)> note_transfers_;
  bool threads_;
  const shm::WaitPolicy wait_policy_;
};

}  // namespace ferry::client
