// The topology of a communicator, of any of the three kinds. MPI 5.0, chapter 8.
//
// Pure and immutable; any thread; does not block.
#pragma once

#include <variant>
#include <vector>

#include "mpi/topology/cartesian.h"
#include "mpi/topology/graph.h"

namespace ferry::mpi {

// In a distributed graph each process keeps its own neighbourhood.
using Topology = std::variant<Cartesian, Graph, Neighbourhood>;

// The topology's kind, as MPI_Topo_test returns it: MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH.
int KindOf(const Topology& topology);

// The ranks that the neighbourhood collectives of `rank`, the caller's, receive from and send to,
// in the order of their blocks (MPI 5.0, section 8.6). MPI_PROC_NULL stands for a missing
// neighbour.
struct Neighbours {
  std::vector<int> sources;
  std::vector<int> destinations;
};
Neighbours NeighboursOf(const Topology& topology, int rank);

}  // namespace ferry::mpi
