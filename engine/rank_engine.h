// The message engine of one rank: drains its lanes, and holds the parts that send, receive and
// follow what becomes of other ranks.
//
// Pure: it changes shared memory and private state, and notes in Effects what is to be done outside
// the lease; it never copies user data, wakes, sleeps, reads a clock or enters the kernel. The rank
// and, while the rank computes, the daemon's progress worker each run an engine of their own, with
// their own mappings of the segments.
//
// Calling thread: the holder of the rank's progress lease, for every member unless noted. Errors of
// a message end up in its request; errors of the whole rank (a corrupt table, too many unexpected
// messages) in WakeLayout::poison, and in SessionLayout::fault what was found.
//
// The engine believes nothing in the segments, not even what the rank itself wrote: it loads an
// index once and checks it before use, bounds each walk, and the journal refuses stores that lie
// outside. If a peer wrote something wrong, the engine stops reading that lane and accuses the peer
// to the daemon, which ends the peer's session or parts the two.
//
// Follows MPI 5.0 sections 3.5 (order, matching) and 3.8 (probe, cancel), and docs/architecture.md.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/engine_context.h"
#include "engine/peer_ends.h"
#include "engine/peer_paths.h"
#include "engine/receive_engine.h"
#include "engine/receiver_first.h"
#include "engine/rndv_get_commands.h"
#include "engine/send_engine.h"

namespace ferry::engine {

class RankEngine : private EngineState, private EngineContext {
 public:
  // `view` and `peers` outlive the engine, which maps the inbox of a peer of the node (PeerTable)
  // when a lane to it is opened, or when it has announced a message that lies in its memory.
  RankEngine(const SessionView& view, const PeerTable& peers, const EngineOptions& options,
             Runner runner);
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  const SessionView& view() const { return view_; }
  const PeerTable& peers() const { return peers_; }
  SendEngine& sends() { return sends_; }
  ReceiveEngine& receives() { return receives_; }
  const ReceiverFirst& receiver_first() const { return receiver_first_; }
  PeerPaths& paths() { return paths_; }
  const PeerPaths& paths() const { return paths_; }

  // ---- Progress ---------------------------------------------------------------------------------
  // Handles up to kDrainBudget descriptors; returns how many. Also does what else is due: queued
  // sends, credits, ends of peers.
  uint32_t Progress(Effects& effects);
  // Cancels a request. True: it was still queued or posted, or announced inside the node and not
  // taken, and is now complete with kCancelled. It will be, too, if it was announced to another
  // node, which has to agree: a receive unless a message comes first, a send unless a receive has
  // matched it.
  bool Cancel(uint32_t request, Effects& effects);
  // After the lease was taken from a dead holder: rolls the dead holder's mutation forward and
  // looks again for all that it may have had in hand.
  ErrorCode RecoverFromDeadHolder();

  // ---- Lanes to look at -------------------------------------------------------------------------
  // The lane to look at for a message from `source` (for kAnySource the one that spoke last); any
  // thread, a hint.
  uint32_t LaneOf(int32_t source) const {
    if (source == shm::kAnySource) {
      return shm::LoadRelaxed(hot_lane_);
    }
    const Peer& peer = peers_.by_rank[static_cast<uint32_t>(source)];
    return peer.local ? peer.local_index : LaneFrom(static_cast<uint32_t>(source));
  }
  // True if the lane holds a descriptor; any thread, a hint.
  using EngineContext::HasMessage;
  // For a blocking receive, which must not take the short way (ReceiveEngine) for ever while other
  // lanes wait: true if it may, once more, before Progress has looked at all of them.
  bool TakeTurn() { return hot_streak_ != kHotStreak && ++hot_streak_ != 0; }

  // ---- Before sleep -----------------------------------------------------------------------------
  // For a thread that is going to sleep (any, without the lease). Forgets which lanes had
  // something; then Wake::PrepareToSleep; then HasWork returns whether Progress would find
  // something, and remembers where.
  LaneSet ForgetLanes();
  bool HasWork(const LaneSet& forgotten = {});
  // True if some lane holds a descriptor (looks at each), or an end of a peer is news; any thread.
  bool HasArrivals() const;
  // True while something waits for room that a peer or a core will make (any thread).
  bool WaitsForRoom() const { return HasDuties(); }

  // ---- For the engine's parts -------------------------------------------------------------------
  // Handles up to `budget` descriptors of one lane; returns how many.
  uint32_t DrainLane(uint32_t lane, uint32_t budget, Effects& effects);
  // Copies the next descriptor of a lane, once; its producer can still write to it. The caller
  // checks the copy. False: the lane is empty.
  bool Fetch(uint32_t lane, Arrival* arrival) const;
  // True if a correct producer of the lane could have written the descriptor.
  bool IsPlausible(const Arrival& arrival) const;
  // Consumes the arrival, in one transaction with what it changes. False: it stays in the lane.
  bool Handle(const Arrival& arrival, Effects& effects);
  // Now and then, after a descriptor was handled: notes the producer if it waits for room.
  void NoticeRoom(uint32_t lane, Effects& effects);
  // Adds the consumption to the open transaction; of a message from another node also its credit,
  // and its place in the order. `matched`: it goes to a receive at once.
  void Consume(const Arrival& arrival, bool matched = false);

 private:
  using EngineContext::LaneOf;
  uint32_t LaneWords() const { return (shm::LaneCount(view_.inbox.local_size) + 63) / 64; }
  uint32_t DrainActive(Effects& effects);
  void DoDuties(Effects& effects);
  void CountConsumed(const Arrival& arrival, bool matched);
  void CloseLane(uint32_t lane);
  void Accuse(Effects& effects);
  void RaiseAlarms(Effects& effects);
  void HandleResult(const Arrival& arrival, Effects& effects);
  void EndWith(shm::RequestLayout& slot, ErrorCode error);

  const uint32_t served_lanes_;  // those that Progress drains: the first so many
  uint32_t hot_lane_ = 0;        // that spoke last
  uint32_t hot_streak_ = 0;
  LaneSet accused_;
  SendEngine sends_;
  ReceiveEngine receives_;
  ReceiverFirst receiver_first_;
  RndvGetCommands rndv_get_commands_;
  PeerPaths paths_;
  PeerEnds ends_;
};

}  // namespace ferry::engine
