#include <algorithm>

#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"
#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

std::vector<Range> BlocksOf(const Problem& problem) {
  std::vector<Range> blocks;
  for (int i = 0; i < problem.size; ++i) {
    blocks.push_back(problem.ReceiveBlock(i));
  }
  return blocks;
}

// The place where this rank's block is at first.
Range OwnOf(const Problem& problem) {
  const Range own = problem.ReceiveBlock(problem.rank);
  return problem.in_place ? own : Range{Place::kInput, 0, own.size_bytes};
}

void Linear(const Problem& problem, ScheduleBuilder* builder) {
  AddLinearAllgather(builder, Everyone(problem), BlocksOf(problem), OwnOf(problem),
                     problem.segment_bytes);
  builder->Copy(OwnOf(problem), problem.ReceiveBlock(problem.rank));
}

void Ring(const Problem& problem, ScheduleBuilder* builder) {
  AddRingAllgather(builder, Everyone(problem), BlocksOf(problem), OwnOf(problem));
  builder->Copy(OwnOf(problem), problem.ReceiveBlock(problem.rank));
}

void RecursiveDoubling(const Problem& problem, ScheduleBuilder* builder) {
  builder->Copy(OwnOf(problem), problem.ReceiveBlock(problem.rank));
  AddDoublingAllgather(builder, Everyone(problem), BlocksOf(problem), !problem.has_blocks);
}

void NeighbourExchange(const Problem& problem, ScheduleBuilder* builder) {
  builder->Copy(OwnOf(problem), problem.ReceiveBlock(problem.rank));
  AddNeighbourAllgather(builder, Everyone(problem), BlocksOf(problem));
}

// Blocks are kept in the order of the ranks from this one on, so that each round sends the first
// ones of them.
void Bruck(const Problem& problem, ScheduleBuilder* builder) {
  const int n = problem.size;
  const size_t bytes = problem.block_bytes;
  const Range all = builder->Scratch(bytes * static_cast<size_t>(n));
  const auto blocks = [&](int first, int count) {
    return all.Part(static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes);
  };
  builder->Copy(OwnOf(problem), blocks(0, 1));
  AddBruckAllgather(builder, Everyone(problem), all);
  const int to_end = n - problem.rank;
  const Range output{Place::kOutput, 0, all.size_bytes};
  builder->Copy(blocks(0, to_end), output.Part(static_cast<size_t>(problem.rank) * bytes,
                                               static_cast<size_t>(to_end) * bytes));
  builder->Copy(blocks(to_end, problem.rank),
                output.Part(0, static_cast<size_t>(problem.rank) * bytes));
}

// Leaders gather their nodes' blocks, exchange them around a ring, and spread them.
void Hierarchical(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, -1);
  const auto block = [&](int rank) { return problem.ReceiveBlock(rank); };
  const bool is_leader = nodes.leaders.self >= 0;
  if (!is_leader) {
    builder->Send(nodes.local.Rank(0), OwnOf(problem));
  } else {
    builder->Copy(OwnOf(problem), block(problem.rank));
    for (int i = 1; i < nodes.local.size(); ++i) {
      builder->Receive(nodes.local.Rank(i), block(nodes.local.Rank(i)));
    }
    const int n = nodes.leaders.size();
    const auto members = [&](int node) { return nodes.members[static_cast<size_t>(node % n)]; };
    for (int i = 0; i + 1 < n; ++i) {
      for (const int rank : members(nodes.leaders.self - i + n)) {
        builder->Send(nodes.leaders.Rank((nodes.leaders.self + 1) % n), block(rank));
      }
      for (const int rank : members(nodes.leaders.self - i - 1 + n)) {
        builder->Receive(nodes.leaders.Rank((nodes.leaders.self - 1 + n) % n), block(rank));
      }
    }
  }
  const Tree tree = BinomialTree(nodes.local.self, 0, nodes.local.size());
  if (!problem.has_blocks) {
    AddTreeBcast(builder, nodes.local, tree, Span(BlocksOf(problem), 0, problem.size),
                 problem.segment_bytes);
    return;
  }
  for (int rank = 0; rank < problem.size; ++rank) {
    AddTreeBcast(builder, nodes.local, tree, block(rank), problem.segment_bytes);
  }
}

bool IsDoubling(const Problem& problem) { return IsPowerOfTwo(problem.size); }
bool IsEven(const Problem& problem) { return problem.size % 2 == 0; }

constexpr Algorithm kAlgorithms[] = {
    {Collective::kAllgather, "ring", nullptr, Ring},
    {Collective::kAllgather, "linear", nullptr, Linear},
    {Collective::kAllgather, "recursive_doubling", IsDoubling, RecursiveDoubling},
    {Collective::kAllgather, "bruck", IsUniform, Bruck},
    {Collective::kAllgather, "neighbor_exchange", IsEven, NeighbourExchange},
    {Collective::kAllgather, "hierarchical", IsHierarchical, Hierarchical},
};

}  // namespace

std::span<const Algorithm> AllgatherAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
