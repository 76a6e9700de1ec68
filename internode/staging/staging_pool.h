// Memory of one job between the network and memory that it cannot reach, in blocks.
//
// Half of the blocks serve data that leaves the node, half data that arrives: a transfer in one
// direction then never waits for one in the other, and so never, around a corner, for itself. Each
// half begins with a few blocks, gets more while transfers wait for one, and lets those go that
// have been idle for a while; while there are too few, the job's ranks share them by their weights.
// A few small cells, which the network does not know, carry parked messages (delivery.h) to private
// memory. All of it is one sealed memfd: of other processes only the job's own worker maps it.
//
// Calling thread: the progress thread (that of the transport). Does not block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "internode/registration/pinned_memory.h"
#include "internode/staging/copier.h"
#include "internode/staging/slot_shares.h"
#include "shm/segment.h"

namespace ferry::progress {

using FlowWeights = std::map<uint32_t, uint32_t>;  // by flow, 1 or more; 1 for others

// Decides which waiting transfer gets the next block: start-time fair queueing (Goyal, Vin and
// Cheng, SIGCOMM 1996).
//
// Each flow (a rank) has a line of its own, first come first served. A grant costs its flow bytes /
// weight of virtual time, and the flow that is furthest behind is next. So flows that want more
// than there is move bytes by their weights, to within a block or two, however many wait in each
// line and however long their blocks are; none waits for ever; and one that wanted nothing for a
// while has saved up nothing.
//
// Pure: no clock, no memory but its own. One thread.
class FairQueue {
 public:
  explicit FairQueue(FlowWeights weights = {});

  // Puts `id`, a name of the user's choice, behind the others of its flow. `part`: see PopIf.
  void Push(uint32_t flow, uint64_t id, const SlotFlow* part = nullptr);
  // Takes out the id whose turn it is. There must be one.
  uint64_t Pop() {
    return *PopIf([](const SlotFlow*) { return true; });
  }
  // Takes out the id whose turn it is among those for whose part may_go(part) is true; nothing if
  // there is none.
  std::optional<uint64_t> PopIf(const std::function<bool(const SlotFlow* part)>& may_go);
  // Takes out all ids, in the order of their turns.
  std::vector<uint64_t> PopAll();
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Notes that the flow was given `bytes`, after a wait or without one.
  void Charge(uint32_t flow, uint64_t bytes);

  // Notes that the flow holds one block more, or less.
  void Hold(uint32_t flow) { ++FlowOf(flow).held; }
  void Drop(uint32_t flow) { --FlowOf(flow).held; }
  // Returns the flow's part of `total` among the flows that hold or want blocks, itself among them;
  // rounded down.
  uint32_t ShareOf(uint32_t flow, uint32_t total);

 private:
  struct Waiting {
    uint64_t id;
    const SlotFlow* part;
  };
  struct Flow {
    uint64_t weight = 1;
    uint64_t start = 0;   // of what it is given next, while one of its line waits; virtual time
    uint64_t finish = 0;  // of what it was given last
    uint32_t held = 0;
    std::deque<Waiting> line;
  };

  Flow& FlowOf(uint32_t flow);

  const FlowWeights weights_;
  std::map<uint32_t, Flow> flows_;
  uint64_t now_ = 0;  // virtual: the start of what was given last
  size_t size_ = 0;
};

// Tells the operator of the node something. Any thread.
using TellOperator = std::function<void(const std::string& text)>;

// The memory of which blocks are fragments.
struct StagingMemory {
  UniqueFd fd;
  shm::Mapping mapping;
  TellOperator tell;  // may be empty
};

// The memory of a staging block while it is a part of its pool: admitted to its MemoryUser, and in
// the end, when no owner is left, dismissed, and its pages given back to the system.
//
// A pool's memfd has its full size from the start, for the job's worker maps it once and it is
// sealed against resizing. Pages come where they are first touched, and go by punching a hole: the
// block's place in the file and in every mapping stays, with the keys and offsets that others hold,
// and a process that touches it nevertheless finds zeros.
//
// Threads: any, one at a time; Admit and the destructor may take milliseconds, and belong on the
// registrar's thread.
class BlockMemory {
 public:
  // `user` may be null.
  BlockMemory(std::shared_ptr<const StagingMemory> whole, std::byte* base, uint64_t bytes,
              std::shared_ptr<MemoryUser> user);
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  // Tells the user of the memory, unless that was done before.
  void Admit();

