// The sending side of large messages from private memory, or from device memory that only streams
// reach: stages them for the receiver's daemon.
//
// When such an offer (kRemoteRts) passes, it is noted here. The receiver's daemon asks for it by
// WirePull; then copy workers (or streams) bring the message, block by block, into registered
// staging memory, each block is announced by WireBlock, read by the peer, and given back by
// WireBlockDone. A few blocks are in use at a time; where there are too few, those who wait take
// them by their ranks' weights. Between private memory and the network the
// first is a quarter as long as the others; where a device is at an end, PipelineRules say how the
// message is cut. The receiver's daemon ends it all with its WireResult; only then, or when that is
// overdue, are blocks that it knows of used for others.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <optional>

#include "common/slot_map.h"
#include "daemon/staging/copier.h"
#include "daemon/staging/staging_depot.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"

namespace ferry::daemon {

enum class FeedId : uint64_t {};
enum class FeedBlockId : uint64_t {};

class Feeds {
 public:
  // All outlive this.
  Feeds(Outbound& outbound, StagingDepot& depot, const PipelineRules& rules, uint64_t timeout_ns)
      : outbound_(outbound), depot_(depot), rules_(rules), timeout_ns_(timeout_ns) {}

  // Notes what `rank` offers now by that request, in place of what it offered by it before.
  void OnOffer(ServedRank& rank, uint32_t request, Offer offer);
  // The daemon of `destination` asks for what `rank` offered to it.
  void OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns);
  void OnBlockDone(const Job& job, uint32_t source, uint32_t destination, const WireBlockDone& done,
                   uint64_t now_ns);
  // The receiver's daemon is through with an offer of rank `source`, well or badly.
  void OnResult(Job& job, uint32_t source, uint32_t destination, const WireResult& result);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on where a block was wanting.
  void Advance(uint64_t now_ns);
  void CheckDeadlines(uint64_t now_ns);
  // Gives up the feeds of a rank: `rank.operations` falls as copies of its memory end. Tells the
  // receivers.
  void CancelOf(ServedRank& rank, ErrorCode error, uint64_t now_ns);
  // A remote rank is gone: offers to it are void.
  void OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns);
  // The region is about to go: its offers are void,
  void ForgetRegion(ServedRank& rank, const ServedRegion* region);
  // and so are the feeds from it; region->users falls as copies of it end.
  void CancelFrom(const ServedRegion* region, ErrorCode error, uint64_t now_ns);
  // Forgets what is left of a job whose ranks are gone.
  void Drop(const Job* job);

  // Reports the feeds of `rank`, for people who look.
  void Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports);

  // Writes into the trace what has not ended yet.
  void TraceUnfinished();

  bool empty() const { return feeds_.empty(); }

 private:
  struct Feed {
    Job* job = nullptr;
    ServedRank* rank = nullptr;  // null once its memory is not touched any more
    uint32_t source = 0;         // rank
    uint32_t destination = 0;    // rank
    uint32_t request = 0;
    uint32_t generation = 0;
    uint64_t pull = 0;               // the peer's name for it
    Stage* stage = nullptr;          // of the job
    uint64_t address = 0;            // in the rank's process,
    ServedRegion* region = nullptr;  // or in a region of device memory, while that is in use,
    uint32_t region_id = 0;
    std::byte* device = nullptr;  // and, if this process has imported that, where
    std::optional<engine::BlockPlan> plan;
    uint64_t longest_bytes = 0;  // of a block
    uint64_t size_bytes = 0;
    uint64_t begun_bytes = 0;
    uint64_t done_bytes = 0;
    uint32_t copying = 0;    // blocks that are being filled
    uint32_t announced = 0;  // blocks that the peer may read
    bool queued = false;     // among the waiters of its job's staging memory
    bool cancelled = false;  // no more blocks; waits for the peer's result
    uint64_t heard_ns = 0;   // when the peer, or a copy worker, last did something
    uint64_t begun_ns = 0;
    ErrorCode error = ErrorCode::kOk;  // the first
  };
  struct Block {
    FeedBlockId self{};
    FeedId feed{};
    StagingBlock* staging = nullptr;
    uint64_t offset = 0;
    uint32_t size_bytes = 0;
    bool announced = false;
    uint64_t begun_ns = 0;  // announced
  };

  ErrorCode FindSource(ServedRank& rank, const Offer& offer, const WirePull& pull,
                       Feed* feed) const;
  engine::Block NextBlock(const Feed& feed) const;
  void Refuse(Job& job, uint32_t source, uint32_t destination, uint64_t pull, ErrorCode error,
              uint64_t now_ns);
  // Whether the peer has said that it does not read what was offered any more.
  enum class Peer { kIsThrough, kMayRead };
  static void Void(ServedRank& rank, Offer* offer, Peer peer);
  void Step(FeedId id, Feed& feed, uint64_t now_ns);
  static bool MayBegin(const Feed& feed);
  bool BeginBlock(FeedId id, Feed& feed, uint64_t now_ns);
  void Advance(StagingPool& pool, uint64_t now_ns);
  void Announce(const Feed& feed, const Block& block, uint64_t now_ns);
  void Cancel(FeedId id, Feed& feed, ErrorCode error, uint64_t now_ns);
  enum class Reuse { kAtOnce, kUnderAnotherKey };
  void TakeBack(FeedId id, Feed& feed, Reuse reuse);
  void EndIfDone(FeedId id, Feed& feed);
  static TraceRecord RecordOf(const Feed& feed, TraceKind kind, uint64_t begin_ns);
  static void Trace(const Feed& feed, const Block& block, TraceRecord record, ErrorCode error);
  static void TraceLent(const Feed& feed, const Block& block, ErrorCode error);
  static void TraceOffer(const ServedRank& rank, const Offer& offer, const WireResult& result);
  static void NoteError(ErrorCode error, Feed* feed);

  Outbound& outbound_;
  StagingDepot& depot_;
  const PipelineRules rules_;
  const uint64_t timeout_ns_;
  SlotMap<FeedId, Feed> feeds_;
  SlotMap<FeedBlockId, Block> blocks_;
};

}  // namespace ferry::daemon
