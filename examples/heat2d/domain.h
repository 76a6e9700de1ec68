// One rank's part of the image, in device memory, and its exchange with the ranks above and below.
#pragma once

#include <cstdint>

#include "examples/common/process_grid.h"
#include "examples/heat2d/image.h"
#include "ferry/ferry.hpp"

namespace heat2d {

class Domain {
 public:
  // Collective: rank 0 sends each rank its rows of `initial` with one more on either side; the
  // other ranks need only its size.
  Domain(const ferry::Session& session, const Image& initial);

  // Collective: one iteration. While the halo rows travel, the rows that do not need them are
  // computed.
  void Step();

  // Collective: rank 0 gets the rows of all ranks into `result`.
  void Gather(Image* result) const;
  // Collective: the sum of all interior rows, added up rank by rank; known to rank 0.
  double Sum() const;

 private:
  double* Row(const ferry::Buffer<double>& buffer, int row) const {
    return buffer.data() + static_cast<size_t>(row) * static_cast<size_t>(width_);
  }
  size_t RowsBytes(int rows) const {
    return static_cast<size_t>(rows) * static_cast<size_t>(width_) * sizeof(double);
  }

  const int rank_;
  const int ranks_;
  const int width_;
  const int height_;
  const examples::Range slab_;
  // Rows 0 and count + 1 are halos: a neighbour's row, or the image's fixed edge. The host
  // backend's device memory can be read by the CPU; another backend would launch a kernel in Step
  // and Sum.
  ferry::Buffer<double> current_;
  ferry::Buffer<double> next_;
};

}  // namespace heat2d
