#include <algorithm>
#include <map>
#include <numeric>

#include "client/mpi/topology/cartesian.h"
#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// The processes of each node, nodes in the order of their first ones. Empty unless all nodes have
// as many.
std::vector<std::vector<int>> EvenNodes(const std::vector<int>& node_of, int processes) {
  std::map<int, size_t> index_of;
  std::vector<std::vector<int>> nodes;
  for (int process = 0; process < processes; ++process) {
    const auto [found, is_new] =
        index_of.emplace(node_of[static_cast<size_t>(process)], nodes.size());
    if (is_new) {
      nodes.emplace_back();
    }
    nodes[found->second].push_back(process);
  }
  const bool are_even = std::all_of(nodes.begin(), nodes.end(), [&](const std::vector<int>& node) {
    return node.size() == nodes.front().size();
  });
  return are_even ? nodes : std::vector<std::vector<int>>();
}

// All shapes of so many places whose extents divide those of the grid.
void AddShapes(const std::vector<int>& dims, int places, std::vector<int>* shape,
               std::vector<std::vector<int>>* shapes) {
  if (shape->size() == dims.size()) {
    if (places == 1) {
      shapes->push_back(*shape);
    }
    return;
  }
  const int extent = dims[shape->size()];
  for (int part = 1; part <= std::min(extent, places); ++part) {
    if (extent % part == 0 && places % part == 0) {
      shape->push_back(part);
      AddShapes(dims, places / part, shape, shapes);
      shape->pop_back();
    }
  }
}

// Block after block, and place after place in each, in row-major order.
std::vector<int> PlaceInBlocks(const Cartesian& grid, const std::vector<std::vector<int>>& nodes,
                               const std::vector<int>& shape) {
  std::vector<int> process_at(static_cast<size_t>(grid.size()));
  std::vector<int> coords(shape.size());
  for (int place = 0; place < grid.size(); ++place) {
    grid.CoordsOf(place, coords);
    int block = 0;
    int inside = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      block = block * (grid.dims()[i] / shape[i]) + coords[i] / shape[i];
      inside = inside * shape[i] + coords[i] % shape[i];
    }
    process_at[static_cast<size_t>(place)] =
        nodes[static_cast<size_t>(block)][static_cast<size_t>(inside)];
  }
  return process_at;
}

}  // namespace

int CrossingNeighbours(const Cartesian& grid, const std::vector<int>& process_at,
                       const std::vector<int>& node_of) {
  const auto node_at = [&](int place) {
    return node_of[static_cast<size_t>(process_at[static_cast<size_t>(place)])];
  };
  int crossing = 0;
  for (int place = 0; place < grid.size(); ++place) {
    for (const int neighbour : grid.Neighbours(place)) {
      crossing += neighbour != MPI_PROC_NULL && node_at(neighbour) != node_at(place) ? 1 : 0;
    }
  }
  return crossing;
}

std::vector<int> PlaceByNodes(const Cartesian& grid, const std::vector<int>& node_of) {
  std::vector<int> best(static_cast<size_t>(grid.size()));
  std::iota(best.begin(), best.end(), 0);
  const std::vector<std::vector<int>> nodes = EvenNodes(node_of, grid.size());
  if (nodes.size() < 2 || nodes.front().size() < 2) {
    return best;
  }
  std::vector<std::vector<int>> shapes;
  std::vector<int> shape;
  AddShapes(grid.dims(), static_cast<int>(nodes.front().size()), &shape, &shapes);
  int fewest = CrossingNeighbours(grid, best, node_of);
  for (const std::vector<int>& one : shapes) {
    std::vector<int> process_at = PlaceInBlocks(grid, nodes, one);
    if (const int crossing = CrossingNeighbours(grid, process_at, node_of); crossing < fewest) {
      fewest = crossing;
      best = std::move(process_at);
    }
  }
  return best;
}

}  // namespace ferry::mpi
