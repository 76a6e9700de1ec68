// The sending side of large messages from private memory, or from device memory that only streams
// reach: stages them for the receiver's daemon.
//
// When such an offer (kRemoteRts) passes, it is noted here. The receiver's daemon asks for it by
// WirePull; then copy workers (or streams) bring the message, piece by piece, into registered
// staging blocks. Each block is announced by WireBlock, read by the peer, and given back by
// WireBlockDone. Where there are too few blocks, the feeds that wait take them by their ranks'
// weights. Where a device is at an end, PipelineRules say how the message is cut. The receiver's
// daemon ends it all with its WireResult; only then, or when that is overdue, are blocks that it
// knows of used for others.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>

#include "internode/delivery/outbound.h"
#include "internode/rndv/transfers.h"

namespace ferry::progress {

struct Feed : Transfer {
  static constexpr bool kReceiving = false;
  static constexpr TraceKind kTraceKind = TraceKind::kFeed;

  uint64_t pull = 0;           // the peer's name for it
  uint64_t longest_bytes = 0;  // of a piece
};

// A block on its way into the peer's hands and back.
struct FeedPiece : Piece {
  bool announced = false;
};

class Feeds : public Transfers<Feeds, Feed, FeedPiece> {
 public:
  // All outlive this.
  Feeds(Outbound& outbound, StagingDepot& depot, const PipelineRules& rules, uint64_t timeout_ns)
      : Transfers(0), outbound_(outbound), depot_(depot), rules_(rules), timeout_ns_(timeout_ns) {}

  // Notes what `rank` offers now by that request, in place of what it offered by it before.
  void OnOffer(ServedRank& rank, uint32_t request, Offer offer);
  // The daemon of `destination` asks for what `rank` offered to it.
  void OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns);
  void OnBlockDone(const Job& job, uint32_t source, uint32_t destination, const WireBlockDone& done,
                   uint64_t now_ns);
  // The receiver's daemon is through with an offer of rank `source`, well or badly.
  void OnResult(Job& job, uint32_t source, uint32_t destination, const WireResult& result,
                uint64_t now_ns);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on where a block was wanting.
  void Advance(uint64_t now_ns);
  void CheckDeadlines(uint64_t now_ns);
  // Gives up the feeds of a rank, and its offers: `rank.operations` falls as copies of its memory
  // end. Tells the receivers.
  void FailOf(ServedRank& rank, ErrorCode error, uint64_t now_ns);
  // A remote rank is gone: offers to it are void.
  void OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns);
  // The same for one rank here, whose peer may live.
  void FailBetween(ServedRank& rank, uint32_t destination, ErrorCode error, uint64_t now_ns);
  // The region is about to go: its offers are void. (For feeds from it, see FailIn.)
  void ForgetRegion(ServedRank& rank, const ServedRegion* region);
  // Forgets what is left of a job whose ranks are gone.
  void Drop(const Job* job, uint64_t now_ns);

 private:
  friend class Transfers<Feeds, Feed, FeedPiece>;

  static bool MayBegin(const Feed& feed);
  static SlotFlow& FlowOf(const Feed& feed) { return BlocksOf(feed); }  // it wants no slots
  ErrorCode BeginPiece(TransferId id, Feed& feed, uint64_t now_ns);
  void OnStopped(Feed& feed, uint64_t now_ns);
  static void OnEnd(const Feed& /*feed*/, ServedRank* /*rank*/, uint64_t /*now_ns*/) {}

  ErrorCode FindSource(const Offer& offer, const WirePull& pull, Feed* feed) const;
  void Refuse(Job& job, uint32_t source, uint32_t destination, uint64_t pull, ErrorCode error,
              uint64_t now_ns);
  // Whether the peer has said that it does not read what was offered any more.
  enum class Peer { kIsThrough, kMayRead };
  static void Void(ServedRank& rank, Offer* offer, Peer peer);
  void Announce(const Feed& feed, const FeedPiece& piece, uint64_t now_ns);
  enum class Reuse { kAtOnce, kUnderAnotherKey };
  void TakeBack(TransferId id, Feed& feed, Reuse reuse, uint64_t now_ns);
  static void TraceOffer(const ServedRank& rank, const Offer& offer, const WireResult& result);

  Outbound& outbound_;
  StagingDepot& depot_;
  const PipelineRules rules_;
  const uint64_t timeout_ns_;
};

}  // namespace ferry::progress
