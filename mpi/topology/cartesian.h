// Cartesian: the places of processes in a Cartesian grid. MPI 5.0, section 8.5: row-major order,
// the last dimension runs fastest.
//
// Pure and immutable; any thread; does not block. Failures name the argument and its value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

class Cartesian {
 public:
  // The two ranks of a shift; MPI_PROC_NULL beyond an edge.
  struct Shifted {
    int source;
    int destination;
  };
  // The part of a cut grid to which a process belongs: all processes with one colour make a grid.
  struct Part {
    int color;
    int key;
  };

  // Makes a grid of these extents for at most `process_limit` processes. No dimension at all is a
  // grid of one process. MPI_ERR_DIMS for an extent below 1, or when the grid has more places than
  // `process_limit`.
  static Failure Make(std::span<const int> dims, std::span<const int> periods, int process_limit,
                      Cartesian* result);

  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size() const { return size_; }
  const std::vector<int>& dims() const { return dims_; }
  const std::vector<bool>& periodic() const { return periodic_; }

  // `coords` has dimensions() elements. Coordinates of periodic dimensions are wrapped; MPI_ERR_ARG
  // for any other coordinate outside the grid.
  Failure RankAt(std::span<const int> coords, int* rank) const;
  // `rank` must be in 0 .. size() - 1. Writes as many coordinates as `coords` has room for.
  void CoordsOf(int rank, std::span<int> coords) const;
  // Shifts from `rank` along `direction` (0 .. dimensions() - 1) by `displacement`, which may be
  // negative.
  Shifted Shift(int rank, int direction, int64_t displacement) const;

  // PartOf returns the part of `rank`, and Cut the grid of each part, if the dimensions that `keep`
  // names are kept. `keep` has dimensions() elements.
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

// ---- MPI_Dims_create (section 8.5.2): extents of a grid for so many processes -------------------

// Returns `count` factors of `product` (at least 1), largest first, as close to each other as
// possible: with the least difference between the largest and the smallest, then the least largest
// one, then the least second one, and so on. `count` is at least 1.
std::vector<int> BalancedFactors(int product, int count);

// Gives the extents that are 0 values whose product with the others is `process_count`.
// MPI_ERR_DIMS when there are none, or an extent is negative; MPI_ERR_ARG for fewer than one
// process. `dims` is unchanged after an error.
Failure CreateDims(int process_count, std::span<int> dims);

// ---- Which process gets which place, so that neighbours share nodes (section 8.5.1, `reorder`) --

// Returns the process of each place of the grid. `node_of`: the nodes of at least as many processes
// as the grid has places; the first processes get a place.
//
// If all nodes have equally many of these processes, the grid is cut into blocks of that size, one
// for each node, in the shape with the fewest neighbours on different nodes. If that is no better,
// or nodes differ, processes stay in their order.
std::vector<int> PlaceByNodes(const Cartesian& grid, const std::vector<int>& node_of);

// How many times a process has a neighbour on another node.
int CrossingNeighbours(const Cartesian& grid, const std::vector<int>& process_at,
                       const std::vector<int>& node_of);

}  // namespace ferry::mpi
