// How a rank gets at its message engine, and whom it wakes afterwards.
//
// The engine belongs to the holder of the progress lease. What it asks for (engine::Effects) is
// done once the lease is released, since publishing can enter the kernel.
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
  // The rank's direct links, which outlive this; before anybody sends or receives. `note` is told
  // of transfers that begin while the links are turned for another purpose: nobody else copies
  // them.
  void SetLinks(LinkTurns* links, std::function<void(const engine::Effects&)> note) {
    links_ = links;
    note_transfers_ = std::move(note);
  }

  engine::RankEngine& engine() { return engine_; }
  const engine::SessionView& view() const { return view_; }
  const engine::PeerTable& peers() const { return peers_; }
  shm::Wake& wake() { return wake_; }
  ErrorCode poison() const { return wake_.poison(); }
  // kOk, or why nothing passes between this rank and that one: its end, a cut, this one's poison.
  ErrorCode PeerState(uint32_t rank) const {
    // Pairs with the daemon that has noticed it.
    const auto death = static_cast<ErrorCode>(shm::LoadAcquire(view_.layout->peers[rank].dead));
    return death != ErrorCode::kOk ? death : poison();
  }

  // Whether several threads may call. Change it while no other call is under way.
  const bool& threads() const { return threads_; }
  void SetThreads(bool threads);

  // Of the calling thread, as a holder of the lease.
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
  // The same for the links alone. What the engine says of a link that has ended is answered, too.
  uint32_t TurnLinks(engine::Effects& effects) {
    return links_ != nullptr && (effects.to_link || links_->NeedsTurns()) ? links_->Turn(effects)
                                                                          : 0;
  }

  // The same if something waits for a turn, other than what may have come.
  uint32_t TurnBusyLinks(engine::Effects& effects) {
    return links_ != nullptr && (effects.to_link || links_->HasWork()) ? links_->Turn(effects) : 0;
  }

  // As LinkTurns has it. A message was sent by a link.
  bool Gathers(uint32_t peer, uint64_t size_bytes) {
    return links_->Gathers(peer, size_bytes, MonotonicNs());
  }

  // Wakes whoever the engine named. A caller that goes on to wait takes the ranks that need the
  // worker into `later`: most come by themselves in a moment.
  void Perform(const engine::Effects& effects, engine::LaneSet* later = nullptr);
  // The same for a thread that is none of the program's: those may sleep, whatever they are
  // allowed.
  void PerformElsewhere(const engine::Effects& effects);
  // Whether that has found copies to be made, of which no thread of the program knows. The worker
  // makes them for a rank whose threads are all away, and leaves them to one that waits.
  bool has_copies_elsewhere() const { return shm::LoadAcquire(copies_elsewhere_) != 0; }
  bool TakeCopiesElsewhere() {
    return has_copies_elsewhere() &&
           shm::Exchange(copies_elsewhere_, 0U, std::memory_order_acq_rel) != 0;
  }
  // Tells a rank of this node that its lane from here has something new.
  void Announce(uint32_t rank) {
    shm::Wake(peers_.by_rank[rank].inbox.wake()).PublishLane(own_lane_);
  }
  // Wakes a rank of this node that sleeps.
  void WakeRank(uint32_t rank) const { shm::Wake(peers_.Wake(rank)).Publish(); }
  // Wakes those threads of a rank of this node that rest: its memory was changed.
  void TellOfChange(uint32_t rank) const { shm::Wake(peers_.Wake(rank)).PublishChange(); }
  // Calls the worker for those of the ranks (by lane) that compute.
  void AskToAttend(const engine::LaneSet& ranks);
  // Calls the worker for this rank.
  void AskToAttendSelf();
  // Asks the daemon to look at what this rank has for it.
  void RingDaemon() { CallWorker({}, true); }

  // The same after a command in the lane to it.
  void AnnounceCommand();

  // Whether messages with `peer`, or with some rank if it is negative, pass other nodes.
  bool MayBeRemote(int32_t peer) const {
    return peer < 0 ? peers_.rank_of_local.size() != view_.job_size
                    : !peers_.by_rank[static_cast<uint32_t>(peer)].local;
  }
  // Whether the rank may get direct links at all.
  bool MayHaveLinks() const { return links_ != nullptr; }
  // LinkTurns::GiveUpLinks, where there may be some. Messages to peers whose path is the daemons'
  // stay there then.
  void GiveUpLinks() const {
    if (MayHaveLinks()) {
      links_->GiveUpLinks();
    }
  }
  // Whether messages may come by some link: after GiveUpLinks, once they cannot they never will.
  bool MayReceiveByLinks() const { return MayHaveLinks() && links_->has_links(); }
  // Whether messages to the peer, or from it, take its direct link now.
  bool SendsByLink(int32_t peer) const {
    return MayHaveLinks() && peer >= 0 &&
           engine_.PathTo(static_cast<uint32_t>(peer)) == shm::PeerPath::kLink;
  }
  // Whether they will, perhaps once the link is back that is just being taken.
  bool WillSendByLink(int32_t peer) const {
    const shm::PeerPath path = engine_.PathTo(static_cast<uint32_t>(peer));
    return path == shm::PeerPath::kLink || path == shm::PeerPath::kToLink;
  }
  // Holds the peer's link (LinkTurns::Hold) if messages to it take that now. Only where the rank
  // may have links.
  bool TryHoldLink(uint32_t peer) {
    links_->Hold(peer);
    if (SendsByLink(static_cast<int32_t>(peer))) {
      return true;
    }
    links_->LetGo(peer);
    return false;
  }
  void LetGoOfLink(uint32_t peer) { links_->LetGo(peer); }
  // LinkTurns::Serve; the same.
  void ServeByLinks() const { links_->Serve(); }
  bool ReceivesByLink(int32_t peer) const {
    return MayHaveLinks() && peer >= 0 &&
           engine_.LaneOf(peer) == shm::LinkLane(view_.inbox.local_size);
  }
  // How to wait for a rank (or for any). A message from another node passes two daemons, which may
  // need this core: then it waits without pauses.
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
