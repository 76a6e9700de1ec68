// Cuts a message into the blocks of a staging pipeline: copy out of the device, network, copy into
// the device, each block's steps beside those of its neighbours.
//
// After Chen et al., "Implementing and Optimizing a GPU-aware MPI Library for Intel GPUs", section
// IV-B and listing 1. With b = message size / block count, an even pipeline has blocks of b. The
// advanced one halves the first, so that the last step, the slowest, starts sooner, and gives what
// is missing to the last: b/2, b, ..., b, 3b/2.
//
// Pure and without allocation: any thread.
#pragma once

#include <cstdint>

namespace ferry::engine {

enum class BlockMode : uint8_t {
  kNaive,  // no pipeline: one block
  kEven,
  kAdvanced,
};

struct BlockRules {
  BlockMode mode = BlockMode::kAdvanced;
  uint32_t block_count = 2;                 // 0 counts as 1
  uint64_t threshold_bytes = 64ULL * 1024;  // messages up to this size are one block
  uint64_t alignment_bytes = 4096;          // of every block's offset; 0 counts as 1
};

struct Block {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  bool operator==(const Block&) const = default;
};

// The blocks lie side by side and cover the message. None is empty but that of an empty message, so
// a message too small for `block_count` aligned blocks has fewer.
class BlockPlan {
 public:
  BlockPlan(uint64_t message_bytes, const BlockRules& rules);

  uint32_t block_count() const { return block_count_; }
  // `index` lies below block_count().
  Block block(uint32_t index) const;
  // Returns the range to move next once all before `offset_bytes` has been begun: the rest of the
  // block around it, or as much of that as `longest_bytes` (not 0) allows.
  Block Next(uint64_t offset_bytes, uint64_t longest_bytes) const;

 private:
  uint64_t OffsetBytes(uint32_t index) const;

  uint64_t message_bytes_;
  uint64_t alignment_bytes_;
  uint32_t block_count_;
  bool halves_first_;
};

}  // namespace ferry::engine
