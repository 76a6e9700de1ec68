#include "client/mpi/collective/problem.h"

#include <numeric>

namespace ferry::mpi {

const char* CollectiveName(Collective collective) {
  switch (collective) {
    case Collective::kBarrier:
      return "barrier";
    case Collective::kBcast:
      return "bcast";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllgather:
      return "allgather";
    case Collective::kAlltoall:
      return "alltoall";
    case Collective::kReduce:
      return "reduce";
    case Collective::kAllreduce:
      return "allreduce";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kScan:
      return "scan";
    case Collective::kExscan:
      return "exscan";
    case Collective::kNeighbourAllgather:
      return "neighbor_allgather";
    case Collective::kNeighbourAlltoall:
      return "neighbor_alltoall";
  }
  return "collective";
}

Range Problem::SendBlock(int i) const {
  const auto index = static_cast<size_t>(i);
  if (!has_blocks || send_blocks.empty()) {
    return {Place::kInput, index * block_bytes, block_bytes};
  }
  return {Place::kInput, send_blocks[index].offset_bytes, send_blocks[index].size_bytes};
}

Range Problem::ReceiveBlock(int i) const {
  const auto index = static_cast<size_t>(i);
  if (!has_blocks || receive_blocks.empty()) {
    return {Place::kOutput, index * block_bytes, block_bytes};
  }
  return {Place::kOutput, receive_blocks[index].offset_bytes, receive_blocks[index].size_bytes};
}

size_t Problem::VectorBytes() const {
  if (collective != Collective::kReduceScatter) {
    return block_bytes;
  }
  if (!has_blocks) {
    return block_bytes * static_cast<size_t>(size);
  }
  return std::accumulate(receive_blocks.begin(), receive_blocks.end(), size_t{0},
                         [](size_t sum, const Block& block) { return sum + block.size_bytes; });
}

Range Problem::ReductionInput() const {
  return {in_place ? Place::kOutput : Place::kInput, 0, VectorBytes()};
}

}  // namespace ferry::mpi
