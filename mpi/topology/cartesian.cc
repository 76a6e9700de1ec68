#include "mpi/topology/cartesian.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// `value` in 0 .. extent - 1, going round.
int Wrap(int64_t value, int extent) {
  int64_t rest = value % extent;
  return static_cast<int>(rest < 0 ? rest + extent : rest);
}

}  // namespace

Failure Cartesian::Make(std::span<const int> dims, std::span<const int> periods, int process_limit,
                        Cartesian* result) {
  Cartesian grid;
  int64_t size = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1) {
      return Failure{MPI_ERR_DIMS, "dims[" + std::to_string(i) + "] is " + std::to_string(dims[i]) +
                                       "; an extent is at least 1"};
    }
    size *= dims[i];
    if (size > process_limit) {
      return Failure{MPI_ERR_DIMS, "the grid has more places than the " +
                                       std::to_string(process_limit) +
                                       " processes of the communicator"};
    }
    grid.dims_.push_back(dims[i]);
    grid.periodic_.push_back(periods[i] != 0);
  }
  grid.size_ = static_cast<int>(size);
  *result = std::move(grid);
  return Failure{};
}

Failure Cartesian::RankAt(std::span<const int> coords, int* rank) const {
  int64_t at = 0;
  for (size_t i = 0; i < dims_.size(); ++i) {
    int coord = coords[i];
    if (coord < 0 || coord >= dims_[i]) {
      if (!periodic_[i]) {
        return Failure{MPI_ERR_ARG, "coords[" + std::to_string(i) + "] is " +
                                        std::to_string(coord) + "; that dimension has extent " +
                                        std::to_string(dims_[i]) + " and is not periodic"};
      }
      coord = Wrap(coord, dims_[i]);
    }
    at = at * dims_[i] + coord;
  }
  *rank = static_cast<int>(at);
  return Failure{};
}

void Cartesian::CoordsOf(int rank, std::span<int> coords) const {
  for (size_t i = dims_.size(); i-- > 0;) {
    if (i < coords.size()) {
      coords[i] = rank % dims_[i];
    }
    rank /= dims_[i];
  }
}

Cartesian::Shifted Cartesian::Shift(int rank, int direction, int64_t displacement) const {
  int stride = 1;  // between ranks that are neighbours in this direction
  for (int i = dimensions() - 1; i > direction; --i) {
    stride *= dims_[i];
  }
  int extent = dims_[direction];
  int coord = rank / stride % extent;
  auto rank_at = [&](int64_t target) -> int {
    if ((target < 0 || target >= extent) && !periodic_[direction]) {
      return MPI_PROC_NULL;
    }
    return rank + (Wrap(target, extent) - coord) * stride;
  };
  return {rank_at(coord - displacement), rank_at(coord + displacement)};
}

Cartesian::Part Cartesian::PartOf(int rank, std::span<const int> keep) const {
  Part part{0, 0};
  std::vector<int> coords(dims_.size());
  CoordsOf(rank, coords);
  for (size_t i = 0; i < dims_.size(); ++i) {
    int& number = keep[i] != 0 ? part.key : part.color;
    number = number * dims_[i] + coords[i];
  }
  return part;
}

Cartesian Cartesian::Cut(std::span<const int> keep) const {
  Cartesian part;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (keep[i] != 0) {
      part.dims_.push_back(dims_[i]);
      part.periodic_.push_back(periodic_[i]);
      part.size_ *= dims_[i];
    }
  }
  return part;
}

std::vector<int> Cartesian::Neighbours(int rank) const {
  std::vector<int> neighbours;
  for (int direction = 0; direction < dimensions(); ++direction) {
    Shifted shifted = Shift(rank, direction, 1);
    neighbours.push_back(shifted.source);
    neighbours.push_back(shifted.destination);
  }
  return neighbours;
}

// ---- Extents ------------------------------------------------------------------------------------

