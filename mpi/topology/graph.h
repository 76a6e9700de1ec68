// Process graphs: the graph that every process knows as a whole (MPI_Graph_create), and the
// distributed graph of which each process knows its own edges (MPI_Dist_graph_create). MPI 5.0,
// sections 8.5.3 and 8.5.4.
//
// Pure and immutable; any thread; does not block. Failures name the argument and its value.
#pragma once

#include <span>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

class Graph {
 public:
  // Makes a graph. `index` has one element for each node, the number of edges of it and those
  // before it; `edges` the neighbours of all nodes in turn (at least as many as index says).
  // MPI_ERR_TOPOLOGY for descending or negative values of `index` and for neighbours that are no
  // node. Loops, repeated edges and edges of one direction are fine.
  static Failure Make(std::span<const int> index, std::span<const int> edges, Graph* result);

  int node_count() const { return static_cast<int>(index_.size()); }
  const std::vector<int>& index() const { return index_; }
  const std::vector<int>& edges() const { return edges_; }
  // `node` must be in 0 .. node_count() - 1.
  std::span<const int> Neighbours(int node) const;

 private:
  std::vector<int> index_;
  std::vector<int> edges_;
};

// The edges of one process. Weights are empty when the graph has none, else one for each edge.
struct Neighbourhood {
  std::vector<int> sources;
  std::vector<int> source_weights;
  std::vector<int> destinations;
  std::vector<int> destination_weights;
  bool weighted = false;
};

// An edge, which any process may contribute. The weight is 1 if the graph has no weights.
struct GraphEdge {
  int source;
  int destination;
  int weight;
};

// Turns the arguments of MPI_Dist_graph_create into a list of edges: `degrees[i]` edges leave
// `sources[i]`, for `destinations` in turn. `weights` is empty or has one for each of them.
// MPI_ERR_ARG for a negative degree or weight; MPI_ERR_RANK for nodes outside 0 .. process_count -
// 1.
Failure ListEdges(int process_count, std::span<const int> sources, std::span<const int> degrees,
                  std::span<const int> destinations, std::span<const int> weights,
                  std::vector<GraphEdge>* edges);
// Checks the neighbours of MPI_Dist_graph_create_adjacent; `name` is the argument's name.
// MPI_ERR_RANK for one outside 0 .. process_count - 1, MPI_ERR_ARG for a negative weight.
Failure CheckNeighbours(int process_count, std::span<const int> neighbours,
                        std::span<const int> weights, const char* name);

// The edges that `rank` keeps: those that end or begin there, in the order given.
Neighbourhood NeighbourhoodOf(int rank, std::span<const GraphEdge> edges, bool weighted);

}  // namespace ferry::mpi
