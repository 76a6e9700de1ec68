#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"
#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

Range DataOf(const Problem& problem) { return {Place::kOutput, 0, problem.block_bytes}; }

void Binomial(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  AddTreeBcast(builder, party, BinomialTree(party.self, problem.root, party.size()),
               DataOf(problem), problem.segment_bytes);
}

void Chain(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  AddTreeBcast(builder, party, ChainTree(party.self, problem.root, party.size()), DataOf(problem),
               problem.segment_bytes);
}

// Inside a node every rank copies straight from the root's memory, all at once.
void Linear(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  AddTreeBcast(builder, party, FlatTree(party.self, problem.root, party.size()), DataOf(problem),
               problem.segment_bytes);
}

void ScatterRing(const Problem& problem, ScheduleBuilder* builder) {
  AddScatterRingBcast(builder, Everyone(problem), problem.root, DataOf(problem));
}

void Hierarchical(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, problem.root);
  if (nodes.leaders.self >= 0) {
    const int root = nodes.leaders.IndexOf(problem.root);
    AddTreeBcast(builder, nodes.leaders,
                 BinomialTree(nodes.leaders.self, root, nodes.leaders.size()), DataOf(problem),
                 problem.segment_bytes);
  }
  AddTreeBcast(builder, nodes.local, BinomialTree(nodes.local.self, 0, nodes.local.size()),
               DataOf(problem), problem.segment_bytes);
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kBcast, "binomial", nullptr, Binomial},
    {Collective::kBcast, "linear", nullptr, Linear},
    {Collective::kBcast, "chain", nullptr, Chain},
    {Collective::kBcast, "scatter_ring", nullptr, ScatterRing},
    {Collective::kBcast, "hierarchical", IsHierarchical, Hierarchical},
};

}  // namespace

std::span<const Algorithm> BcastAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
