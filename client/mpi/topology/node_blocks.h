// Which process gets which place of a Cartesian grid, so that neighbours share nodes (the `reorder`
// of MPI_Cart_create, MPI 5.0, section 8.5.1).
//
// Pure; any thread; does not block.
#pragma once

#include <vector>

#include "client/mpi/topology/cartesian.h"

namespace ferry::mpi {

// By place of the grid: the process. `node_of`: of at least as many processes as the grid has
// places; the first ones get a place.
//
// If all nodes have equally many of them, the grid is cut into blocks of that size, one for each
// node, in the shape with the fewest neighbours on different nodes. If that is no better, or nodes
// differ, processes stay in their order.
std::vector<int> PlaceByNodes(const Cartesian& grid, const std::vector<int>& node_of);

// How many times a process has a neighbour on another node.
int CrossingNeighbours(const Cartesian& grid, const std::vector<int>& process_at,
                       const std::vector<int>& node_of);

}  // namespace ferry::mpi
