// The sending side of large messages from private memory: stages them for the receiver's daemon.
//
// When a private offer (kRemoteRts) passes, it is noted here. The receiver's daemon asks for it by
// WirePull; then copy workers bring the message, block by block, into registered staging memory,
// each block is announced by WireBlock, read by the peer, and given back by WireBlockDone. A few
// blocks are in use at a time, the first a quarter as long. The receiver's daemon ends it all with
// its WireResult.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <deque>

#include "common/slot_map.h"
#include "daemon/progress/directory.h"
#include "daemon/progress/outbound.h"
#include "daemon/staging/copy_pool.h"
#include "daemon/staging/staging_pool.h"

namespace ferry::daemon {

enum class FeedId : uint64_t {};
enum class FeedBlockId : uint64_t {};

class Feeds {
 public:
  // All outlive this.
  Feeds(Outbound& outbound, StagingPool& staging, CopyPool& copies, uint64_t timeout_ns)
      : outbound_(outbound), staging_(staging), copies_(copies), timeout_ns_(timeout_ns) {}

  // Notes what `rank` offers now by that request: a private buffer if `offer.valid`.
  void OnOffer(ServedRank& rank, uint32_t request, const Offer& offer);
  // The daemon of `destination` asks for what `rank` offered to it.
  void OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns);
  void OnBlockDone(const ServedRank& rank, uint32_t destination, const WireBlockDone& done,
                   uint64_t now_ns);
  // The receiver's daemon is through with the offer, well or badly.
  void OnResult(ServedRank& rank, uint32_t destination, const WireResult& result);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on where a block was wanting.
  void Advance(uint64_t now_ns);
  void CheckDeadlines(uint64_t now_ns);
  // Gives up feeds; each ends once no copy of it is under way.
  void CancelOf(const ServedRank* rank);
  void CancelTo(const Job* job, uint32_t destination);

  bool empty() const { return feeds_.empty(); }

 private:
  struct Feed {
    ServedRank* rank = nullptr;
    uint32_t request = 0;
    uint32_t generation = 0;
    uint32_t destination = 0;  // rank
    uint64_t pull = 0;         // the peer's name for it
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    uint64_t begun_bytes = 0;
    uint64_t done_bytes = 0;
    uint32_t blocks = 0;  // in use
    bool queued = false;  // in wants_block_
    bool cancelled = false;
    uint64_t heard_ns = 0;  // when the peer, or a copy worker, last did something
  };
  struct Block {
    FeedBlockId self{};
    FeedId feed{};
    StagingBlock* staging = nullptr;
    uint64_t offset = 0;
    uint32_t size_bytes = 0;
    bool announced = false;
  };

  void Refuse(ServedRank& rank, uint32_t destination, const WirePull& pull, ErrorCode error,
              uint64_t now_ns);
  void Step(FeedId id, Feed& feed, uint64_t now_ns);
  bool BeginBlock(FeedId id, Feed& feed);
  void Announce(const Feed& feed, const Block& block, ErrorCode error, uint64_t now_ns);
  void Cancel(FeedId id, Feed& feed);
  void EndIfIdle(FeedId id, Feed& feed);

  Outbound& outbound_;
  StagingPool& staging_;
  CopyPool& copies_;
  const uint64_t timeout_ns_;
  SlotMap<FeedId, Feed> feeds_;
  SlotMap<FeedBlockId, Block> blocks_;
  std::deque<FeedId> wants_block_;
};

}  // namespace ferry::daemon
