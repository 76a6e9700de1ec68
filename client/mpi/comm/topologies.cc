#include "client/mpi/comm/topologies.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "client/mpi/base/connection.h"
#include "client/mpi/comm/agree.h"
#include "client/mpi/comm/creation.h"
#include "client/mpi/comm/line_to_members.h"
#include "client/mpi/comm/splitting.h"
#include "client/mpi/topology/cartesian.h"

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

std::vector<int> OrderByNodes(const Comm& parent, const Cartesian& grid) {
  std::vector<int> node_of;
  for (int rank = 0; rank < grid.size(); ++rank) {
    node_of.push_back(front_end->NodeOf(static_cast<uint32_t>(parent.WorldRank(rank))));
  }
  return PlaceByNodes(grid, node_of);
}

Result<Ref<Comm>> CreateCartesian(const Comm& parent, Cartesian grid, bool reorder) {
  const RankSet members = reorder ? Select(parent.group(), OrderByNodes(parent, grid))
                                  : First(parent.group(), grid.size());
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
