// Memory of one job between the network and memory that it cannot reach, in blocks.
//
// Half of the blocks serve data that leaves the node, half data that arrives: a transfer in one
// direction then never waits for one in the other, and so never, around a corner, for itself. A few
// small cells, which the network does not know, carry parked messages (delivery.h) to private
// memory. All of it is one sealed memfd: of other processes only the job's own worker maps it.
//
// Calling thread: the progress thread (that of the transport). Does not block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/registration/registrar.h"
#include "shm/segment.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

using SettleMemory = std::function<void(std::byte* base, uint64_t bytes)>;

enum class StagingUse : uint32_t { kOutgoing = 0, kIncoming = 1 };

struct StagingBlock {
  std::byte* base = nullptr;
  transport::MemoryRegion registration;
  StagingUse use = StagingUse::kOutgoing;
  bool registered = false;
  bool pinning = false;
  bool tainted = false;  // needs another key
};

class StagingPool final : private PinSink {
 public:
  static constexpr uint32_t kCells = 16;

  // Maps `blocks` (2 or more) of `block_bytes`; `settle` (may be empty) has the pages come from
  // where they belong before anybody touches them. Registers them by the registrar: there are no
  // free blocks until it has done so. Without one (null), registers them before it returns. The
  // registrar and then the transport must be destroyed before the pool: the network may hold the
  // memory until then. Errors: kOutOfMemory, kInvalidArgument, and, without a registrar, those of
  // Transport::RegisterMemory.
  static StatusOr<std::unique_ptr<StagingPool>> Create(transport::Transport& transport,
                                                       uint64_t block_bytes, uint32_t blocks,
                                                       const SettleMemory& settle = {},
                                                       Registrar* registrar = nullptr);
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Why the network has just refused the memory; kOk: it has it, or nobody knows yet. Who waits for
  // a block is to be told, then Forgive it.
  ErrorCode failure() const { return failure_; }
  void Forgive() { failure_ = ErrorCode::kOk; }
  // Has the registrar register what is not registered yet.
  void PinAll();

  // Null when none is free.
  StagingBlock* Take(StagingUse use);
  bool HasFree(StagingUse use) const { return !free_[static_cast<uint32_t>(use)].empty(); }
  void Give(StagingBlock* block);
  // Gives back a block that a network, here or at the peer, may still hold after a failure: it is
  // used again once that has let go, and then under another key.
  void GiveTainted(StagingBlock* block);
  // Looks whether tainted blocks can be used again.
  void Recycle();

  // Room of shm::kCellBytes for a parked message; null when none is free.
  std::byte* TakeCell();
  void GiveCell(std::byte* cell) { free_cells_.push_back(cell); }

  // A block or cell that an abandoned copy may still touch is over: it can be used again.
  void Return(std::byte* piece);

  // Who waits for a block, in order: the users' own names.
  std::deque<uint64_t>& waiters(StagingUse use) { return waiters_[static_cast<uint32_t>(use)]; }

  // Lends no block, as if all were in use, until Replenish (for tests, see daemon/faults/).
  void Exhaust();
  void Replenish();

  // Takes everything from the network. True once it has let go of all: call again until then.
  bool Close();

  uint64_t block_bytes() const { return block_bytes_; }
  // Blocks and cells: the most there can be in use at a time.
  uint32_t pieces() const;
  uint32_t IndexOf(const StagingBlock& block) const {
    return static_cast<uint32_t>(&block - blocks_.data());
  }
  uint32_t blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  bool has_tainted() const { return !tainted_.empty(); }
  // Blocks in use or tainted.
  uint32_t busy() const;
  // For the job's worker.
  const std::shared_ptr<UniqueFd>& fd() const { return fd_; }
  std::byte* base() const { return mapping_->base(); }
  uint64_t size_bytes() const { return mapping_->size_bytes(); }

 private:
  StagingPool(transport::Transport& transport, Registrar* registrar, UniqueFd fd,
              shm::Mapping mapping, uint64_t block_bytes, uint32_t blocks);
  Status Register(StagingBlock* block);
  Status Adopt(StagingBlock* block, std::unique_ptr<transport::Registration> registration);
  void Pin(StagingBlock* block);
  void OnPinned(Pinning& pinning) override;
  void GiveAllIfComplete();
  bool Release(StagingBlock* block);

  transport::Transport& transport_;
  Registrar* const registrar_;
  const std::shared_ptr<UniqueFd> fd_;
  const std::shared_ptr<const shm::Mapping> mapping_;
  const uint64_t block_bytes_;
  std::vector<StagingBlock> blocks_;
  std::array<std::vector<StagingBlock*>, 2> free_;
  std::array<std::vector<StagingBlock*>, 2> kept_back_;
  std::vector<StagingBlock*> tainted_;
  bool complete_ = false;  // all blocks were registered once
  uint32_t pinning_ = 0;   // blocks
  ErrorCode failure_ = ErrorCode::kOk;
  bool exhausted_ = false;
  std::vector<std::byte*> free_cells_;
  std::array<std::deque<uint64_t>, 2> waiters_;
};

}  // namespace ferry::daemon
