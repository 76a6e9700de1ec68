// The task of a collective, as one rank knows it, in bytes. Algorithms make schedules from it.
//
// Data are contiguous here: blocks at offsets of the input (the send buffer) and of the output (the
// receive buffer). The caller packs data that are not. Plain data: any thread, nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/schedule.h"
#include "common/number_list.h"

namespace ferry::collective {

// MPI 5.0, chapter 6. The v and w forms are those with blocks of their own; neighbourhood ones are
// section 8.6.
enum class Collective : uint8_t {
  kBarrier,
  kBcast,
  kGather,
  kScatter,
  kAllgather,
  kAlltoall,
  kReduce,
  kAllreduce,
  kReduceScatter,
  kScan,
  kExscan,
  kNeighbourAllgather,
  kNeighbourAlltoall
};
inline constexpr size_t kCollectives = 13;

constexpr bool IsAmongNeighbours(Collective collective) {
  return collective == Collective::kNeighbourAllgather ||
         collective == Collective::kNeighbourAlltoall;
}

constexpr bool HasRoot(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kGather ||
         collective == Collective::kScatter || collective == Collective::kReduce;
}

// The name in tables and messages: "reduce_scatter". Never null.
const char* CollectiveName(Collective collective);

// `root` of a rooted collective of an intercommunicator, at the root and beside it; in the other
// group, it is the root's index in its own.
inline constexpr int kRootHere = -2;
inline constexpr int kRootBeside = -1;

struct Block {
  size_t offset_bytes = 0;
  size_t size_bytes = 0;
  bool operator==(const Block&) const = default;
};
size_t BytesOf(const std::vector<Block>& blocks);

// The ranks that take part in a problem: all, or for a part of a collective (coll/levels) those of
// a node, or the leaders of all nodes.
enum class Among : uint8_t { kAll, kNode, kLeaders };

struct Problem {
  Collective collective = Collective::kBarrier;
  int rank = 0;
  int size = 1;
  int root = 0;  // of bcast, gather, scatter, reduce
  // True if the input and the output are the same memory. Bcast: always kOutput. Otherwise, at the
  // ranks where MPI_IN_PLACE stands, the input lies in kOutput where the standard says so; scatter:
  // the root's block stays in kInput.
  bool in_place = false;

  // Bcast, reduce, allreduce, scan, exscan: the whole vector. Others: one rank's block, unless
  // there are explicit ones.
  size_t block_bytes = 0;
  // Explicit blocks by rank (or by neighbour), where this rank is to know them: `send_blocks` of
  // scatterv and alltoallv, `receive_blocks` of gatherv, allgatherv and alltoallv; of a
  // reduce_scatter, `receive_blocks` are the parts of the vector. `block_bytes` is then this rank's
  // own block where only that is known (gatherv, scatterv).
  bool has_blocks = false;
  std::vector<Block> send_blocks;
  std::vector<Block> receive_blocks;
  // The parts of a reduce_scatter do not lie next to each other, on some rank at least: all know
  // it.
  bool are_parts_apart = false;

  size_t element_bytes = 1;  // reductions never split elements
  bool commutative = true;
  // All ranks know that data of some of them are in device memory that CPUs do not reach.
  // (Otherwise each rank knows only of its own.)
  bool of_devices = false;
  // For an intercommunicator: `rank` and `size` count both groups, `sources` are the ranks of this
  // one's group and `destinations` those of the other, each in its group's order. Blocks are those
  // of the other group; of a reduce_scatter, of this one's. `send_blocks` of an allgather is the
  // own block.
  bool is_inter = false;

  // Neighbourhood collectives: in the order of the topology. A negative rank stands for no
  // neighbour.
  std::vector<int> sources;
  std::vector<int> destinations;
  // Along each dimension the neighbour before and the one after: a block sent one way arrives from
  // the other, also where both are the same rank.
  bool is_cartesian = false;

  NumberList node_of;  // by rank; empty: all on one node
  // In a problem that is a part of a collective, `rank`, `size` and `root` still count all ranks;
  // blocks are those of the ranks that take part, in their order.
  Among among = Among::kAll;

  size_t segment_bytes = 0;  // what algorithms cut long messages into; 0: they do not

  // The range of block `i` in either buffer.
  Range SendBlock(int i) const { return BlockAt(Place::kInput, send_blocks, i); }
  Range ReceiveBlock(int i) const { return BlockAt(Place::kOutput, receive_blocks, i); }
  // All of the input of a reduction, wherever it lies.
  Range ReductionInput() const;
  // Bytes of all blocks of a reduce_scatter.
  size_t VectorBytes() const;

 private:
  Range BlockAt(Place place, const std::vector<Block>& blocks, int i) const;
};

}  // namespace ferry::collective
