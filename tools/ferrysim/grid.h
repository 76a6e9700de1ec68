// A periodic grid of cells, cut into one block for each rank, and the eight neighbours of a block.
//
// Pure functions: any thread.
#pragma once

#include <array>
#include <cstdint>

namespace ferry::sim {

inline constexpr uint32_t kDirections = 8;

// As nearly square as the number of ranks allows; rows of ranks are consecutive.
struct Grid {
  uint32_t rows = 1;
  uint32_t columns = 1;
};
Grid GridOf(uint32_t ranks);

struct Neighbour {
  uint32_t rank = 0;
  uint32_t direction = 0;  // in which this rank lies, seen from there: where its message arrives
  uint64_t bytes = 0;      // what goes to it, and what comes from it
};

// The neighbours of a block of a grid of `cells` by `cells`, rounded up to whole cells. Neighbour d
// lies in direction d, and this rank in its direction 7 - d.
std::array<Neighbour, kDirections> NeighboursOf(const Grid& grid, uint32_t rank, uint64_t cells,
                                                uint64_t cell_bytes);
// Cells of a rank's block.
double CellsOf(const Grid& grid, uint64_t cells);
// The mean length of an edge, as figure 8 of the paper has it: that of a square block.
double MeanEdgeBytes(uint32_t ranks, uint64_t cells, uint64_t cell_bytes);

}  // namespace ferry::sim
