// Receiver-first rendezvous, the receiver's half: receives that the ranks of other nodes may write
// into (engine/rendezvous/rtr.h has the rules). Also asks for RTRs and RTSs back that are
// cancelled.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member.
// Nothing blocks.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/engine_context.h"
#include "engine/rendezvous/rtr.h"

namespace ferry::engine {

class RankEngine;
class ReceiveEngine;
class SendEngine;

class ReceiverFirst : private EngineContext {
 public:
  ReceiverFirst(const EngineContext& context, RankEngine& engine, SendEngine& sends,
                ReceiveEngine& receives)
      : EngineContext(context), engine_(engine), sends_(sends), receives_(receives) {}
  ReceiverFirst(const ReceiverFirst&) = delete;
  ReceiverFirst& operator=(const ReceiverFirst&) = delete;

  // Returns true if the receive, once it is posted, would be announced by an RTR: then posting it
  // is not to be put off.
  bool MaySendRtr(const shm::RequestLayout& slot) const;

  // ---- For the engine's other parts -------------------------------------------------------------
  // Tells the source of a receive that is being posted, in the open transaction. Without room it is
  // not told: its message comes by another way then.
  void SendRtr(uint32_t request, Effects& effects);
  // A message came for the receive by another way. Joins the open transaction.
  void EndRtr(uint32_t request, const Arrival& arrival, Effects& effects);
  // Asks for a receive's RTR back, or for a send's RTS, in the open transaction; without room,
  // later.
  void Withdraw(uint32_t request, Effects& effects);
  // Asks for those back that found no room.
  void FlushWithdrawals(Effects& effects);
  // Ends a posted receive that has an RTR out with `error`, once its source cannot write any more.
  void FailReceiveByRtr(uint32_t request, ErrorCode error, Effects& effects);
  void HandleWithdrawn(const Arrival& arrival, Effects& effects);
  bool HandlePut(const Arrival& arrival);

 private:
  bool StageRtr(shm::DescriptorKind kind, uint8_t flags, const Rtr& rtr, Effects& effects);
  bool AwaitsWithdrawal(const shm::RequestLayout& slot) const;

  RankEngine& engine_;
  SendEngine& sends_;
  ReceiveEngine& receives_;
};

}  // namespace ferry::engine
