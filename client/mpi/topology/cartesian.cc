#include "client/mpi/topology/cartesian.h"

#include <string>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// `value` in 0 .. extent - 1, going round.
int Wrap(int64_t value, int extent) {
  int64_t rest = value % extent;
  return static_cast<int>(rest < 0 ? rest + extent : rest);
}

}  // namespace

Failure Cartesian::Make(std::span<const int> dims, std::span<const int> periods, int process_limit,
                        Cartesian* result) {
  Cartesian grid;
  int64_t size = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1) {
      return Failure{MPI_ERR_DIMS, "dims[" + std::to_string(i) + "] is " + std::to_string(dims[i]) +
                                       "; an extent is at least 1"};
    }
    size *= dims[i];
    if (size > process_limit) {
      return Failure{MPI_ERR_DIMS, "the grid has more places than the " +
                                       std::to_string(process_limit) +
                                       " processes of the communicator"};
    }
    grid.dims_.push_back(dims[i]);
    grid.periodic_.push_back(periods[i] != 0);
  }
  grid.size_ = static_cast<int>(size);
  *result = std::move(grid);
  return Failure{};
}

Failure Cartesian::RankAt(std::span<const int> coords, int* rank) const {
  int64_t at = 0;
  for (size_t i = 0; i < dims_.size(); ++i) {
    int coord = coords[i];
    if (coord < 0 || coord >= dims_[i]) {
      if (!periodic_[i]) {
        return Failure{MPI_ERR_ARG, "coords[" + std::to_string(i) + "] is " +
                                        std::to_string(coord) + "; that dimension has extent " +
                                        std::to_string(dims_[i]) + " and is not periodic"};
      }
      coord = Wrap(coord, dims_[i]);
    }
    at = at * dims_[i] + coord;
  }
  *rank = static_cast<int>(at);
  return Failure{};
}

void Cartesian::CoordsOf(int rank, std::span<int> coords) const {
  for (size_t i = dims_.size(); i-- > 0;) {
    if (i < coords.size()) {
      coords[i] = rank % dims_[i];
    }
    rank /= dims_[i];
  }
}

Cartesian::Shifted Cartesian::Shift(int rank, int direction, int64_t displacement) const {
  int stride = 1;  // between ranks that are neighbours in this direction
  for (int i = dimensions() - 1; i > direction; --i) {
    stride *= dims_[i];
  }
  int extent = dims_[direction];
  int coord = rank / stride % extent;
  auto rank_at = [&](int64_t target) -> int {
    if ((target < 0 || target >= extent) && !periodic_[direction]) {
      return MPI_PROC_NULL;
    }
    return rank + (Wrap(target, extent) - coord) * stride;
  };
  return {rank_at(coord - displacement), rank_at(coord + displacement)};
}

Cartesian::Part Cartesian::PartOf(int rank, std::span<const int> keep) const {
  Part part{0, 0};
  std::vector<int> coords(dims_.size());
  CoordsOf(rank, coords);
  for (size_t i = 0; i < dims_.size(); ++i) {
    int& number = keep[i] != 0 ? part.key : part.color;
    number = number * dims_[i] + coords[i];
  }
  return part;
}

Cartesian Cartesian::Cut(std::span<const int> keep) const {
  Cartesian part;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (keep[i] != 0) {
      part.dims_.push_back(dims_[i]);
      part.periodic_.push_back(periodic_[i]);
      part.size_ *= dims_[i];
    }
  }
  return part;
}

std::vector<int> Cartesian::Neighbours(int rank) const {
  std::vector<int> neighbours;
  for (int direction = 0; direction < dimensions(); ++direction) {
    Shifted shifted = Shift(rank, direction, 1);
    neighbours.push_back(shifted.source);
    neighbours.push_back(shifted.destination);
  }
  return neighbours;
}

}  // namespace ferry::mpi
