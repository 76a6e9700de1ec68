#include "examples/heat2d/solver.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace heat2d {

Slab SlabOf(int height, int ranks, int rank) {
  const int interior = height - 2;
  const int rows = interior / ranks;
  const int larger = interior % ranks;  // so many ranks have one row more
  return {1 + rank * rows + std::min(rank, larger), rows + (rank < larger ? 1 : 0)};
}

void JacobiRows(const double* current, double* next, int width, int first, int last) {
  const auto stride = static_cast<size_t>(width);
  for (int row = first; row < last; ++row) {
    const double* middle = current + static_cast<size_t>(row) * stride;
    const double* above = middle - stride;
    const double* below = middle + stride;
    double* out = next + static_cast<size_t>(row) * stride;
    for (size_t i = 1; i + 1 < stride; ++i) {
      out[i] = 0.25 * ((above[i] + below[i]) + (middle[i - 1] + middle[i + 1]));
    }
  }
}

Image SolveSerially(const Image& initial, int iterations) {
  Image current = initial;
  Image next = initial;
  for (int i = 0; i < iterations; ++i) {
    JacobiRows(current.values.data(), next.values.data(), current.width, 1, current.height - 1);
    std::swap(current.values, next.values);
  }
  return current;
}

}  // namespace heat2d