 private:
  const std::shared_ptr<const StagingMemory> whole_;
  std::byte* const base_;
  const uint64_t bytes_;
  const std::shared_ptr<MemoryUser> user_;
  bool admitted_ = false;
};

using SettleMemory = std::function<void(std::byte* base, uint64_t bytes)>;

enum class StagingUse : uint32_t { kOutgoing = 0, kIncoming = 1 };

// The shape that a pool is to have.
struct StagingShape {
  static constexpr uint64_t kNeverIdle = UINT64_MAX;

  uint64_t block_bytes = 0;
  uint32_t blocks = 0;        // at most
  uint32_t least_blocks = 0;  // that it begins with, and keeps; 0, or more than `blocks`: all
  uint64_t idle_ns = 0;       // for how long others must have been free before they go;
                              // kNeverIdle: they stay
  FlowWeights weights = {};   // of the job's ranks
  std::shared_ptr<MemoryUser> user = nullptr;  // may be null
  TellOperator tell = {};                      // may be empty
};

struct StagingBlock {
  std::byte* base = nullptr;
  PinnedMemory pinned;  // its BlockMemory
  StagingUse use = StagingUse::kOutgoing;
  bool present = false;      // a part of the pool now
  bool growing = false;      // pinned for the first time since it became a part of the pool
  bool tainted = false;      // needs another key
  uint32_t rank = 0;         // that has it, while it is lent
  SlotFlow* flow = nullptr;  // the flow that it counts for, while it is lent; null: none
};

class StagingPool {
 public:
  static constexpr uint32_t kCells = 16;

  // Maps the blocks (2 or more); `settle` (may be empty) has the pages come from where they belong
  // before they are touched. Registers the blocks that the pool begins with: there are no free
  // blocks until the registrar has done so. The registrar outlives all calls; see PinnedMemory for
  // the end. Errors: kOutOfMemory, kInvalidArgument.
  static StatusOr<std::unique_ptr<StagingPool>> Create(Registrar& registrar,
                                                       const StagingShape& shape,
                                                       const SettleMemory& settle = {});
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Returns why the network has just refused the memory; ok: it has the memory, or has not decided
  // yet. Tell the transfers that wait for a block, then call Forgive.
  const Status& failure() const { return failure_; }
  void Forgive() { failure_ = {}; }
  // Has the registrar register the blocks that are not registered yet.
  void PinAll();
  // Adds blocks to a half in which all are in use and a transfer waits for one; they are free once
  // the registrar has pinned them. If that fails, the transfers go on with the blocks that there
  // are, and the pool tries again after idle_ns.
  void Grow();
  // Lets blocks go that were free all the time since the call before the last idle_ns.
  void Trim(uint64_t now_ns);

  // Lends a block to `rank`; null when none is free. A caller that finds others waiting has to wait
  // behind them, and takes one when HasFree and its turn (waiters().Pop) have come. The block
  // counts for `flow`, which may be null.
  StagingBlock* Take(StagingUse use, uint32_t rank, SlotFlow* flow = nullptr);
  // Counts `bytes`, which move through the block, against the share of its rank.
  void Charge(const StagingBlock& block, uint64_t bytes);
  // Returns how many blocks one transfer of the rank may have: `usual` while there are enough, more
  // when others wait and it would otherwise get less than its rank's share.
  uint32_t Window(StagingUse use, uint32_t rank, uint32_t usual);
  bool HasFree(StagingUse use) const { return !HalfOf(use).free.empty(); }
  void Give(StagingBlock* block);
  // Gives back a block that a network, here or at the peer, may still hold after a failure: it is
  // used again once that has let go, and then under another key.
  void GiveTainted(StagingBlock* block);
  // Looks whether tainted blocks can be used again.
  void Recycle();

  // Returns a cell, room of shm::kCellBytes for a parked message; null when none is free.
  std::byte* TakeCell();
  void GiveCell(std::byte* cell) { free_cells_.push_back(cell); }

