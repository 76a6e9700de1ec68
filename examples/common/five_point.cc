#include "examples/common/five_point.h"

#include <cstddef>

namespace examples {

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

}  // namespace examples
