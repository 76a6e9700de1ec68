#include "examples/mpi_jacobi/tile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "examples/common/five_point.h"

namespace mpi_jacobi {

double StartOf(const Plane& plane, int column, int row) {
  const bool on_top = row == 0;
  const bool on_right = column == plane.width - 1;
  if (on_top) {
    return 100 * std::sin(std::numbers::pi * column / (plane.width - 1));
  }
  return on_right ? 50.0 * row * (plane.height - 1 - row) / (plane.height - 1) : 0;
}

Tile::Tile(const Plane& plane, const examples::Range& columns, const examples::Range& rows)
    : columns_(columns), rows_(rows) {
  for (int row = 0; row < rows.count + 2; ++row) {
    for (int column = 0; column < columns.count + 2; ++column) {
      current_.push_back(StartOf(plane, columns.first + column - 1, rows.first + row - 1));
    }
  }
  next_ = current_;
}

Tile::Tile(const Plane& plane) : Tile(plane, {1, plane.width - 2}, {1, plane.height - 2}) {}

double Tile::Sweep() {
  examples::JacobiRows(current_.data(), next_.data(), stride(), 1, rows() + 1);
  double change = 0;
  for (int row = 1; row <= rows(); ++row) {
    for (int column = 1; column <= columns(); ++column) {
      const size_t index = IndexOf(column, row);
      change = std::max(change, std::abs(next_[index] - current_[index]));
    }
  }
  current_.swap(next_);
  return change;
}

double Tile::DifferenceFrom(const std::vector<double>& whole, const Plane& plane) const {
  double difference = 0;
  for (int row = 1; row <= rows(); ++row) {
    for (int column = 1; column <= columns(); ++column) {
      const int there_row = rows_.first + row - 1;
      const int there_column = columns_.first + column - 1;
      const size_t there = static_cast<size_t>(there_row) * static_cast<size_t>(plane.width) +
                           static_cast<size_t>(there_column);
      difference = std::max(difference, std::abs(current_[IndexOf(column, row)] - whole[there]));
    }
  }
  return difference;
}

}  // namespace mpi_jacobi
