#include "engine/block_plan.h"

#include <algorithm>

namespace ferry::engine {

BlockPlan::BlockPlan(uint64_t message_bytes, const BlockRules& rules)
    : message_bytes_(message_bytes),
      alignment_bytes_(std::max<uint64_t>(rules.alignment_bytes, 1)),
      block_count_(1),
      halves_first_(rules.mode == BlockMode::kAdvanced) {
  if (rules.mode == BlockMode::kNaive || message_bytes <= rules.threshold_bytes) {
    return;
  }
  // The smallest block, or half of one, must still hold one unit of alignment.
  const uint64_t units = message_bytes / alignment_bytes_;
  const uint64_t most = halves_first_ ? units / 2 : units;
  block_count_ = static_cast<uint32_t>(
      std::clamp<uint64_t>(most, 1, std::max<uint32_t>(rules.block_count, 1)));
}

Block BlockPlan::block(uint32_t index) const {
  const uint64_t begin = OffsetBytes(index);
  const uint64_t end = index + 1 == block_count_ ? message_bytes_ : OffsetBytes(index + 1);
  return {begin, end - begin};
}

Block BlockPlan::Next(uint64_t offset_bytes, uint64_t longest_bytes) const {
  uint32_t index = 0;
  while (index + 1 < block_count_ && OffsetBytes(index + 1) <= offset_bytes) {
    ++index;
  }
  const uint64_t end = index + 1 < block_count_ ? OffsetBytes(index + 1) : message_bytes_;
  return {offset_bytes, std::min(end - offset_bytes, longest_bytes)};
}

// Counted in halves of a block, of which the message has twice block_count_: the even pipeline cuts
// after 2, 4, 6... of them, the advanced one after 1, 3, 5...
uint64_t BlockPlan::OffsetBytes(uint32_t index) const {
  if (index == 0) {
    return 0;
  }
  const uint64_t halves = 2ULL * index - (halves_first_ ? 1 : 0);
  const uint64_t all_halves = 2ULL * block_count_;
  const auto offset =
      static_cast<uint64_t>(static_cast<unsigned __int128>(message_bytes_) * halves / all_halves);
  return offset - offset % alignment_bytes_;
}

}  // namespace ferry::engine
