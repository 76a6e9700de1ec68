// The five-point stencil: Jacobi's method for the heat equation in a plane.
#pragma once

namespace examples {

// One step for rows [first, last) of `next`, from `current`: each point becomes the mean of its
// four neighbours. Both have `width` columns, whose outermost are left alone. All callers get the
// same arithmetic in the same order, so that a split solve equals a serial one to the last bit.
void JacobiRows(const double* current, double* next, int width, int first, int last);

}  // namespace examples
