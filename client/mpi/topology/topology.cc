#include "client/mpi/topology/topology.h"

#include <span>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {

int KindOf(const Topology& topology) {
  if (std::holds_alternative<Cartesian>(topology)) {
    return MPI_CART;
  }
  return std::holds_alternative<Graph>(topology) ? MPI_GRAPH : MPI_DIST_GRAPH;
}

Neighbours NeighboursOf(const Topology& topology, int rank) {
  Neighbours found;
  if (const auto* grid = std::get_if<Cartesian>(&topology)) {
    found.sources = grid->Neighbours(rank);
    found.destinations = found.sources;
  } else if (const auto* graph = std::get_if<Graph>(&topology)) {
    std::span<const int> neighbours = graph->Neighbours(rank);
    found.sources.assign(neighbours.begin(), neighbours.end());
    found.destinations = found.sources;
  } else {
    const auto& own = std::get<Neighbourhood>(topology);
    found.sources = own.sources;
    found.destinations = own.destinations;
  }
  return found;
}

}  // namespace ferry::mpi
