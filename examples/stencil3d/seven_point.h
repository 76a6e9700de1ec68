// The seven-point stencil, Jacobi's method for the heat equation in space, on boxes of points.
#pragma once

#include <cstddef>
#include <vector>

#include "examples/common/process_grid.h"

namespace stencil3d {

using examples::Triple;

// Points first <= p < last, on each axis.
struct Box {
  Triple first = {0, 0, 0};
  Triple last = {0, 0, 0};
  bool empty() const;
  size_t points() const;
};

// Returns the index of a point in a field of that extent.
size_t IndexOf(const Triple& extent, int x, int y, int z);

// One step for the points of `box`: each becomes the mean of its six neighbours. All callers get
// the same arithmetic in the same order, so that a split solve equals a serial one to the last bit.
void JacobiBox(const double* current, double* next, const Triple& extent, const Box& box);

// The outermost layer of `box`, in boxes that do not overlap, and the box inside it.
struct Layers {
  std::vector<Box> shell;
  Box inside;
};
Layers LayersOf(const Box& box);

// Copies the points of `box` out of a field, one after the other, and into one.
void Gather(const double* field, const Triple& extent, const Box& box, double* values);
void Scatter(const double* values, const Triple& extent, const Box& box, double* field);

}  // namespace stencil3d
