#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"
#include "coll/algorithms/party.h"
#include "coll/algorithms/reductions.h"

namespace ferry::collective {
namespace {

void RecursiveDoubling(const Problem& problem, ScheduleBuilder* builder) {
  AddDoublingAllreduce(builder, Everyone(problem), ReductionOf(problem));
}

void Rabenseifner(const Problem& problem, ScheduleBuilder* builder) {
  AddRabenseifnerAllreduce(builder, Everyone(problem), ReductionOf(problem));
}

void Ring(const Problem& problem, ScheduleBuilder* builder) {
  AddRingAllreduce(builder, Everyone(problem), ReductionOf(problem));
}

void Direct(const Problem& problem, ScheduleBuilder* builder) {
  AddDirectAllreduce(builder, Everyone(problem), ReductionOf(problem));
}

void ReduceBcast(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  const Tree tree = BinomialTree(party.self, 0, party.size());
  const Reduction reduction = ReductionOf(problem);
  AddTreeReduce(builder, party, tree, reduction);
  AddTreeBcast(builder, party, tree, reduction.output, problem.segment_bytes);
}

// Leaders reduce for their nodes, then among themselves, then spread the result.
void Hierarchical(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, -1);
  const Tree tree = BinomialTree(nodes.local.self, 0, nodes.local.size());
  Reduction reduction = ReductionOf(problem);
  AddTreeReduce(builder, nodes.local, tree, reduction);
  const Range output = reduction.output;
  if (nodes.leaders.self >= 0) {
    reduction.input = output;
    AddDoublingAllreduce(builder, nodes.leaders, reduction);
  }
  AddTreeBcast(builder, nodes.local, tree, output, problem.segment_bytes);
}

// Each node reduces its own vectors; its leader gets those of all nodes, and reduces them in order:
// no message between leaders waits for another leader's reduction, so that NICs can chain them.
void Gathered(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, -1);
  const Tree tree = BinomialTree(nodes.local.self, 0, nodes.local.size());
  const Reduction reduction = ReductionOf(problem);
  AddTreeReduce(builder, nodes.local, tree, reduction);
  if (nodes.leaders.self >= 0 && nodes.leaders.size() > 1) {
    const int n = nodes.leaders.size();
    const size_t bytes = reduction.output.size_bytes;
    const Range all = builder->Scratch(bytes * static_cast<size_t>(n));
    builder->Copy(reduction.output, all.Part(0, bytes));
    AddBruckAllgather(builder, nodes.leaders, all);
    std::vector<Range> operands;
    for (int i = 0; i < n; ++i) {
      const auto place = static_cast<size_t>((i - nodes.leaders.self + n) % n);
      operands.push_back(all.Part(place * bytes, bytes));
    }
    AddReductionInOrder(builder, operands, reduction.output);
  }
  AddTreeBcast(builder, nodes.local, tree, reduction.output, problem.segment_bytes);
}

// All ranks work: each reduces a part for its node, then the ranks with the same part reduce across
// the nodes, then each node gathers.
void HierarchicalParts(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, -1);
  const Party& local = nodes.local;
  const auto self = static_cast<size_t>(local.self);
  const Reduction reduction = ReductionOf(problem);
  const std::vector<Range> inputs = Parts(reduction.input, local.size(), reduction.element_bytes);
  const std::vector<Range> outputs = Parts(reduction.output, local.size(), reduction.element_bytes);
  AddDirectReduceScatter(builder, local, inputs, outputs[self], reduction.segment_bytes,
                         reduction.element_bytes);
  Party across;
  for (const std::vector<int>& members : nodes.members) {
    if (members[self] == problem.rank) {
      across.self = across.size();
    }
    across.ranks.push_back(members[self]);
  }
  Reduction part = reduction;
  part.input = part.output = outputs[self];
  if (problem.commutative) {
    AddRabenseifnerAllreduce(builder, across, part);
  } else {
    AddDoublingAllreduce(builder, across, part);
  }
  AddLinearAllgather(builder, local, outputs, outputs[self], reduction.segment_bytes);
}

bool CanGoByNode(const Problem& problem) {
  return IsHierarchical(problem) && (problem.commutative || AreNodesInOrder(problem));
}
bool CanBeGathered(const Problem& problem) {
  return !IsHierarchical(problem) || CanGoByNode(problem);
}
bool AreNodesAlike(const Problem& problem) {
  if (!CanGoByNode(problem)) {
    return false;
  }
  const Nodes nodes = NodesOf(problem, -1);
  for (const std::vector<int>& members : nodes.members) {
    if (members.size() != nodes.members.front().size()) {
      return false;
    }
  }
  return true;
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kAllreduce, "recursive_doubling", nullptr, RecursiveDoubling},
    {Collective::kAllreduce, "direct", nullptr, Direct},
    {Collective::kAllreduce, "reduce_bcast", nullptr, ReduceBcast},
    {Collective::kAllreduce, "rabenseifner", IsCommutative, Rabenseifner},
    {Collective::kAllreduce, "ring", IsCommutative, Ring},
    {Collective::kAllreduce, "gathered", CanBeGathered, Gathered},
    {Collective::kAllreduce, "hierarchical", CanGoByNode, Hierarchical},
    {Collective::kAllreduce, "hierarchical_parts", AreNodesAlike, HierarchicalParts},
};

}  // namespace

std::span<const Algorithm> AllreduceAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
