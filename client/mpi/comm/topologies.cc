#include "client/mpi/comm/topologies.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "client/mpi/comm/agree.h"
#include "client/mpi/comm/creation.h"
#include "client/mpi/comm/line_to_members.h"
#include "client/mpi/comm/splitting.h"

namespace ferry::mpi {
namespace {

Result<Ref<Comm>> WithTopology(Result<Ref<Comm>> made, Topology topology) {
  if (made.ok() && made.value()) {
    made.value()->SetTopology(std::make_shared<const Topology>(std::move(topology)));
  }
  return made;
}

RankSet First(const RankSet& group, int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return Select(group, ranks);
}

}  // namespace

Result<Ref<Comm>> CreateCartesian(const Comm& parent, Cartesian grid) {
  const RankSet members = First(parent.group(), grid.size());
  return WithTopology(Create(parent, members), std::move(grid));
}

Result<Ref<Comm>> CreateGraph(const Comm& parent, Graph graph) {
  const RankSet members = First(parent.group(), graph.node_count());
  return WithTopology(Create(parent, members), std::move(graph));
}

Result<Ref<Comm>> CutCartesian(const Comm& parent, const Cartesian& grid,
                               std::span<const int> keep) {
  const Cartesian::Part part = grid.PartOf(parent.rank(), keep);
  return WithTopology(Split(parent, part.color, part.key), grid.Cut(keep));
}

Result<Ref<Comm>> CreateAdjacent(const Comm& parent, Neighbourhood own) {
  return WithTopology(Duplicate(parent), std::move(own));
}

Result<Ref<Comm>> CreateDistributed(const Comm& parent, const std::vector<GraphEdge>& edges,
                                    bool weighted) {
  LineToMembers line(parent.context(Traffic::kAgreement), parent.group());
  std::vector<char> mine(edges.size() * sizeof(GraphEdge));
  if (!mine.empty()) {
    memcpy(mine.data(), edges.data(), mine.size());
  }
  std::vector<char> joined;
  if (Failure failure =
          JoinToAll(Team{&line, parent.rank(), parent.size()}, std::move(mine), &joined);
      !failure.ok()) {
    return failure;
  }
  std::vector<GraphEdge> all(joined.size() / sizeof(GraphEdge));
  if (!all.empty()) {
    memcpy(all.data(), joined.data(), joined.size());
  }
  return CreateAdjacent(parent, NeighbourhoodOf(parent.rank(), all, weighted));
}

}  // namespace ferry::mpi
