// RndvPuts: the sending side of receiver-first rendezvous. Writes messages of ranks here into
// receives that ranks on other nodes have announced by RTR (rndv_rtr.h is the receiving side).
//
// An RTR that comes is noted here, and the rank gets a hint. When the rank sends a message by it
// (kPut), the note says where to; without one (withdrawn, or pushed out by others) the message is
// announced like any other. The message is announced in its place, then written a few fragments at
// a time; kPutDone tells the receiver's daemon how it ended, kSendDone the rank.
//
// A note is given back as soon as its receiver asks: a rank that uses it afterwards finds none.
//
// Calling thread: the progress thread. Does not block; allocates for a peer's first RTR only.
#pragma once

#include <cstdint>

#include "internode/delivery/outbound.h"
#include "internode/rndv/transfers.h"

namespace ferry::progress {

struct RndvPut : Transfer {
  static constexpr bool kReceiving = false;
  static constexpr TraceKind kTraceKind = TraceKind::kPut;

  WireReceive receive{};
  uint64_t remote_address = 0;
  uint64_t key = 0;
  bool uncertain = false;  // a fragment that failed may still arrive
};

class RndvPuts : public Transfers<RndvPuts, RndvPut, Fragment> {
 public:
  // All references outlive this.
  RndvPuts(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
           Registrations& registrations)
      : Transfers(kWritesUnderWay),
        transport_(transport),
        outbound_(outbound),
        depot_(depot),
        registrations_(registrations) {}

  // Take the messages of the receivers' daemons.
  void OnRtr(ServedRank& rank, const PacketHeader& header, const WireRtr& rtr);
  // `source` may be gone.
  void OnWithdraw(Job& job, uint32_t source, uint32_t receiver, const WireReceive& receive,
                  uint64_t now_ns);

  // Carries out a rank's kPut. kOk: it has begun. kNotFound: send an RTS instead. kWouldBlock: try
  // again. Any other error: the node is not reachable.
  ErrorCode Start(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  void OnWriteComplete(uint64_t context, ErrorCode code, uint64_t now_ns);

  // Goes on with transfers that waited for a slot.
  void Advance(uint64_t now_ns) { ResumeForSlots(now_ns); }
  // Forgets that rank's RTRs, which are not valid any more.
  void ForgetNotes(Job& job, uint32_t receiver);

  // Forgets a job that is about to go.
  void Drop(Job& job) {
    for (NodeUse& node : job.uses) {
      slots_.Forget(node.writes);
    }
  }

  uint32_t writes() const { return slots_.under_way(); }

 private:
  friend class Transfers<RndvPuts, RndvPut, Fragment>;

  // The most writes under way, of all transfers. The transport's other slots are left to other
  // operations.
  static constexpr uint32_t kWritesUnderWay = 32;

  static bool MayBegin(const RndvPut& put);
  static SlotFlow& FlowOf(const RndvPut& put) { return put.job->UseOf(put.peer).writes; }
  ErrorCode BeginFragment(TransferId id, RndvPut& put, uint64_t now_ns);
  void OnEnd(const RndvPut& put, ServedRank* rank, uint64_t now_ns);
  static RtrNote* FindNote(ServedRank& rank, uint32_t receiver, const WireReceive& receive);

  transport::Transport& transport_;
  Outbound& outbound_;
  StagingDepot& depot_;  // which counts ends in device memory
  Registrations& registrations_;
};

}  // namespace ferry::progress
