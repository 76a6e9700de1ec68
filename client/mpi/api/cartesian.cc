// Cartesian topologies (MPI 5.0, section 8.5), and which topology a communicator has.
#include "client/mpi/topology/cartesian.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/connection.h"
#include "client/mpi/comm/topologies.h"
#include "client/mpi/topology/topology.h"

namespace ferry::mpi {
namespace {

// The grid of a communicator that has one.
const Cartesian* FindGrid(Call& call, MPI_Comm handle, Comm** comm) {
  *comm = call.Find(handle);
  if (!call.ok()) {
    return nullptr;
  }
  const Topology* const topology = (*comm)->topology().get();
  const Cartesian* const grid = topology == nullptr ? nullptr : std::get_if<Cartesian>(topology);
  if (grid == nullptr) {
    call.Refuse(MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
  }
  return grid;
}

void NeedRank(Call& call, const Comm* comm, int rank) {
  if (call.ok() && !comm->IsPeer(rank)) {
    call.Refuse(MPI_ERR_RANK, "rank is " + std::to_string(rank) + "; the communicator has " +
                                  std::to_string(comm->size()) + " processes");
  }
}

// A grid as the arguments of MPI_Cart_create and MPI_Cart_map describe it.
Cartesian GridOf(Call& call, const Comm* comm, int ndims, const int* dims, const int* periods) {
  call.NeedCount(ndims, "ndims", MPI_ERR_DIMS);
  call.NeedArray(dims, ndims, "dims");
  call.NeedArray(periods, ndims, "periods");
  Cartesian grid;
  if (call.ok()) {
    const auto count = static_cast<size_t>(ndims);
    call.Refuse(Cartesian::Make({dims, count}, {periods, count}, comm->size(), &grid));
  }
  return grid;
}

std::span<const int> List(const int* values, int count) {
  return {values, static_cast<size_t>(count)};
}

}  // namespace

FERRY_MPI_CALL(int, Topo_test, (MPI_Comm comm, int* status)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(status, "status");
  return call.Then([&] {
    *status =
        found->topology() == nullptr ? static_cast<int>(MPI_UNDEFINED) : KindOf(*found->topology());
  });
}

FERRY_MPI_CALL(int, Dims_create, (int nnodes, int ndims, int dims[])) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.NeedCount(ndims, "ndims", MPI_ERR_DIMS);
  call.NeedArray(dims, ndims, "dims");
  return call.Then([&] { return CreateDims(nnodes, {dims, static_cast<size_t>(ndims)}); });
}

FERRY_MPI_CALL(int, Cart_create,
               (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
                MPI_Comm* comm_cart)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const parent = call.FindIntra(comm_old);
  Cartesian grid = GridOf(call, parent, ndims, dims, periods);
  call.Need(comm_cart, "comm_cart");
  if (call.ok()) {
    call.Give(CreateCartesian(*parent, std::move(grid), reorder != 0), comm_cart);
  } else if (comm_cart != nullptr) {
    *comm_cart = MPI_COMM_NULL;
  }
  return call.result();
}

FERRY_MPI_CALL(int, Cart_map,
               (MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindIntra(comm);
  const Cartesian grid = GridOf(call, found, ndims, dims, periods);
  call.Need(newrank, "newrank");
  return call.Then([&] {
    const std::vector<int> order = OrderByNodes(*found, grid);
    const auto place = std::find(order.begin(), order.end(), found->rank());
    *newrank = place == order.end() ? static_cast<int>(MPI_UNDEFINED)
                                    : static_cast<int>(place - order.begin());
  });
}

FERRY_MPI_CALL(int, Cartdim_get, (MPI_Comm comm, int* ndims)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.Need(ndims, "ndims");
  return call.Then([&] { *ndims = grid->dimensions(); });
}

FERRY_MPI_CALL(int, Cart_get,
               (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedCount(maxdims, "maxdims");
  FERRY_RETURN_ERROR(call.result());
  const int count = std::min(maxdims, grid->dimensions());
  call.NeedArray(dims, count, "dims");
  call.NeedArray(periods, count, "periods");
  call.NeedArray(coords, count, "coords");
  return call.Then([&] {
    std::copy_n(grid->dims().begin(), count, dims);
    std::copy_n(grid->periodic().begin(), count, periods);
    grid->CoordsOf(found->rank(), {coords, static_cast<size_t>(count)});
  });
}

FERRY_MPI_CALL(int, Cart_rank, (MPI_Comm comm, const int coords[], int* rank)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedArray(coords, grid == nullptr ? 0 : grid->dimensions(), "coords");
  call.Need(rank, "rank");
  return call.Then([&] { return grid->RankAt(List(coords, grid->dimensions()), rank); });
}

FERRY_MPI_CALL(int, Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[])) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  NeedRank(call, found, rank);
  call.NeedCount(maxdims, "maxdims");
  FERRY_RETURN_ERROR(call.result());
  const int count = std::min(maxdims, grid->dimensions());
  call.NeedArray(coords, count, "coords");
  return call.Then([&] { grid->CoordsOf(rank, {coords, static_cast<size_t>(count)}); });
}

FERRY_MPI_CALL(int, Cart_shift,
               (MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.Need(rank_source, "rank_source", rank_dest, "rank_dest");
  if (call.ok() && (direction < 0 || direction >= grid->dimensions())) {
    call.Refuse(MPI_ERR_DIMS, "direction is " + std::to_string(direction) + "; the grid has " +
                                  std::to_string(grid->dimensions()) + " dimensions");
  }
  return call.Then([&] {
    const Cartesian::Shifted shifted = grid->Shift(found->rank(), direction, disp);
    *rank_source = shifted.source;
    *rank_dest = shifted.destination;
  });
}

FERRY_MPI_CALL(int, Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  Comm* found = nullptr;
  const Cartesian* const grid = FindGrid(call, comm, &found);
  call.NeedArray(remain_dims, grid == nullptr ? 0 : grid->dimensions(), "remain_dims");
  call.Need(newcomm, "newcomm");
  return call.Then([&] {
    call.Give(CutCartesian(*found, *grid, List(remain_dims, grid->dimensions())), newcomm);
  });
}

}  // namespace ferry::mpi
