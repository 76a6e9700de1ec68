#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"
#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

void Dissemination(const Problem& problem, ScheduleBuilder* builder) {
  AddDissemination(builder, Everyone(problem));
}

// Through rank 0: fewest messages, which counts where ranks outnumber cores.
void Linear(const Problem& problem, ScheduleBuilder* builder) {
  const Party party = Everyone(problem);
  AddGatherNotices(builder, party);
  builder->Fence();
  AddReleaseNotices(builder, party);
}

void Hierarchical(const Problem& problem, ScheduleBuilder* builder) {
  const Nodes nodes = NodesOf(problem, -1);
  AddGatherNotices(builder, nodes.local);
  builder->Fence();
  if (nodes.leaders.self >= 0) {
    AddDissemination(builder, nodes.leaders);
    builder->Fence();
  }
  AddReleaseNotices(builder, nodes.local);
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kBarrier, "dissemination", nullptr, Dissemination},
    {Collective::kBarrier, "linear", nullptr, Linear},
    {Collective::kBarrier, "hierarchical", IsHierarchical, Hierarchical},
};

}  // namespace

std::span<const Algorithm> BarrierAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
