#include "examples/heat2d/solver.h"

#include <utility>

#include "examples/common/five_point.h"

namespace heat2d {

Image SolveSerially(const Image& initial, int iterations) {
  Image current = initial;
  Image next = initial;
  for (int i = 0; i < iterations; ++i) {
    examples::JacobiRows(current.values.data(), next.values.data(), current.width, 1,
                         current.height - 1);
    std::swap(current.values, next.values);
  }
  return current;
}

}  // namespace heat2d
