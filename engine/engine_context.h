// The context of the parts of one engine: its segments, its lanes, the open transaction.
//
// RankEngine makes one context, and each part (SendEngine, ReceiveEngine, PeerPaths ...) has a copy
// of it as its base: handles only, so that a part reaches the segments and the lanes in one load.
//
// Calling thread: the holder of the rank's progress lease, for every member unless noted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/error_code.h"
#include "engine/effects.h"
#include "engine/engine_options.h"
#include "engine/peer_table.h"
#include "engine/session_view.h"
#include "shm/counters.h"
#include "shm/fault.h"
#include "shm/journal.h"
#include "shm/lane.h"
#include "shm/layout/request_layout.h"
#include "shm/wake.h"

namespace ferry::engine {

// A descriptor taken from a lane, and the rank that it is really from.
struct Arrival {
  shm::Descriptor descriptor;
  uint32_t source;
  uint32_t lane;
};

// The state of an engine that all of its parts change. RankEngine owns it.
struct EngineState {
  EngineState(const SessionView& view, const PeerTable& peers);

  shm::Journal journal;
  std::vector<shm::LaneProducer> producers;  // by local index; the last two lead to the cores
  std::vector<shm::LaneConsumer> consumers;  // by lane
  bool is_alarmed = false;  // the daemon is to be told of a fault, or of lanes that were closed
};

class EngineContext {
 protected:
  // `state` and `peers` outlive it.
  EngineContext(const SessionView& view, const PeerTable& peers, const EngineOptions& options,
                Runner runner, EngineState& state);
  EngineContext(const EngineContext&) = default;
  ~EngineContext() = default;

  bool IsRank(int32_t peer) const { return static_cast<uint32_t>(peer) < view_.job_size; }
  bool IsRequest(uint32_t request) const { return request != 0 && request < view_.request_limit; }
  // True while the engine has more to do than to drain lanes and to apply ends of peers: credits,
  // rendezvous gets, sends, withdrawals or link commands wait, most of them for room. Any thread.
  bool HasDuties() const {
    const shm::SessionLayout& session = *view_.layout;
    return (shm::LoadRelaxed(session.credits_owed) | shm::LoadRelaxed(session.control_first) |
            shm::LoadRelaxed(session.link_control_first) | shm::LoadRelaxed(session.queued_sends) |
            shm::LoadRelaxed(session.withdrawals) | shm::LoadRelaxed(session.link_duties)) != 0;
  }
  // The transfer that the request names; null if it names none.
  shm::TransferLayout* TransferOf(const shm::RequestLayout& slot) const;

  // ---- Lanes ------------------------------------------------------------------------------------
  shm::LaneProducer& ProducerOf(Core core) {
    return producers_[view_.inbox.local_size + static_cast<uint32_t>(core)];
  }
  shm::LaneProducer& ProducerTo(uint32_t destination) {
    const Peer& peer = peers_.by_rank[destination];
    return peer.local ? producers_[peer.local_index] : ProducerOf(CoreTo(destination));
  }
  bool IsRemote(uint32_t lane) const { return shm::IsRemoteLane(lane, view_.inbox.local_size); }
  // The core of a lane for which IsRemote is true.
  Core CoreOf(uint32_t lane) const { return static_cast<Core>(lane - view_.inbox.local_size); }
  uint32_t LaneOf(Core core) const { return view_.inbox.local_size + static_cast<uint32_t>(core); }
  // The lane that messages from a rank of another node come by.
  uint32_t LaneFrom(uint32_t source) const {
    return LaneOf(InwardPath(source) == shm::PeerPath::kLink ? Core::kLink : Core::kDaemon);
  }
  bool HasMessage(uint32_t lane) const { return consumers_[lane].Peek() != nullptr; }
  // Adds a push into the lane to a core, which lies in the session, to the open transaction: the
  // rest of the slot, its stamp, the tail. Once for each core in one transaction. False: no room;
  // the core wakes the rank once there is.
  bool StageTo(Core core, const shm::Descriptor& descriptor, Effects& effects);

  // ---- Paths; any thread, a hint unless the caller holds the lease ------------------------------
  shm::PeerPath PathTo(uint32_t peer) const {
    return static_cast<shm::PeerPath>(shm::LoadRelaxed(view_.by_rank.peers[peer].path));
  }
  shm::PeerPath InwardPath(uint32_t peer) const {
    return static_cast<shm::PeerPath>(shm::LoadRelaxed(view_.by_rank.peers[peer].inward_path));
  }
  Core CoreTo(uint32_t destination) const {
    return PathTo(destination) == shm::PeerPath::kLink ? Core::kLink : Core::kDaemon;
  }
  // The core that carries out the rendezvous get of a matched receive: it brought the RTS.
  Core CoreOfRndvGet(const shm::RequestLayout& slot) const {
    return slot.lane == LaneOf(Core::kLink) ? Core::kLink : Core::kDaemon;
  }

  // ---- Ends -------------------------------------------------------------------------------------
  // Ends the request, in one transaction with whatever is open.
  void Complete(shm::RequestLayout& slot, ErrorCode error);
  void Poison(ErrorCode error);
  // Poisons the rank. The daemon ends the session with what `fault` says.
  void PoisonCorrupt(const shm::Fault& fault);

  SessionView view_;
  const PeerTable& peers_;
  std::span<shm::LaneProducer> producers_;
  std::span<shm::LaneConsumer> consumers_;
  shm::Journal& journal_;
  shm::Statistics statistics_;
  shm::Wake wake_;
  bool& is_alarmed_;
  EngineOptions options_;
  Runner runner_;
};

}  // namespace ferry::engine
