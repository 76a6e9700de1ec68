// Collectives between the two groups of an intercommunicator: one side gets what the other has (MPI
// 5.0, section 6.2.2). Data cross once; a group's first rank deals them out, or reduces them, among
// its own.
#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"
#include "coll/algorithms/reductions.h"

namespace ferry::collective {
namespace {

struct Sides {
  Party own;
  Party remote;

  explicit Sides(const Problem& problem)
      : own{.ranks = problem.sources}, remote{.ranks = problem.destinations} {
    own.self = own.IndexOf(problem.rank);
  }
  bool leads() const { return own.self == 0; }
};

Range OwnInput(size_t bytes) { return {Place::kInput, 0, bytes}; }
Range OwnOutput(size_t bytes) { return {Place::kOutput, 0, bytes}; }

void Bcast(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  const Range data = OwnOutput(problem.block_bytes);
  if (problem.root == kRootHere) {
    builder->Send(sides.remote.Rank(0), data);
  } else if (problem.root != kRootBeside) {
    if (sides.leads()) {
      builder->Receive(sides.remote.Rank(problem.root), data);
    }
    AddTreeBcast(builder, sides.own, BinomialTree(sides.own.self, 0, sides.own.size()), data, 0);
  }
}

void Gather(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  if (problem.root == kRootHere) {
    for (int i = 0; i < sides.remote.size(); ++i) {
      builder->Receive(sides.remote.Rank(i), problem.ReceiveBlock(i));
    }
  } else if (problem.root != kRootBeside) {
    builder->Send(sides.remote.Rank(problem.root), OwnInput(problem.block_bytes));
  }
}

void Scatter(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  if (problem.root == kRootHere) {
    for (int i = 0; i < sides.remote.size(); ++i) {
      builder->Send(sides.remote.Rank(i), problem.SendBlock(i));
    }
  } else if (problem.root != kRootBeside) {
    builder->Receive(sides.remote.Rank(problem.root), OwnOutput(problem.block_bytes));
  }
}

// Each starts with another peer, so that not all meet at one.
void Alltoall(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  const int count = sides.remote.size();
  for (int k = 0; k < count; ++k) {
    const int from = (sides.own.self + k) % count;
    builder->Receive(sides.remote.Rank(from), problem.ReceiveBlock(from));
  }
  for (int k = 0; k < count; ++k) {
    const int to = (sides.own.self + k) % count;
    builder->Send(sides.remote.Rank(to), problem.SendBlock(to));
  }
}

// The own block, whose size need not be that of the other side's, is the only one to send.
void Allgather(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  for (int i = 0; i < sides.remote.size(); ++i) {
    builder->Receive(sides.remote.Rank(i), problem.ReceiveBlock(i));
  }
  for (int i = 0; i < sides.remote.size(); ++i) {
    builder->Send(sides.remote.Rank(i), OwnInput(problem.send_blocks.front().size_bytes));
  }
}

// This side's first rank reduces the side's vectors. Returns where the result lies.
Range ReduceOwn(const Problem& problem, const Sides& sides, ScheduleBuilder* builder) {
  const Range input = problem.ReductionInput();
  const Range sum = sides.leads() ? builder->Scratch(input.size_bytes) : input;
  AddTreeReduce(builder, sides.own, BinomialTree(sides.own.self, 0, sides.own.size()),
                {.input = input, .output = sum, .element_bytes = problem.element_bytes});
  return sum;
}

void Reduce(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  if (problem.root == kRootHere) {
    builder->Receive(sides.remote.Rank(0), OwnOutput(problem.block_bytes));
  } else if (problem.root != kRootBeside) {
    const Range sum = ReduceOwn(problem, sides, builder);
    if (sides.leads()) {
      builder->Send(sides.remote.Rank(problem.root), sum);
    }
  }
}

void Allreduce(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  const Range sum = ReduceOwn(problem, sides, builder);
  const Range result = OwnOutput(problem.block_bytes);
  if (sides.leads()) {
    builder->Receive(sides.remote.Rank(0), result);
    builder->Send(sides.remote.Rank(0), sum);
  }
  AddTreeBcast(builder, sides.own, BinomialTree(sides.own.self, 0, sides.own.size()), result, 0);
}

void ReduceScatter(const Problem& problem, ScheduleBuilder* builder) {
  const Sides sides(problem);
  const Range sum = ReduceOwn(problem, sides, builder);
  std::vector<Range> parts;
  if (sides.leads()) {
    const Range theirs = builder->Scratch(sum.size_bytes);
    builder->Receive(sides.remote.Rank(0), theirs);
    builder->Send(sides.remote.Rank(0), sum);
    for (const Block& block : problem.receive_blocks) {
      parts.push_back(theirs.Part(block.offset_bytes, block.size_bytes));
    }
  }
  const auto self = static_cast<size_t>(sides.own.self);
  const Range own = OwnOutput(problem.receive_blocks[self].size_bytes);
  AddLinearScatter(builder, sides.own, 0, parts, own);
  if (sides.leads()) {
    builder->Copy(parts.front(), own);
  }
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kBcast, "inter", nullptr, Bcast},
    {Collective::kGather, "inter", nullptr, Gather},
    {Collective::kScatter, "inter", nullptr, Scatter},
    {Collective::kAllgather, "inter", nullptr, Allgather},
    {Collective::kAlltoall, "inter", nullptr, Alltoall},
    {Collective::kReduce, "inter", nullptr, Reduce},
    {Collective::kAllreduce, "inter", nullptr, Allreduce},
    {Collective::kReduceScatter, "inter", nullptr, ReduceScatter},
};

}  // namespace

std::span<const Algorithm> InterAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
