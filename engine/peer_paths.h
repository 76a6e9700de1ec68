// The paths of a rank's messages to and from other nodes, and the credit that bounds how many are
// under way.
//
// Messages to another node take one of two paths: by the daemons, or by a direct link of the two
// ranks, which the rank's own core serves (docs/protocol.md, "Direct links"). Direct links belong
// to the rank's own process, whose threads turn that core: an engine of the worker pushes nothing
// to the link, and leaves its lane alone.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member
// unless noted. Nothing blocks.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/engine_context.h"

namespace ferry::engine {

class RankEngine;
class ReceiveEngine;

class PeerPaths : private EngineContext {
 public:
  PeerPaths(const EngineContext& context, RankEngine& engine, ReceiveEngine& receives)
      : EngineContext(context), engine_(engine), receives_(receives) {}
  PeerPaths(const PeerPaths&) = delete;
  PeerPaths& operator=(const PeerPaths&) = delete;

  // ---- Use of direct links ----------------------------------------------------------------------
  // Sends messages to `peer`, a rank of another node, by the direct link from now on, once those
  // that went by the daemons have arrived. Before the call both ends must be able to send and
  // receive by it. kInvalidRank: the peer is on this node. Else the reason why nothing passes
  // between the two: the peer's end, kLinkDown.
  ErrorCode UseLink(uint32_t peer, Effects& effects);
  // Sends them by the daemons again, once those that went by the link have arrived. The link has to
  // stay until IsLinkFree returns true.
  void LeaveLink(uint32_t peer, Effects& effects);
  // Leaves the links to all peers. A rank that leaves its job waits until SendsByLink is false.
  void LeaveLinks(Effects& effects);
  // The daemon grants no link: the rank asks again after kRefusedPatience times the traffic.
  void RefuseLink(uint32_t peer);
  // The direct link has ended, whichever end closed it, and the core has ended its own work for the
  // peer. If messages still took the link, nothing passes between the two any more, and what was
  // under way waits. The daemon is told: it parts the two (kLinkDown), which fails that, and they
  // begin anew; or it finds that the peer is dead, which fails that with the peer's end.
  // `was_taken`: operations that the engine does not know of took the link.
  void FailLink(uint32_t peer, Effects& effects, bool was_taken = false);
  // Tells the daemon `matter` of the direct link to `peer`. False: there is no room now.
  bool TellOfLink(uint32_t peer, shm::LinkMatter matter, Effects& effects);

  // ---- State; any thread, a hint unless the caller holds the lease ------------------------------
  // The path that messages to a peer take.
  using EngineContext::PathTo;
  // True while some direction, to or from this rank, takes a direct link, or is about to.
  bool UsesLinks() const { return shm::LoadRelaxed(view_.layout->linked_peers) != 0; }
  // True while messages to some living rank take a direct link, or do not yet go by the daemons.
  bool SendsByLink() const;
  // True while sends wait that may be for a direct link. An answer to a marker, or a credit, may
  // let them go. If the worker drains it, it does not wake the rank, and may not push to the link
  // itself. So a thread that turns the rank's core while the rank computes does not sleep for long
  // while this is true.
  bool AwaitsLink() const {
    return UsesLinks() && shm::LoadRelaxed(view_.layout->queued_sends) != 0;
  }
  // True once nothing between the two takes the direct link: no direction, no RTS that waits for
  // its receive at either end, no transfer. Looks at all requests and unexpected messages.
  bool IsLinkFree(uint32_t peer) const;
  // Counts the cuts from the peer that this rank has acted on. They have reported all that a link
  // used before them has lost.
  uint32_t CutsApplied(uint32_t peer) const { return view_.by_rank.rtrs[peer].cuts_applied; }

  // ---- For the engine's other parts -------------------------------------------------------------
  // SetPaths and SetLinkState join the open transaction.
  void SetPaths(uint32_t peer, shm::PeerPath path, shm::PeerPath inward);
  void SetLinkState(uint32_t peer, shm::LinkState state);
  // Adds a message to the peer to its traffic by the daemons, in the open transaction: after so
  // much the rank asks for a direct link.
  void CountByDaemon(uint32_t destination, uint64_t size_bytes);
  // Asks for links, reports lost ones, and switches paths, where that is due.
  void DoLinkDuties(Effects& effects);
  // The peer is gone. Messages that it has sent by the link still count if they come.
  void EndPaths(uint32_t peer);
  void HandleSwitch(const Arrival& arrival);
  // True for a message, or credit, of a link that was lost. Those that a link brought count until
  // the two begin anew.
  bool IsOfEarlierLink(const Arrival& arrival) const;
  void Drop(const Arrival& arrival);

  // The bytes of PeerWords::pushed that the receiver of a message gives back once it has matched
  // it.
  static uint32_t PushedBytes(uint8_t kind, uint8_t flags, uint64_t size_bytes) {
    return kind == static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts) &&
                   (flags & shm::kFlagPushed) != 0
               ? static_cast<uint32_t>(size_bytes)
               : 0;
  }
  // Returns true if the peer is to be told what was drained, or matched: before it can have to wait
  // for that.
  static bool Owes(const shm::PeerWords& peer);
  // Adds to the credit that a source gets back. Joins the open transaction, once for each source.
  void Owe(uint32_t source, uint32_t messages, uint32_t pushed_bytes);
  // Sends the credits that are due, where there is room.
  void ReturnCredits(Effects& effects);
  // Calls `visit` with each peer to which something is queued, or owed, or to be done, until it
  // returns false. The rest of the job costs nothing.
  template <typename Visitor>
  void ForEachBusyPeer(Visitor&& visit) const {
    shm::ForEachRankIn(view_.by_rank.busy, view_.job_size, visit);
  }
  // Takes a peer out of these once nothing is left.
  void RestIfIdle(uint32_t peer);
  void TakeCredit(const Arrival& arrival, Effects& effects);

 private:
  bool HasRequestsByLink(uint32_t peer) const;
  bool TrySwitch(uint32_t peer, Effects& effects);
  shm::PeerPath PathWanted(uint32_t peer) const;
  bool HasSwitchDue(uint32_t peer) const;
  void HaveDutyTo(uint32_t peer);
  bool StageLinkCommand(uint32_t peer, shm::LinkMatter matter, Effects& effects);
  bool DoLinkDuty(uint32_t peer, Effects& effects);
  void BeginToOwe(uint32_t source);
  void ReturnCredit(uint32_t source, bool (&has_room)[2], Effects& effects);
  void SettleCredits(shm::PeerWords& peer);
  bool StageCredit(uint32_t source, Core core, Effects& effects);

  RankEngine& engine_;
  ReceiveEngine& receives_;
};

}  // namespace ferry::engine
