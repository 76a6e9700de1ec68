// StagedSends: the sending side of large messages from private memory, or from device memory that
// only streams reach. Stages them for the receiver's daemon.
//
// When the RTS of such a message (kRemoteRts) passes, it is noted here. The receiver's daemon asks
// for the message by WireRndvGet; then copy workers (or streams) bring the message, fragment by
// fragment, into registered staging blocks. Each block is announced by WireBlock, read by the peer,
// and given back by WireBlockDone. Where there are too few blocks, the staged sends that wait take
// them by their ranks' weights. Where one end is in device memory, PipelineRules say how the
// message is cut. The receiver's daemon ends the staged send with its WireResult; only then, or
// when that is overdue, are the blocks that it knows used for other messages.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>

#include "internode/delivery/outbound.h"
#include "internode/rndv/transfers.h"

namespace ferry::progress {

struct StagedSend : Transfer {
  static constexpr bool kReceiving = false;
  static constexpr TraceKind kTraceKind = TraceKind::kStagedSend;

  uint64_t rndv_get = 0;       // the peer's number of it
  uint64_t longest_bytes = 0;  // of a fragment
};

// A block that the peer reads and gives back.
struct StagedSendFragment : Fragment {
  bool announced = false;
};

class StagedSends : public Transfers<StagedSends, StagedSend, StagedSendFragment> {
 public:
  // All references outlive this.
  StagedSends(Outbound& outbound, StagingDepot& depot, const PipelineRules& rules,
              uint64_t timeout_ns)
      : Transfers(0), outbound_(outbound), depot_(depot), rules_(rules), timeout_ns_(timeout_ns) {}

  // Notes the RTS that `rank` sends now for that request, in place of an earlier one of the
  // request.
  void OnRts(ServedRank& rank, uint32_t request, SentRts rts);
  // The daemon of `destination` asks for a message that `rank` has announced to it.
  void OnRndvGet(ServedRank& rank, uint32_t destination, const WireRndvGet& rndv_get,
                 uint64_t now_ns);
  void OnBlockDone(const Job& job, uint32_t source, uint32_t destination, const WireBlockDone& done,
                   uint64_t now_ns);
  // The receiver's daemon has finished with an RTS of rank `source`, with success or an error.
  void OnResult(Job& job, uint32_t source, uint32_t destination, const WireResult& result,
                uint64_t now_ns);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on with staged sends that waited for a block.
  void Advance(uint64_t now_ns);
  void CheckDeadlines(uint64_t now_ns);
  // Gives up the staged sends of a rank, and its RTSs: `rank.operations` falls as copies of its
  // memory end. Tells the receivers.
  void FailOf(ServedRank& rank, ErrorCode error, uint64_t now_ns);
  // Voids the RTSs to a remote rank that is gone.
  void OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns);
  // Fails the staged sends from one rank here to `destination`, which may be alive.
  void FailBetween(ServedRank& rank, uint32_t destination, ErrorCode error, uint64_t now_ns);
  // Voids the RTSs of a region that is about to go. (For staged sends from it, see FailIn.)
  void ForgetRegion(ServedRank& rank, const ServedRegion* region);
  // Forgets all of a job whose ranks are gone.
  void Drop(const Job* job, uint64_t now_ns);

 private:
  friend class Transfers<StagedSends, StagedSend, StagedSendFragment>;

  static bool MayBegin(const StagedSend& staged_send);
  static SlotFlow& FlowOf(const StagedSend& staged_send) {
    return BlocksOf(staged_send);
  }  // it needs no slots
  ErrorCode BeginFragment(TransferId id, StagedSend& staged_send, uint64_t now_ns);
  void OnStopped(StagedSend& staged_send, uint64_t now_ns);
  static void OnEnd(const StagedSend& /*staged send*/, ServedRank* /*rank*/, uint64_t /*now_ns*/) {}

  ErrorCode FindSource(const SentRts& rts, const WireRndvGet& rndv_get,
                       StagedSend* staged_send) const;
  void Refuse(Job& job, uint32_t source, uint32_t destination, uint64_t rndv_get, ErrorCode error,
              uint64_t now_ns);
  // kIsThrough: the peer has said that it does not read the announced memory any more.
  enum class Peer { kIsThrough, kMayRead };
  static void Void(ServedRank& rank, SentRts* rts, Peer peer);
  void Announce(const StagedSend& staged_send, const StagedSendFragment& fragment, uint64_t now_ns);
  enum class Reuse { kAtOnce, kUnderAnotherKey };
  void TakeBack(TransferId id, StagedSend& staged_send, Reuse reuse, uint64_t now_ns);
  static void TraceRts(const ServedRank& rank, const SentRts& rts, const WireResult& result);

  Outbound& outbound_;
  StagingDepot& depot_;
  const PipelineRules rules_;
  const uint64_t timeout_ns_;
};

}  // namespace ferry::progress
