// Topologies: Cartesian ones, and graphs, whole and distributed (MPI 5.0, section 8.5).
#include "mpi/topology/topology.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "mpi/api/call.h"
#include "mpi/api/compare_by_name.h"
#include "mpi/api/function.h"
#include "mpi/comm/creation.h"

namespace ferry::mpi {
namespace {

// The topology of a communicator, which must be a `T`; null after a failure.
template <typename T>
const T* FindTopology(Call& call, MPI_Comm handle, const char* kind, Comm** comm = nullptr) {
  Comm* const found = call.Find(handle);
  if (found == nullptr) {
    return nullptr;
  }
  if (comm != nullptr) {
    *comm = found;
  }
  const Topology* const topology = found->topology().get();
  const T* const wanted = topology == nullptr ? nullptr : std::get_if<T>(topology);
  if (wanted == nullptr) {
    call.Refuse(MPI_ERR_TOPOLOGY, std::string("the communicator has no ") + kind + " topology");
  }
  return wanted;
}

const Cartesian* FindGrid(Call& call, MPI_Comm handle, Comm** comm) {
  return FindTopology<Cartesian>(call, handle, "Cartesian", comm);
}

const Graph* FindGraph(Call& call, MPI_Comm handle) {
  return FindTopology<Graph>(call, handle, "graph");
}

const Neighbourhood* FindNeighbourhood(Call& call, MPI_Comm handle) {
  return FindTopology<Neighbourhood>(call, handle, "distributed graph");
}

std::span<const int> List(const int* values, int count) {
  return {values, static_cast<size_t>(count)};
}

}  // namespace

// ---- Cartesian topologies, and which topology a communicator has --------------------------------

namespace {

void NeedRank(Call& call, const Comm* comm, int rank) {
  if (call.ok() && !comm->IsPeer(rank)) {
    call.Refuse(MPI_ERR_RANK, "rank is " + std::to_string(rank) + "; the communicator has " +
                                  Counted(comm->size(), "process", "processes"));
  }
}

// A grid as the arguments of MPI_Cart_create and MPI_Cart_map describe it.
Cartesian GridOf(Call& call, const Comm* comm, int ndims, const int* dims, const int* periods) {
  call.NeedCount(ndims, "ndims", MPI_ERR_DIMS);
  call.NeedArray(dims, ndims, "dims");
  call.NeedArray(periods, ndims, "periods");
  Cartesian grid;
  if (call.ok()) {
    const auto count = static_cast<size_t>(ndims);
    call.Refuse(Cartesian::Make({dims, count}, {periods, count}, comm->size(), &grid));
  }
  return grid;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Topo_test, (MPI_Comm comm, int* status)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(status, "status");
  return call.Then([&] {
    *status =
        found->topology() == nullptr ? static_cast<int>(MPI_UNDEFINED) : KindOf(*found->topology());
  });
}

FERRY_MPI_CALL(int, MPI_Dims_create, (int nnodes, int ndims, int dims[])) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.NeedCount(ndims, "ndims", MPI_ERR_DIMS);
  call.NeedArray(dims, ndims, "dims");
  return call.Then([&] { return CreateDims(nnodes, {dims, static_cast<size_t>(ndims)}); });
}

FERRY_MPI_CALL(int, MPI_Cart_create,
               (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
                MPI_Comm* comm_cart)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.FindIntra(comm_old);
  Cartesian grid = GridOf(call, parent, ndims, dims, periods);
  call.Need(comm_cart, "comm_cart");
  CompareByName(call, parent);
  if (call.ok()) {
    call.Give(CreateCartesian(*parent, std::move(grid), reorder != 0), comm_cart);
  } else if (comm_cart != nullptr) {
    *comm_cart = MPI_COMM_NULL;
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Cart_map,
               (MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindIntra(comm);
  const Cartesian grid = GridOf(call, found, ndims, dims, periods);
  call.Need(newrank, "newrank");
  return call.Then([&] {
    const std::vector<int> order = OrderByNodes(*found, grid);
    const auto place = std::find(order.begin(), order.end(), found->rank());
    *newrank = place == order.end() ? static_cast<int>(MPI_UNDEFINED)
                                    : static_cast<int>(place - order.begin());
  });
}

FERRY_MPI_CALL(int, MPI_Cartdim_get, (MPI_Comm comm, int* ndims)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.Need(ndims, "ndims");
  return call.Then([&] { *ndims = grid->dimensions(); });
}

FERRY_MPI_CALL(int, MPI_Cart_get,
               (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedCount(maxdims, "maxdims");
  FERRY_RETURN_ERROR(call.result());
  const int count = std::min(maxdims, grid->dimensions());
  call.NeedArray(dims, count, "dims");
  call.NeedArray(periods, count, "periods");
  call.NeedArray(coords, count, "coords");
  return call.Then([&] {
    std::copy_n(grid->dims().begin(), count, dims);
    std::copy_n(grid->periodic().begin(), count, periods);
    grid->CoordsOf(found->rank(), {coords, static_cast<size_t>(count)});
  });
}

FERRY_MPI_CALL(int, MPI_Cart_rank, (MPI_Comm comm, const int coords[], int* rank)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedArray(coords, grid == nullptr ? 0 : grid->dimensions(), "coords");
  call.Need(rank, "rank");
  return call.Then([&] { return grid->RankAt(List(coords, grid->dimensions()), rank); });
}

FERRY_MPI_CALL(int, MPI_Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[])) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  NeedRank(call, found, rank);
  call.NeedCount(maxdims, "maxdims");
  FERRY_RETURN_ERROR(call.result());
  const int count = std::min(maxdims, grid->dimensions());
  call.NeedArray(coords, count, "coords");
  return call.Then([&] { grid->CoordsOf(rank, {coords, static_cast<size_t>(count)}); });
}

FERRY_MPI_CALL(int, MPI_Cart_shift,
               (MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.Need(rank_source, "rank_source", rank_dest, "rank_dest");
  if (call.ok() && (direction < 0 || direction >= grid->dimensions())) {
    call.Refuse(MPI_ERR_DIMS, "direction is " + std::to_string(direction) + "; the grid has " +
                                  Counted(grid->dimensions(), "dimension"));
  }
  return call.Then([&] {
    const Cartesian::Shifted shifted = grid->Shift(found->rank(), direction, disp);
    *rank_source = shifted.source;
    *rank_dest = shifted.destination;
  });
}

FERRY_MPI_CALL(int, MPI_Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedArray(remain_dims, grid == nullptr ? 0 : grid->dimensions(), "remain_dims");
  call.Need(newcomm, "newcomm");
  CompareByName(call, found);
  return call.Then([&] {
    call.Give(CutCartesian(*found, *grid, List(remain_dims, grid->dimensions())), newcomm);
  });
}

// ---- Arguments that describe graphs -------------------------------------------------------------

namespace {

void NeedNode(Call& call, const Graph* graph, int rank) {
  if (call.ok() && (rank < 0 || rank >= graph->node_count())) {
    call.Refuse(MPI_ERR_RANK, "rank is " + std::to_string(rank) + "; the graph has " +
                                  Counted(graph->node_count(), "node"));
  }
}

// A graph as the arguments of MPI_Graph_create and MPI_Graph_map describe it.
Graph GraphOf(Call& call, const Comm* comm, int nnodes, const int* index, const int* edges) {
  call.NeedCount(nnodes, "nnodes");
  call.NeedArray(index, nnodes, "index");
  if (call.ok() && nnodes > comm->size()) {
    call.Refuse(MPI_ERR_ARG, "nnodes is " + std::to_string(nnodes) + "; the communicator has " +
                                 Counted(comm->size(), "process", "processes"));
  }
  Graph graph;
  if (call.ok() && nnodes > 0) {
    const int edge_count = std::max(index[nnodes - 1], 0);
    call.NeedArray(edges, edge_count, "edges");
    if (call.ok()) {
      call.Refuse(Graph::Make({index, static_cast<size_t>(nnodes)},
                              {edges, static_cast<size_t>(edge_count)}, &graph));
    }
  }
  return graph;
}

void CopyUpTo(std::span<const int> from, int room, int* to) {
  std::copy_n(from.begin(), std::min<size_t>(from.size(), static_cast<size_t>(room)), to);
}

// ---- Weights: one for each edge, none at all, or a mark for an empty list ----------------------

bool IsUnweighted(const int* weights) { return weights == MPI_UNWEIGHTED; }

std::span<const int> Weights(Call& call, const int* weights, int count, const char* argument) {
  if (IsUnweighted(weights) || count == 0) {
    return {};
  }
  if (weights == MPI_WEIGHTS_EMPTY) {
    call.Refuse(MPI_ERR_ARG, std::string(argument) + " is MPI_WEIGHTS_EMPTY, but there are " +
                                 std::to_string(count) + " edges");
    return {};
  }
  call.NeedArray(weights, count, argument);
  return {weights, static_cast<size_t>(count)};
}

struct Neighbour {
  std::span<const int> ranks;
  std::span<const int> weights;
};

Neighbour NeighboursOfArguments(Call& call, const Comm* comm, int degree, const char* degree_name,
                                const int* ranks, const char* name, const int* weights,
                                const char* weights_name) {
  call.NeedCount(degree, degree_name);
  call.NeedArray(ranks, degree, name);
  Neighbour found;
  if (call.ok()) {
    found.ranks = {ranks, static_cast<size_t>(degree)};
    found.weights = Weights(call, weights, degree, weights_name);
  }
  if (call.ok()) {
    call.Refuse(CheckNeighbours(comm->size(), found.ranks, found.weights, name));
  }
  return found;
}

// How many edges the degrees of MPI_Dist_graph_create add up to.
int CountEdges(Call& call, int n, const int* degrees) {
  int64_t count = 0;
  for (int i = 0; call.ok() && i < n; ++i) {
    call.NeedCount(degrees[i], "an element of degrees");
    count += degrees[i];
    if (count > INT32_MAX) {
      call.Refuse(MPI_ERR_ARG, "degrees add up to more than an int holds");
    }
  }
  return call.ok() ? static_cast<int>(count) : 0;
}

}  // namespace

// ---- Graphs that every process knows ------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Graph_create,
               (MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int,
                MPI_Comm* comm_graph)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.FindIntra(comm_old);
  Graph graph = GraphOf(call, parent, nnodes, indx, edges);
  call.Need(comm_graph, "comm_graph");
  CompareByName(call, parent);
  return call.Then([&] { call.Give(CreateGraph(*parent, std::move(graph)), comm_graph); });
}

FERRY_MPI_CALL(int, MPI_Graph_map,
               (MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindIntra(comm);
  const Graph graph = GraphOf(call, found, nnodes, indx, edges);
  call.Need(newrank, "newrank");
  return call.Then([&] {
    *newrank = found->rank() < graph.node_count() ? found->rank() : static_cast<int>(MPI_UNDEFINED);
  });
}

FERRY_MPI_CALL(int, MPI_Graphdims_get, (MPI_Comm comm, int* nnodes, int* nedges)) {
  Call call(FERRY_MPI_NAME);
  const Graph* const graph = FindGraph(call, comm);
  call.Need(nnodes, "nnodes", nedges, "nedges");
  return call.Then([&] {
    *nnodes = graph->node_count();
    *nedges = static_cast<int>(graph->edges().size());
  });
}

FERRY_MPI_CALL(int, MPI_Graph_get,
               (MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])) {
  Call call(FERRY_MPI_NAME);
  const Graph* const graph = FindGraph(call, comm);
  call.NeedCount(maxindex, "maxindex");
  call.NeedCount(maxedges, "maxedges");
  call.NeedArray(indx, maxindex, "indx");
  call.NeedArray(edges, maxedges, "edges");
  return call.Then([&] {
    CopyUpTo(graph->index(), maxindex, indx);
    CopyUpTo(graph->edges(), maxedges, edges);
  });
}

FERRY_MPI_CALL(int, MPI_Graph_neighbors_count, (MPI_Comm comm, int rank, int* nneighbors)) {
  Call call(FERRY_MPI_NAME);
  const Graph* const graph = FindGraph(call, comm);
  NeedNode(call, graph, rank);
  call.Need(nneighbors, "nneighbors");
  return call.Then([&] { *nneighbors = static_cast<int>(graph->Neighbours(rank).size()); });
}

FERRY_MPI_CALL(int, MPI_Graph_neighbors,
               (MPI_Comm comm, int rank, int maxneighbors, int neighbors[])) {
  Call call(FERRY_MPI_NAME);
  const Graph* const graph = FindGraph(call, comm);
  NeedNode(call, graph, rank);
  call.NeedCount(maxneighbors, "maxneighbors");
  call.NeedArray(neighbors, maxneighbors, "neighbors");
  return call.Then([&] { CopyUpTo(graph->Neighbours(rank), maxneighbors, neighbors); });
}

// ---- Graphs of which each process knows its own edges -------------------------------------------

FERRY_MPI_CALL(int, MPI_Dist_graph_create_adjacent,
               (MPI_Comm comm_old, int indegree, const int sources[], const int* sourceweights,
                int outdegree, const int destinations[], const int* destweights, MPI_Info info, int,
                MPI_Comm* comm_dist_graph)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.FindIntra(comm_old);
  const Neighbour in = NeighboursOfArguments(call, parent, indegree, "indegree", sources, "sources",
                                             sourceweights, "sourceweights");
  const Neighbour out = NeighboursOfArguments(call, parent, outdegree, "outdegree", destinations,
                                              "destinations", destweights, "destweights");
  (void)call.FindOrNull(info);
  call.Need(comm_dist_graph, "comm_dist_graph");
  if (IsUnweighted(sourceweights) != IsUnweighted(destweights)) {
    call.Refuse(MPI_ERR_ARG, "one of sourceweights and destweights is MPI_UNWEIGHTED, not both");
  }
  CompareByName(call, parent);
  return call.Then([&] {
    Neighbourhood own;
    own.sources.assign(in.ranks.begin(), in.ranks.end());
    own.source_weights.assign(in.weights.begin(), in.weights.end());
    own.destinations.assign(out.ranks.begin(), out.ranks.end());
    own.destination_weights.assign(out.weights.begin(), out.weights.end());
    own.weighted = !IsUnweighted(sourceweights);
    call.Give(CreateAdjacent(*parent, std::move(own)), comm_dist_graph);
  });
}

FERRY_MPI_CALL(int, MPI_Dist_graph_create,
               (MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                const int destinations[], const int* weights, MPI_Info info, int,
                MPI_Comm* comm_dist_graph)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.FindIntra(comm_old);
  call.NeedCount(n, "n");
  call.NeedArray(sources, n, "sources");
  call.NeedArray(degrees, n, "degrees");
  (void)call.FindOrNull(info);
  call.Need(comm_dist_graph, "comm_dist_graph");
  const int count = CountEdges(call, n, degrees);
  call.NeedArray(destinations, count, "destinations");
  const std::span<const int> used = Weights(call, weights, count, "weights");
  std::vector<GraphEdge> edges;
  if (call.ok()) {
    const auto nodes = static_cast<size_t>(n);
    call.Refuse(ListEdges(parent->size(), {sources, nodes}, {degrees, nodes},
                          {destinations, static_cast<size_t>(count)}, used, &edges));
  }
  CompareByName(call, parent);
  return call.Then([&] {
    call.Give(CreateDistributed(*parent, edges, !IsUnweighted(weights)), comm_dist_graph);
  });
}

FERRY_MPI_CALL(int, MPI_Dist_graph_neighbors_count,
               (MPI_Comm comm, int* indegree, int* outdegree, int* weighted)) {
  Call call(FERRY_MPI_NAME);
  const Neighbourhood* const own = FindNeighbourhood(call, comm);
  call.Need(indegree, "indegree", outdegree, "outdegree", weighted, "weighted");
  return call.Then([&] {
    *indegree = static_cast<int>(own->sources.size());
    *outdegree = static_cast<int>(own->destinations.size());
    *weighted = own->weighted ? 1 : 0;
  });
}

FERRY_MPI_CALL(int, MPI_Dist_graph_neighbors,
               (MPI_Comm comm, int maxindegree, int sources[], int* sourceweights, int maxoutdegree,
                int destinations[], int* destweights)) {
  Call call(FERRY_MPI_NAME);
  const Neighbourhood* const own = FindNeighbourhood(call, comm);
  call.NeedCount(maxindegree, "maxindegree");
  call.NeedCount(maxoutdegree, "maxoutdegree");
  call.NeedArray(sources, maxindegree, "sources");
  call.NeedArray(destinations, maxoutdegree, "destinations");
  FERRY_RETURN_ERROR(call.result());
  CopyUpTo(own->sources, maxindegree, sources);
  CopyUpTo(own->destinations, maxoutdegree, destinations);
  if (own->weighted && !IsUnweighted(sourceweights) && sourceweights != MPI_WEIGHTS_EMPTY) {
    CopyUpTo(own->source_weights, maxindegree, sourceweights);
  }
  if (own->weighted && !IsUnweighted(destweights) && destweights != MPI_WEIGHTS_EMPTY) {
    CopyUpTo(own->destination_weights, maxoutdegree, destweights);
  }
  return call.result();
}

}  // namespace ferry::mpi
