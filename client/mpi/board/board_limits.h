// When a board's ranks read and write each other's memory, and how many cells they have.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "client/mpi/board/board_layout.h"
#include "client/mpi/collective/problem.h"

namespace ferry::mpi {

struct BoardLimits {
  // By collective: from so many bytes of a rank's vector, or of one block, ranks copy straight
  // between their buffers. SIZE_MAX: never.
  std::array<size_t, kCollectives> direct_min_bytes;
  // Nothing larger goes through cells.
  size_t cells_max_bytes = SIZE_MAX;

  size_t direct_min(Collective collective) const {
    return direct_min_bytes[static_cast<size_t>(collective)];
  }
};

// `crowded`: more ranks than cores.
BoardShape ShapeFor(int members, bool crowded);
// `reachable`: all ranks can read and write each other's memory.
BoardLimits LimitsFor(int members, bool crowded, bool reachable);

}  // namespace ferry::mpi
