// Where processes lie in a Cartesian grid. MPI 5.0, section 8.5: row-major order, the last
// dimension runs fastest.
//
// Pure and immutable; any thread; does not block. Failures name the argument and its value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/mpi/error/failure.h"

namespace ferry::mpi {

class Cartesian {
 public:
  // The two ranks of a shift; MPI_PROC_NULL beyond an edge.
  struct Shifted {
    int source;
    int destination;
  };
  // The part that one process comes to be in when a grid is cut: all with one colour make a grid.
  struct Part {
    int color;
    int key;
  };

  // A grid of these extents for at most `process_limit` processes. No dimension at all is a grid of
  // one process. MPI_ERR_DIMS for an extent below 1, or when the grid is larger than that.
  static Failure Make(std::span<const int> dims, std::span<const int> periods, int process_limit,
                      Cartesian* result);

  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size() const { return size_; }
  const std::vector<int>& dims() const { return dims_; }
  const std::vector<bool>& periodic() const { return periodic_; }

  // `coords` has dimensions() elements. Periodic ones are wrapped; MPI_ERR_ARG for another one
  // outside the grid.
  Failure RankAt(std::span<const int> coords, int* rank) const;
  // `rank` must be in 0 .. size() - 1. Writes as many coordinates as `coords` has room for.
  void CoordsOf(int rank, std::span<int> coords) const;
  // From `rank` along `direction` (0 .. dimensions() - 1) by `displacement`, which may be negative.
  Shifted Shift(int rank, int direction, int64_t displacement) const;

  // `keep` has dimensions() elements.
  Part PartOf(int rank, std::span<const int> keep) const;
  Cartesian Cut(std::span<const int> keep) const;

  // 2 x dimensions() ranks: for each dimension the neighbour before, then the one behind; both
  // sources and destinations of neighbourhood collectives (MPI 5.0, section 8.6).
  std::vector<int> Neighbours(int rank) const;

 private:
  std::vector<int> dims_;
  std::vector<bool> periodic_;
  int size_ = 1;
};

}  // namespace ferry::mpi
