#include "tools/ferrysim/grid.h"

#include <cmath>
#include <utility>

namespace ferry::sim {
namespace {

// (row, column) of the eight directions.
constexpr std::array<std::pair<int, int>, kDirections> kSteps = {
    {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}}};

uint32_t Wrapped(uint32_t place, int step, uint32_t size) {
  return (place + size + static_cast<uint32_t>(step)) % size;
}

uint64_t DividedUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

}  // namespace

Grid GridOf(uint32_t ranks) {
  auto rows = static_cast<uint32_t>(std::sqrt(static_cast<double>(ranks)));
  while (rows > 1 && ranks % rows != 0) {
    --rows;
  }
  return {.rows = rows, .columns = ranks / rows};
}

std::array<Neighbour, kDirections> NeighboursOf(const Grid& grid, uint32_t rank, uint64_t cells,
                                                uint64_t cell_bytes) {
  const uint64_t height = DividedUp(cells, grid.rows);
  const uint64_t width = DividedUp(cells, grid.columns);
  std::array<Neighbour, kDirections> neighbours;
  for (uint32_t d = 0; d < kDirections; ++d) {
    const auto [down, right] = kSteps[d];
    const uint32_t row = Wrapped(rank / grid.columns, down, grid.rows);
    const uint32_t column = Wrapped(rank % grid.columns, right, grid.columns);
    neighbours[d] = {.rank = row * grid.columns + column,
                     .direction = kDirections - 1 - d,
                     .bytes = (down == 0 ? height : 1) * (right == 0 ? width : 1) * cell_bytes};
  }
  return neighbours;
}

double CellsOf(const Grid& grid, uint64_t cells) {
  const auto side = static_cast<double>(cells);
  return side / grid.rows * (side / grid.columns);
}

double MeanEdgeBytes(uint32_t ranks, uint64_t cells, uint64_t cell_bytes) {
  return static_cast<double>(cells) / std::sqrt(ranks) * static_cast<double>(cell_bytes);
}

}  // namespace ferry::sim
