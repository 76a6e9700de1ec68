#include "coll/problem.h"

#include <numeric>

namespace ferry::collective {

const char* CollectiveName(Collective collective) {
  static constexpr const char* kNames[kCollectives] = {
      "barrier",           "bcast",    "gather", "scatter",
      "allgather",         "alltoall", "reduce", "allreduce",
      "reduce_scatter",    "scan",     "exscan", "neighbor_allgather",
      "neighbor_alltoall",
  };
  const auto index = static_cast<size_t>(collective);
  return index < kCollectives ? kNames[index] : "collective";
}

Range Problem::BlockAt(Place place, const std::vector<Block>& blocks, int i) const {
  const auto index = static_cast<size_t>(i);
  return !has_blocks || blocks.empty()
             ? Range{place, index * block_bytes, block_bytes}
             : Range{place, blocks[index].offset_bytes, blocks[index].size_bytes};
}

size_t BytesOf(const std::vector<Block>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), size_t{0},
                         [](size_t sum, const Block& block) { return sum + block.size_bytes; });
}

size_t Problem::VectorBytes() const {
  if (collective != Collective::kReduceScatter) {
    return block_bytes;
  }
  return has_blocks ? BytesOf(receive_blocks) : block_bytes * static_cast<size_t>(size);
}

Range Problem::ReductionInput() const {
  return {in_place ? Place::kOutput : Place::kInput, 0, VectorBytes()};
}

}  // namespace ferry::collective