namespace {

std::vector<int> Divisors(int value) {
  std::vector<int> divisors;
  for (int64_t low = 1; low * low <= value; ++low) {
    if (value % low == 0) {
      divisors.push_back(static_cast<int>(low));
      if (low * low != value) {
        divisors.push_back(static_cast<int>(value / low));
      }
    }
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// Returns true if base^exponent >= bound.
bool PowerReaches(int64_t base, int exponent, int64_t bound) {
  int64_t power = 1;
  for (int i = 0; i < exponent && power < bound; ++i) {
    if (base == 1) {
      break;
    }
    power *= base;
  }
  return power >= bound;
}

// The largest value whose `count`th power is at most `product`: no smallest factor is larger.
int RootBelow(int product, int count) {
  int low = 1;
  int high = product;
  while (low < high) {
    int middle = low + (high - low + 1) / 2;
    if (PowerReaches(middle, count, int64_t{product} + 1)) {
      high = middle - 1;
    } else {
      low = middle;
    }
  }
  return low;
}

// Looks through the ways to write a product, factors in descending order, and keeps the best.
class FactorSearch {
 public:
  FactorSearch(int product, int count) : divisors_(Divisors(product)), chosen_(count) {
    Choose(0, product);
  }
  std::vector<int> best() const { return best_; }

 private:
  // Chooses factor `at` and those after it; they are to make `product`.
  void Choose(size_t at, int product) {
    int left = static_cast<int>(chosen_.size() - at);
    if (left == 1) {
      chosen_[at] = product;
      Keep();
      return;
    }
    int most = at == 0 ? product : chosen_[at - 1];
    int smallest_at_most = RootBelow(product, left);
    // Ascending, so that the first one found with a difference has the smallest largest factor.
    for (auto divisor = std::lower_bound(divisors_.begin(), divisors_.end(), smallest_at_most);
         divisor != divisors_.end() && *divisor <= most; ++divisor) {
      if (product % *divisor != 0 || !PowerReaches(*divisor, left, product)) {
        continue;
      }
      int largest = at == 0 ? *divisor : chosen_[0];
      if (!best_.empty() && largest - smallest_at_most >= best_.front() - best_.back()) {
        return;  // for larger divisors too
      }
      chosen_[at] = *divisor;
      Choose(at + 1, product / *divisor);
    }
  }

  void Keep() {
    if (best_.empty() || chosen_.front() - chosen_.back() < best_.front() - best_.back()) {
      best_ = chosen_;
    }
  }

  std::vector<int> divisors_;
  std::vector<int> chosen_;
  std::vector<int> best_;
};

}  // namespace

std::vector<int> BalancedFactors(int product, int count) {
  return FactorSearch(product, count).best();
}

Failure CreateDims(int process_count, std::span<int> dims) {
  if (process_count < 1) {
    return Failure{MPI_ERR_ARG,
                   "nnodes is " + std::to_string(process_count) + "; at least 1 is needed"};
  }
  int64_t fixed = 1;
  int open = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return Failure{MPI_ERR_DIMS, "dims[" + std::to_string(i) + "] is " + std::to_string(dims[i])};
    }
    open += dims[i] == 0 ? 1 : 0;
    fixed *= dims[i] == 0 ? 1 : dims[i];
    if (fixed > process_count) {
      break;
    }
  }
  if (fixed > process_count || process_count % fixed != 0 ||
      (open == 0 && !dims.empty() && fixed != process_count)) {
    return Failure{MPI_ERR_DIMS, "the extents given do not divide nnodes " +
                                     std::to_string(process_count) + " into a grid"};
  }
  if (open > 0) {
    std::vector<int> factors = BalancedFactors(static_cast<int>(process_count / fixed), open);
    auto next = factors.begin();
    for (int& extent : dims) {
      if (extent == 0) {
        extent = *next++;
      }
    }
  }
  return Failure{};
}

// ---- Places -------------------------------------------------------------------------------------

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

// Adds all shapes of `places` places whose extents divide those of the grid.
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
