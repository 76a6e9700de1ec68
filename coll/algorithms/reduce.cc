#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/party.h"
#include "coll/algorithms/reductions.h"

namespace ferry::collective {
namespace {

bool IsRoot(const Problem& problem) { return problem.rank == problem.root; }

// Reduces to the root, or, if that would change the order, to rank 0 and from there to the root.
void AddTree(const Problem& problem, ScheduleBuilder* builder,
             Tree (*tree)(int self, int root, int size)) {
  const Party party = Everyone(problem);
  Reduction reduction = ReductionOf(problem);
  if (problem.commutative || problem.root == 0) {
    AddTreeReduce(builder, party, tree(party.self, problem.root, party.size()), reduction);
    return;
  }
  const Range result = problem.rank == 0 ? builder->Scratch(problem.block_bytes) : reduction.output;
  reduction.output = result;
  AddTreeReduce(builder, party, tree(party.self, 0, party.size()), reduction);
  if (problem.rank == 0) {
    builder->Send(problem.root, result);
  } else if (IsRoot(problem)) {
    builder->Receive(0, result);
  }
}

void Binomial(const Problem& problem, ScheduleBuilder* builder) {
  AddTree(problem, builder, BinomialTree);
}

void Chain(const Problem& problem, ScheduleBuilder* builder) {
  AddTree(problem, builder, ChainTree);
}

void Linear(const Problem& problem, ScheduleBuilder* builder) {
  AddLinearReduce(builder, Everyone(problem), problem.root, ReductionOf(problem));
}

// The parts of the reduction, made by all, go straight to the root.
void AddPartsToRoot(const Problem& problem, const Party& makers, const std::vector<Range>& parts,
                    ScheduleBuilder* builder) {
  for (int i = 0; i < makers.size(); ++i) {
    if (makers.Rank(i) == problem.root) {
      continue;
    }
    if (IsRoot(problem)) {
      builder->Receive(makers.Rank(i), parts[static_cast<size_t>(i)]);
    } else if (makers.self == i) {
      builder->Send(problem.root, parts[static_cast<size_t>(i)]);
    }
  }
}

Range ResultPlace(const Problem& problem, ScheduleBuilder* builder) {
  return IsRoot(problem) ? Range{Place::kOutput, 0, problem.block_bytes}
                         : builder->Scratch(problem.block_bytes);
}

void Rabenseifner(const Problem& problem, ScheduleBuilder* builder) {
  Reduction reduction = ReductionOf(problem);
  reduction.output = ResultPlace(problem, builder);
  const Folded folded = AddFold(builder, Everyone(problem), reduction);
  const std::vector<Range> parts =
      Parts(reduction.output, folded.active.size(), reduction.element_bytes);
  if (folded.active.self >= 0) {
    AddHalvingReduceScatter(builder, folded.active, folded.vector, parts);
  }
  AddPartsToRoot(problem, folded.active, parts, builder);
}

// Inside a node: every rank reduces its part of all vectors.
void Direct(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  const Reduction reduction = ReductionOf(problem);
  const std::vector<Range> inputs = Parts(reduction.input, party.size(), reduction.element_bytes);
  const std::vector<Range> outputs =
      Parts(ResultPlace(problem, builder), party.size(), reduction.element_bytes);
  AddDirectReduceScatter(builder, party, inputs, outputs[static_cast<size_t>(party.self)],
                         reduction.segment_bytes, reduction.element_bytes);
  AddPartsToRoot(problem, party, outputs, builder);
}

bool IsHierarchicalAndCommutative(const Problem& problem) {
  return problem.commutative && IsHierarchical(problem);
}

void Hierarchical(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, problem.root);
  Reduction reduction = ReductionOf(problem);
  const bool is_leader = nodes.leaders.self >= 0;
  if (is_leader) {
    reduction.output = ResultPlace(problem, builder);
  }
  AddTreeReduce(builder, nodes.local, BinomialTree(nodes.local.self, 0, nodes.local.size()),
                reduction);
  if (!is_leader) {
    return;
  }
  const int root = nodes.leaders.IndexOf(problem.root);
  reduction.input = reduction.output;
  AddTreeReduce(builder, nodes.leaders,
                BinomialTree(nodes.leaders.self, root, nodes.leaders.size()), reduction);
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kReduce, "binomial", nullptr, Binomial},
    {Collective::kReduce, "linear", nullptr, Linear},
    {Collective::kReduce, "chain", nullptr, Chain},
    {Collective::kReduce, "direct", nullptr, Direct},
    {Collective::kReduce, "rabenseifner", IsCommutative, Rabenseifner},
    {Collective::kReduce, "hierarchical", IsHierarchicalAndCommutative, Hierarchical},
};

}  // namespace

std::span<const Algorithm> ReduceAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