  // Takes back a block or cell at the end of the abandoned copy that could still touch it.
  void Return(std::byte* fragment);

  // The transfers that wait for a block, by rank, under names of their own choice.
  FairQueue& waiters(StagingUse use) { return HalfOf(use).waiters; }
  const FairQueue& waiters(StagingUse use) const { return HalfOf(use).waiters; }

  // The parts of the nodes that the job's ranks talk to, so that a node that stands still does not
  // hold all blocks. Ask before Take.
  SlotShares& shares(StagingUse use) { return HalfOf(use).shares; }

  // Exhaust makes the pool lend no block, as if all were in use, until Replenish (for tests, see
  // daemon/faults/).
  void Exhaust();
  void Replenish();

  // Keeps the blocks that are lent or tainted until that time, also after the end of the pool,
  // because peers may still read them.
  void KeepLentUntil(uint64_t time_ns);

  uint64_t block_bytes() const { return shape_.block_bytes; }
  // Returns the most blocks and cells that can ever be in use at a time.
  uint32_t fragments() const;
  uint32_t IndexOf(const StagingBlock& block) const {
    return static_cast<uint32_t>(&block - blocks_.data());
  }
  // Returns the number of blocks that are lent, or can be.
  uint32_t blocks() const;
  uint32_t most_blocks() const { return shape_.blocks; }
  // Returns true if the pool has more blocks than it is to keep.
  bool has_spare() const;
  // Return the number of blocks that the pool has got beside the first ones, and has let go.
  uint64_t grown() const { return grown_; }
  uint64_t shrunk() const { return shrunk_; }
  bool has_tainted() const { return !tainted_.empty(); }
  // Returns the number of blocks in use or tainted.
  uint32_t busy() const;
  // The pool's memfd, for the job's worker.
  std::shared_ptr<const UniqueFd> fd() const { return {memory_, &memory_->fd}; }
  std::byte* base() const { return memory_->mapping.base(); }
  uint64_t size_bytes() const { return memory_->mapping.size_bytes(); }

 private:
  // The blocks for one direction.
  struct Half {
    Half(const FlowWeights& weights, uint32_t most_of_one)
        : waiters(weights), shares(most_of_one) {}
    std::vector<StagingBlock*> free;       // the one used last comes last
    std::vector<StagingBlock*> kept_back;  // Exhaust
    std::vector<StagingBlock*> absent;     // no part of the pool now
    uint32_t present = 0;                  // the others
    uint32_t least = 0;                    // of `present`
    uint32_t growing = 0;                  // of `present`: being pinned
    size_t unneeded = 0;                   // the least that were free since the last Trim
    FairQueue waiters;
    SlotShares shares;
  };

  StagingPool(Registrar& registrar, std::shared_ptr<const StagingMemory> memory,
              const StagingShape& shape);
  Half& HalfOf(StagingUse use) { return halves_[static_cast<uint32_t>(use)]; }
  const Half& HalfOf(StagingUse use) const { return halves_[static_cast<uint32_t>(use)]; }
  static StagingBlock* Enlist(Half& half);
  void Leave(StagingBlock* block);
  void Grow(Half& half);
  void OnGrown(StagingBlock* block);
  void Pin(StagingBlock* block);
  void OnPinned(StagingBlock* block);
  void GiveAllIfComplete();
  void TakeBack(StagingBlock* block);
  void Free(StagingBlock* block) { HalfOf(block->use).free.push_back(block); }

  Registrar& registrar_;
  const std::shared_ptr<const StagingMemory> memory_;
  const StagingShape shape_;
  const std::shared_ptr<BlockMemory> cells_;
  std::vector<StagingBlock> blocks_;  // present or not
  std::array<Half, 2> halves_;
  std::vector<StagingBlock*> tainted_;
  bool complete_ = false;  // all blocks that it begins with were registered once
  bool refused_ = false;   // the network took no more since the last Trim
  uint64_t trimmed_ns_ = 0;
  uint64_t grown_ = 0;
  uint64_t shrunk_ = 0;
  Status failure_;
  bool exhausted_ = false;
  std::vector<std::byte*> free_cells_;
};

}  // namespace ferry::progress
