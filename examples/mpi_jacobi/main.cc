// Laplace's equation on a plane by Jacobi's method, in MPI: ranks in a Cartesian grid exchange the
// sides of their tiles, and agree after each step whether to go on.
//
//   ferryrun -n 4 mpi_jacobi [WIDTH HEIGHT [TOLERANCE]]
//
// The result is compared with that of one rank alone, which must be equal to the last bit.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "examples/common/process_grid.h"
#include "examples/mpi_jacobi/tile.h"

namespace {

using mpi_jacobi::Plane;
using mpi_jacobi::Tile;

constexpr int kMaxSteps = 100000;

// The ranks as a grid, and the sides that they exchange.
struct Neighbourhood {
  MPI_Comm grid = MPI_COMM_NULL;
  std::array<int, 2> ranks = {0, 0};  // rows of ranks, and ranks in each
  std::array<int, 2> place = {0, 0};
  int above = MPI_PROC_NULL;
  int below = MPI_PROC_NULL;
  int left = MPI_PROC_NULL;
  int right = MPI_PROC_NULL;
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Datatype column = MPI_DATATYPE_NULL;
};

Neighbourhood JoinGrid() {
  Neighbourhood here;
  const std::array<int, 2> no_wrapping = {0, 0};
  int size = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, here.ranks.data());
  MPI_Cart_create(MPI_COMM_WORLD, 2, here.ranks.data(), no_wrapping.data(), 1, &here.grid);
  MPI_Comm_rank(here.grid, &rank);
  MPI_Cart_coords(here.grid, rank, 2, here.place.data());
  MPI_Cart_shift(here.grid, 0, 1, &here.above, &here.below);
  MPI_Cart_shift(here.grid, 1, 1, &here.left, &here.right);
  return here;
}

// The sides of `tile`: a row lies together in memory, a column does not.
void MakeSides(const Tile& tile, Neighbourhood* here) {
  MPI_Type_contiguous(tile.columns(), MPI_DOUBLE, &here->row);
  MPI_Type_vector(tile.rows(), 1, tile.stride(), MPI_DOUBLE, &here->column);
  MPI_Type_commit(&here->row);
  MPI_Type_commit(&here->column);
}

// Each side goes to the neighbour there, whose side comes into the rim. Where the plane ends, the
// neighbour is MPI_PROC_NULL and nothing happens.
void ExchangeSides(const Neighbourhood& here, Tile* tile) {
  const int columns = tile->columns();
  const int rows = tile->rows();
  const auto exchange = [&here](double* side, int to, double* rim, int from, MPI_Datatype type) {
    MPI_Sendrecv(side, 1, type, to, 0, rim, 1, type, from, 0, here.grid, MPI_STATUS_IGNORE);
  };
  exchange(tile->At(1, 1), here.above, tile->At(1, rows + 1), here.below, here.row);
  exchange(tile->At(1, rows), here.below, tile->At(1, 0), here.above, here.row);
  exchange(tile->At(1, 1), here.left, tile->At(columns + 1, 1), here.right, here.column);
  exchange(tile->At(columns, 1), here.right, tile->At(0, 1), here.left, here.column);
}

// Steps until no point of any rank changes by more than `tolerance`.
std::pair<int, double> Relax(const Neighbourhood& here, double tolerance, Tile* tile) {
  int steps = 0;
  double change = tolerance + 1;
  while (change > tolerance && steps < kMaxSteps) {
    ExchangeSides(here, tile);
    const double own = tile->Sweep();
    MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_MAX, here.grid);
    ++steps;
  }
  return {steps, change};
}

// The largest difference of any rank's points from what rank 0 computes alone.
double DifferenceFromSerial(const Neighbourhood& here, const Plane& plane, int steps,
                            const Tile& tile) {
  int rank = 0;
  MPI_Comm_rank(here.grid, &rank);
  Tile whole(plane);
  for (int step = 0; rank == 0 && step < steps; ++step) {
    whole.Sweep();
  }
  MPI_Bcast(whole.At(0, 0), static_cast<int>(whole.points().size()), MPI_DOUBLE, 0, here.grid);
  const double own = tile.DifferenceFrom(whole.points(), plane);
  double largest = 0;
  MPI_Allreduce(&own, &largest, 1, MPI_DOUBLE, MPI_MAX, here.grid);
  return largest;
}

// Returns the exit code.
int Solve(const Plane& plane, double tolerance) {
  Neighbourhood here = JoinGrid();
  int rank = 0;
  MPI_Comm_rank(here.grid, &rank);
  if (plane.width - 2 < here.ranks[1] || plane.height - 2 < here.ranks[0]) {
    if (rank == 0) {
      std::fprintf(stderr, "mpi_jacobi: %d x %d points are too few for %d x %d ranks\n",
                   plane.width, plane.height, here.ranks[1], here.ranks[0]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(
        here.grid);  // until then: another rank's abort could end rank 0 before it has spoken
  }
  Tile tile(plane, examples::RangeOf(plane.width, here.ranks[1], here.place[1]),
            examples::RangeOf(plane.height, here.ranks[0], here.place[0]));
  MakeSides(tile, &here);
  const double start = MPI_Wtime();
  const auto [steps, change] = Relax(here, tolerance, &tile);
  const double step_us = (MPI_Wtime() - start) / steps * 1e6;
  const double difference = DifferenceFromSerial(here, plane, steps, tile);
  if (rank == 0) {
    std::printf("%d x %d points on %d x %d ranks: %d steps of %.1f us, last change %.2g\n",
                plane.width, plane.height, here.ranks[1], here.ranks[0], steps, step_us, change);
    std::printf("largest difference from a serial solve %g: %s\n", difference,
                difference == 0 ? "PASS" : "FAIL");
  }
  MPI_Type_free(&here.row);
  MPI_Type_free(&here.column);
  MPI_Comm_free(&here.grid);
  return difference == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Plane plane = {130, 130};
  double tolerance = 0.01;
  if (argc > 2) {
    plane = {std::atoi(argv[1]), std::atoi(argv[2])};
  }
  if (argc > 3) {
    tolerance = std::atof(argv[3]);
  }
  constexpr int kMaxPoints = 20000;  // along an axis
  if (argc == 2 || argc > 4 || plane.width < 3 || plane.width > kMaxPoints || plane.height < 3 ||
      plane.height > kMaxPoints || !(tolerance > 0)) {
    std::fprintf(stderr,
                 "usage: mpi_jacobi [WIDTH HEIGHT [TOLERANCE]], 3 to %d points along an axis, a "
                 "tolerance above 0\n",
                 kMaxPoints);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int code = Solve(plane, tolerance);
  MPI_Finalize();
  return code;
}
