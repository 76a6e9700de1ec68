// Jacobi's method for the heat equation: each point becomes the mean of its four neighbours, the
// outermost points keep their value.
#pragma once

#include "examples/heat2d/image.h"

namespace heat2d {

// The whole image in one process, for comparison.
Image SolveSerially(const Image& initial, int iterations);

}  // namespace heat2d
