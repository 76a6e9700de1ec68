#include "mpi/topology/graph.h"

#include <string>
#include <utility>

#include "common/counted.h"
#include "ferry/mpi/mpi.h"
#include "mpi/topology/topology.h"

namespace ferry::mpi {
namespace {

std::string Element(const char* name, size_t at, int value) {
  return std::string(name) + "[" + std::to_string(at) + "] is " + std::to_string(value);
}

bool IsNode(int value, int count) { return value >= 0 && value < count; }

}  // namespace

Failure Graph::Make(std::span<const int> index, std::span<const int> edges, Graph* result) {
  int count = static_cast<int>(index.size());
  int before = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < before) {
      return Failure{MPI_ERR_TOPOLOGY,
                     Element("index", i, index[i]) + "; it counts edges up from 0"};
    }
    before = index[i];
  }
  for (int i = 0; i < before; ++i) {
    if (!IsNode(edges[i], count)) {
      return Failure{MPI_ERR_TOPOLOGY,
                     Element("edges", i, edges[i]) + "; the graph has " + Counted(count, "node")};
    }
  }
  result->index_.assign(index.begin(), index.end());
  result->edges_.assign(edges.begin(), edges.begin() + before);
  return Failure{};
}

std::span<const int> Graph::Neighbours(int node) const {
  int begin = node == 0 ? 0 : index_[node - 1];
  return std::span(edges_).subspan(begin, index_[node] - begin);
}

Failure ListEdges(int process_count, std::span<const int> sources, std::span<const int> degrees,
                  std::span<const int> destinations, std::span<const int> weights,
                  std::vector<GraphEdge>* edges) {
  edges->clear();
  size_t at = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!IsNode(sources[i], process_count)) {
      return Failure{MPI_ERR_RANK, Element("sources", i, sources[i]) + "; there are " +
                                       Counted(process_count, "process", "processes")};
    }
    if (degrees[i] < 0) {
      return Failure{MPI_ERR_ARG, Element("degrees", i, degrees[i])};
    }
    for (int edge = 0; edge < degrees[i]; ++edge, ++at) {
      if (!IsNode(destinations[at], process_count)) {
        return Failure{MPI_ERR_RANK, Element("destinations", at, destinations[at]) +
                                         "; there are " +
                                         Counted(process_count, "process", "processes")};
      }
      int weight = weights.empty() ? 1 : weights[at];
      if (weight < 0) {
        return Failure{MPI_ERR_ARG, Element("weights", at, weight)};
      }
      edges->push_back({sources[i], destinations[at], weight});
    }
  }
  return Failure{};
}

Failure CheckNeighbours(int process_count, std::span<const int> neighbours,
                        std::span<const int> weights, const char* name) {
  for (size_t i = 0; i < neighbours.size(); ++i) {
    if (!IsNode(neighbours[i], process_count)) {
      return Failure{MPI_ERR_RANK, Element(name, i, neighbours[i]) + "; there are " +
                                       Counted(process_count, "process", "processes")};
    }
    if (!weights.empty() && weights[i] < 0) {
      return Failure{MPI_ERR_ARG, std::string("the weight of ") + Element(name, i, neighbours[i]) +
                                      ": " + std::to_string(weights[i])};
    }
  }
  return Failure{};
}

Neighbourhood NeighbourhoodOf(int rank, std::span<const GraphEdge> edges, bool weighted) {
  Neighbourhood found;
  found.weighted = weighted;
  for (const GraphEdge& edge : edges) {
    if (edge.destination == rank) {
      found.sources.push_back(edge.source);
      if (weighted) {
        found.source_weights.push_back(edge.weight);
      }
    }
    if (edge.source == rank) {
      found.destinations.push_back(edge.destination);
      if (weighted) {
        found.destination_weights.push_back(edge.weight);
      }
    }
  }
  return found;
}

// ---- Topologies of any kind ---------------------------------------------------------------------

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
