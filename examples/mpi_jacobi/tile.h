// A rank's part of a plane that Jacobi's method relaxes: Laplace's equation, held at fixed
// temperatures around the edge.
#pragma once

#include <vector>

#include "examples/common/process_grid.h"

namespace mpi_jacobi {

// All points, of which the outermost are the edge.
struct Plane {
  int width;
  int height;
};

// The value of a point at the start; the edge keeps it.
double StartOf(const Plane& plane, int column, int row);

// Some columns and rows of the plane's interior, with a rim of one point around them: the edge of
// the plane, or copies of the neighbours' points, which the caller updates.
class Tile {
 public:
  Tile(const Plane& plane, const examples::Range& columns, const examples::Range& rows);
  // Makes a tile of all of the plane's interior.
  explicit Tile(const Plane& plane);

  int columns() const { return columns_.count; }
  int rows() const { return rows_.count; }
  // Points from one row to the next.
  int stride() const { return columns_.count + 2; }

  // A point of the tile: 1 to columns() and rows(), and the rim around these.
  double* At(int column, int row) { return current_.data() + IndexOf(column, row); }
  const std::vector<double>& points() const { return current_; }

  // Computes one step. Returns the change of the point that changed most.
  double Sweep();

  // The largest difference from the same points of `whole`, a tile of the whole plane.
  double DifferenceFrom(const std::vector<double>& whole, const Plane& plane) const;

 private:
  size_t IndexOf(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(stride()) + static_cast<size_t>(column);
  }

  examples::Range columns_;
  examples::Range rows_;
  std::vector<double> current_;
  std::vector<double> next_;
};

}  // namespace mpi_jacobi
