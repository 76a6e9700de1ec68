// Jacobi's method for the heat equation: each point becomes the mean of its four neighbours, the
// outermost points keep their value.
#pragma once

#include "examples/heat2d/image.h"

namespace heat2d {

// The rows of one rank: [first, first + count), interior rows of the whole image only.
struct Slab {
  int first = 0;
  int count = 0;
};

// Splits the interior rows of an image among the ranks, in blocks that differ by at most one row.
Slab SlabOf(int height, int ranks, int rank);

// One step for rows [first, last) of `next`, from `current`; both have `width` columns, whose
// outermost are left alone. The same arithmetic in the same order for every caller, so that a split
// solve equals a serial one to the last bit.
void JacobiRows(const double* current, double* next, int width, int first, int last);

// The whole image in one process, for comparison.
Image SolveSerially(const Image& initial, int iterations);

}  // namespace heat2d
