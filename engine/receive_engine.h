// The receiving half of the engine: posts receives, matches messages with them, keeps unexpected
// messages, and hands small messages out without a request.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member
// unless noted. Nothing blocks.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/engine_context.h"
#include "engine/message.h"
#include "shm/match_table.h"

namespace ferry::engine {

class PeerEnds;
class PeerPaths;
class RankEngine;
class ReceiverFirst;
class RndvGetCommands;

class ReceiveEngine : private EngineContext {
 public:
  struct Parts {
    RankEngine& engine;
    PeerPaths& paths;
    PeerEnds& ends;
    ReceiverFirst& receiver_first;
    RndvGetCommands& rndv_get_commands;
  };
  ReceiveEngine(const EngineContext& context, const Parts& parts)
      : EngineContext(context),
        engine_(parts.engine),
        paths_(parts.paths),
        ends_(parts.ends),
        receiver_first_(parts.receiver_first),
        rndv_get_commands_(parts.rndv_get_commands),
        match_(view_.match(), &journal_) {}
  ReceiveEngine(const ReceiveEngine&) = delete;
  ReceiveEngine& operator=(const ReceiveEngine&) = delete;

  // ---- By a request -----------------------------------------------------------------------------
  // Matches a message that is there, or posts the receive. The request's slot is filled in.
  // kLimitExceeded: the match table is full; the request was not started.
  ErrorCode StartReceive(uint32_t request, Effects& effects);
  // For a blocking receive, before it is posted: gives the request an unexpected message, or one
  // that this round of Progress drains, and so spares the way through the table of posted receives.
  // Receives posted before come first. False: not yet; call again, or StartReceive.
  bool ReceiveNow(uint32_t request, Effects& effects);

  // ---- Without a request: the short way of a message of the node --------------------------------
  // Takes the next message of `lane` if it is eager and for `pattern`, and no posted receive
  // matches it. False: nothing happened.
  bool TryTakeEager(uint32_t lane, const shm::Envelope& pattern, uint64_t capacity_bytes,
                    EagerMessage* message);
  // Finds an RTS in `lane` for `pattern`, and decides for it: its sender cannot cancel it any more.
  // Changes nothing else: the lane goes on with it unless the caller takes it. False: there is no
  // such RTS; it is longer than a chunk.
  bool FindRts(uint32_t lane, const shm::Envelope& pattern, AnnouncedMessage* rts);
  // Takes the message that FindRts found, cut to the capacity: the caller copies it, without the
  // lease, and ends the transfer's only chunk.
  bool TakeWhole(const AnnouncedMessage& rts, uint64_t capacity_bytes);
  // Without the lease, once the data were copied.
  void ReleaseCell(const EagerMessage& m) { consumers_[m.lane].ReleaseCell(m.cell); }
  const uint8_t* CellBytes(const EagerMessage& message) const {
    return consumers_[message.lane].Cell(message.cell);
  }

  // ---- Probes -----------------------------------------------------------------------------------
  // True while a message waits for its receive; any thread, a hint.
  bool HasUnexpected() const { return match_.unexpected_count() != 0; }
  // Finds the message that a receive for `pattern` would get, or the error that it would. A message
  // that is only looked at can still be taken back by its sender (MPI 5.0, section 3.8.1); one that
  // is taken is there for the receive that follows under the same lease. kWouldBlock: no unexpected
  // message matches.
  enum class Use : uint8_t { kLook, kTake };
  ErrorCode Probe(const shm::Envelope& pattern, ProbeResult* result, Use use = Use::kLook);

  // ---- For the engine's other parts -------------------------------------------------------------
  // Matches a message with its receive, or keeps it. False: the rank is poisoned.
  bool HandleMessage(const Arrival& arrival, Effects& effects);
  bool HandleRetract(const Arrival& arrival, Effects& effects);
  // Takes a posted receive out of the match table, in the open transaction. False: the table is
  // corrupt, and the rank is poisoned.
  bool Unpost(const shm::RequestLayout& slot);
  // For a successor in the lease: publishes the transfers that the dead holder had matched but not
  // yet published.
  void RepublishTransfers();
  void CountArrival(const shm::RequestLayout& slot, const Arrival& arrival);
  // The way that the message's data take: of one that is matched or, from another node, fetched.
  shm::Path PathOf(const shm::RequestLayout& slot, const Arrival& arrival) const;
  // True while RTSs of `peer` that came by `lane` wait for their receives.
  bool HasRtsFrom(uint32_t peer, uint32_t lane) const {
    return match_.NextRtsFrom(static_cast<int32_t>(peer), lane, 0) != 0;
  }
  // Marks those of them that have all of `flags`: the link that they came by is lost.
  void LoseRtsFrom(uint32_t peer, uint32_t lane, uint8_t flags) {
    match_.LoseRtsFrom(static_cast<int32_t>(peer), lane, flags);
  }

 private:
  bool TakeUnexpected(uint32_t request, Effects& effects);
  uint32_t FindUnexpected(const shm::Envelope& pattern, Use use);
  bool IsRtsToBeHad(uint32_t source, const uint8_t* payload, Use use) const;
  bool IsToBeHad(uint32_t source, uint8_t kind, const uint8_t* payload, Use use = Use::kTake) const;
  bool TakeArrived(uint32_t request, Effects& effects);
  ErrorCode Ailment();
  const shm::Descriptor* PeekForShortWay(uint32_t lane) const;
  void ConsumeShortWay(uint32_t lane, uint64_t size_bytes, shm::Path path);
  bool MatchesDirect(const shm::Envelope& envelope) const;
  void Match(uint32_t request, const Arrival& arrival, Effects& effects);
  void OpenTransfer(shm::RequestLayout& slot, const Arrival& arrival);
  void PublishTransfer(uint32_t request, uint32_t source, Effects& effects);

  RankEngine& engine_;
  PeerPaths& paths_;
  PeerEnds& ends_;
  ReceiverFirst& receiver_first_;
  RndvGetCommands& rndv_get_commands_;
  shm::MatchTable match_;
  uint32_t direct_ = 0;  // the request of ReceiveNow while that runs
};

}  // namespace ferry::engine
