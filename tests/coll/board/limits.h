// From how many bytes on boards move data in which way: for tests that want one way only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coll/board/board_run.h"

namespace ferry::collective {

inline BoardLimits Limits(size_t direct_min_bytes, size_t cells_max_bytes) {
  BoardLimits limits;
  limits.direct_min_bytes.fill(direct_min_bytes);
  limits.cells_max_bytes = cells_max_bytes;
  return limits;
}

inline const BoardLimits kSlicesOnly = Limits(SIZE_MAX, size_t{1} << 19);
inline const BoardLimits kDirectOnly = Limits(1, 0);

}  // namespace ferry::collective
