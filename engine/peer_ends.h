// The ends of other ranks (left, died, unreachable) and cuts of the links to them, as one rank's
// requests feel them.
//
// A receive fails only once the messages that the peer had sent before its end were drained. Each
// engine of the session applies ends by itself.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member
// unless noted. Nothing blocks.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "common/zeroed_array.h"
#include "engine/engine_context.h"

namespace ferry::engine {

class PeerPaths;
class RankEngine;
class ReceiveEngine;
class ReceiverFirst;
class SendEngine;

class PeerEnds : private EngineContext {
 public:
  struct Parts {
    RankEngine& engine;
    PeerPaths& paths;
    SendEngine& sends;
    ReceiveEngine& receives;
    ReceiverFirst& receiver_first;
  };
  PeerEnds(const EngineContext& context, const Parts& parts)
      : EngineContext(context),
        engine_(parts.engine),
        paths_(parts.paths),
        sends_(parts.sends),
        receives_(parts.receives),
        receiver_first_(parts.receiver_first),
        deaths_(view_.job_size) {}
  PeerEnds(const PeerEnds&) = delete;
  PeerEnds& operator=(const PeerEnds&) = delete;

  // True if the daemon has told of an end, or of a cut, that this engine has not applied; any
  // thread. Pairs with the daemon's bump: the dead words are visible once the epoch is.
  bool HasNews() const {
    return shm::LoadAcquire(wake_.layout()->death_epoch) != shm::LoadRelaxed(deaths_seen_);
  }
  // Drains what the ended peers had sent, then fails the requests that wait for them.
  void ApplyDeaths(Effects& effects);
  void HandleLeft(const Arrival& arrival);

  // The error of a receive from, or a send to, `peer`. A receive from any source fails once any
  // rank has died (it could wait for ever), or all others have left, but not because some have left
  // in good order, or are cut off: the others may still send.
  ErrorCode DeathOf(int32_t peer) const;
  // The error that a request ends with whose direct link is lost, and whose core has let go of it.
  // kOk: only the daemon can say, and has not yet.
  ErrorCode CauseOfLoss(const shm::RequestLayout& slot) const;
  // True if the rank has to learn first that the link to `peer` was cut.
  bool HasToHearOfCut(int32_t peer) const {
    return IsRank(peer) && shm::LoadRelaxed(view_.by_rank.peers[peer].cut) ==
                               static_cast<uint32_t>(shm::CutState::kTell);
  }
  // Returns HasToHearOfCut, and counts the rank as told: returns true once for each cut.
  bool MustHearOfCut(int32_t peer) {
    if (!HasToHearOfCut(peer)) [[likely]] {
      return false;
    }
    CountAsTold(peer);
    return true;
  }
  // Fails the request if the peer that it waits for has ended.
  void FailIfEnded(uint32_t request, Effects& effects);
  // Gives the request's own transfer slot back if no other process of the node will touch it any
  // more: an RTS that its receiver did not live to match, or a description for the daemon.
  void AbandonTransfer(uint32_t request);

 private:
  void ApplyDeath(uint32_t rank, Effects& effects);
  void CountAsTold(int32_t peer);
  void ForgetCredits(uint32_t rank);
  bool IsTransferDone(const shm::RequestLayout& slot) const;

  RankEngine& engine_;
  PeerPaths& paths_;
  SendEngine& sends_;
  ReceiveEngine& receives_;
  ReceiverFirst& receiver_first_;
  uint32_t deaths_seen_ = 0;             // the epoch of the latest ends applied
  ZeroedArray<ErrorCode> deaths_;        // by rank
  uint32_t left_ = 0;                    // of them, kNotFound
  ErrorCode any_died_ = ErrorCode::kOk;  // how some rank of the job died, orderly leaves apart
};

}  // namespace ferry::engine
