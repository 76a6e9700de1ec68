// How communicators with a topology are made. MPI 5.0, section 8.5.
//
// Ranks keep their order unless a comment says otherwise. Collective over the parent; block.
// Calling thread: any, one at a time for one parent. A null reference stands for MPI_COMM_NULL.
#pragma once

#include <span>
#include <vector>

#include "client/mpi/base/failure.h"
#include "client/mpi/base/object.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/topology/topology.h"

namespace ferry::mpi {

// The grid's places, and the graph's nodes, are the first processes of the parent; `reorder`: in an
// order by which neighbours share nodes (node_blocks.h).
Result<Ref<Comm>> CreateCartesian(const Comm& parent, Cartesian grid, bool reorder);
// That order: by place, the rank in the parent. The same on all of them; does not block.
std::vector<int> OrderByNodes(const Comm& parent, const Cartesian& grid);
Result<Ref<Comm>> CreateGraph(const Comm& parent, Graph graph);
// The part of `parent`'s grid, `grid`, in which the caller is when the dimensions marked in `keep`
// are kept.
Result<Ref<Comm>> CutCartesian(const Comm& parent, const Cartesian& grid,
                               std::span<const int> keep);
// Makes one of all processes of the parent, each of which knows its neighbours.
Result<Ref<Comm>> CreateAdjacent(const Comm& parent, Neighbourhood own);
// The same from edges, of which each process has some.
Result<Ref<Comm>> CreateDistributed(const Comm& parent, const std::vector<GraphEdge>& edges,
                                    bool weighted);

}  // namespace ferry::mpi
