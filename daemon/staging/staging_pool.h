// Pinned memory between the network and memory that it cannot reach, in blocks.
//
// Half of the blocks serve data that leaves the node, half data that arrives: a transfer in one
// direction then never waits for one in the other, and so never, around a corner, for itself.
//
// Calling thread: the progress thread (that of the transport). Does not block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

enum class StagingUse : uint32_t { kOutgoing = 0, kIncoming = 1 };

struct StagingBlock {
  std::byte* base = nullptr;
  transport::MemoryRegion registration;
  StagingUse use = StagingUse::kOutgoing;
  bool registered = false;
};

class StagingPool {
 public:
  // Maps and registers `blocks` (2 or more) of `block_bytes`. The transport must be destroyed
  // before the pool: it may hold the memory until then. Errors: kOutOfMemory, kInvalidArgument, and
  // those of Transport::RegisterMemory.
  static StatusOr<std::unique_ptr<StagingPool>> Create(transport::Transport& transport,
                                                       uint64_t block_bytes, uint32_t blocks);
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Null when none is free.
  StagingBlock* Take(StagingUse use);
  bool HasFree(StagingUse use) const { return !free_[static_cast<uint32_t>(use)].empty(); }
  void Give(StagingBlock* block);
  // Gives back a block that a network, here or at the peer, may still hold after a failure: it is
  // used again once that has let go, and then under another key.
  void GiveTainted(StagingBlock* block);
  // Looks whether tainted blocks can be used again.
  void Recycle();

  uint64_t block_bytes() const { return block_bytes_; }
  bool has_tainted() const { return !tainted_.empty(); }
  // Blocks in use or tainted.
  uint32_t busy() const;

 private:
  StagingPool(transport::Transport& transport, std::byte* base, uint64_t block_bytes,
              uint32_t blocks);
  Status Register(StagingBlock* block);

  transport::Transport& transport_;
  std::byte* const base_;
  const uint64_t block_bytes_;
  std::vector<StagingBlock> blocks_;
  std::array<std::vector<StagingBlock*>, 2> free_;
  std::vector<StagingBlock*> tainted_;
};

}  // namespace ferry::daemon
