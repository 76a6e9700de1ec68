// A field on a torus of ranks, of which each has a block with a ghost around it, as stencils have
// it.
#include <array>
#include <cstdint>

#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

constexpr int kCells = 37;  // of a block, along each axis
constexpr int kAll = kCells + 2;
constexpr int kSides = 4;  // as MPI orders neighbours: down and up along each axis

struct Torus {
  Torus() {
    const std::array<int, 2> periodic{1, 1};
    VENDOR_OK(MPI_Dims_create(size, 2, ranks.data()));
    VENDOR_OK(
        MPI_Cart_create(MPI_COMM_WORLD, 2, ranks.data(), periodic.data(), /*reorder=*/0, &comm));
    VENDOR_OK(MPI_Cart_coords(comm, rank, 2, at.data()));
    for (int side = 0; side < kSides; ++side) {
      const int axis = side / 2;
      const bool is_up = side % 2 == 1;
      std::array<int, 2> begin{1, 1};
      std::array<int, 2> count{kCells, kCells};
      count[axis] = 1;
      const auto make = [&](int first, MPI_Datatype* type) {
        const std::array<int, 2> extent{kAll, kAll};
        begin[axis] = first;
        VENDOR_OK(MPI_Type_create_subarray(2, extent.data(), count.data(), begin.data(),
                                           MPI_ORDER_C, MPI_INT64_T, type));
        VENDOR_OK(MPI_Type_commit(type));
      };
      make(is_up ? kCells : 1, &owned[side]);
      make(is_up ? kCells + 1 : 0, &ghosts[side]);
      VENDOR_OK(MPI_Cart_shift(comm, axis, 1, &neighbours[2 * axis], &neighbours[2 * axis + 1]));
    }
  }
  ~Torus() {
    for (int side = 0; side < kSides; ++side) {
      MPI_Type_free(&owned[side]);
      MPI_Type_free(&ghosts[side]);
    }
    MPI_Comm_free(&comm);
  }
  Torus(const Torus&) = delete;
  Torus& operator=(const Torus&) = delete;

  // The value that belongs to the cell of this block, wherever on the torus it lies.
  int64_t ValueAt(int row, int column, int step) const {
    const auto wrapped = [&](int axis, int cell) {
      const int all = ranks[axis] * kCells;
      return (at[axis] * kCells + cell - 1 + all) % all;
    };
    return int64_t{step} * 1'000'000 + wrapped(0, row) * 1000 + wrapped(1, column);
  }
  // The block, without corners: no stencil of five points looks at them.
  std::vector<int64_t> Block(int step, bool has_ghosts) const {
    std::vector<int64_t> block(size_t{kAll} * kAll, -1);
    for (int row = 0; row < kAll; ++row) {
      for (int column = 0; column < kAll; ++column) {
        const bool is_outside_row = row == 0 || row == kCells + 1;
        const bool is_outside_column = column == 0 || column == kCells + 1;
        if (has_ghosts ? !(is_outside_row && is_outside_column)
                       : !(is_outside_row || is_outside_column)) {
          block[static_cast<size_t>(row) * kAll + static_cast<size_t>(column)] =
              ValueAt(row, column, step);
        }
      }
    }
    return block;
  }

  std::array<int, 2> ranks{};
  std::array<int, 2> at{};
  std::array<int, kSides> neighbours{};
  std::array<MPI_Datatype, kSides> owned{};
  std::array<MPI_Datatype, kSides> ghosts{};
  MPI_Comm comm = MPI_COMM_NULL;
};

constexpr std::array<int, kSides> kOnes{1, 1, 1, 1};
constexpr std::array<MPI_Aint, kSides> kZeros{};

void ExchangeAtOnce(const Torus& torus, void* field) {
  VENDOR_OK(MPI_Neighbor_alltoallw(field, kOnes.data(), kZeros.data(), torus.owned.data(), field,
                                   kOnes.data(), kZeros.data(), torus.ghosts.data(), torus.comm));
}

void ExchangeMeanwhile(const Torus& torus, void* field) {
  MPI_Request request = MPI_REQUEST_NULL;
  VENDOR_OK(MPI_Ineighbor_alltoallw(field, kOnes.data(), kZeros.data(), torus.owned.data(), field,
                                    kOnes.data(), kZeros.data(), torus.ghosts.data(), torus.comm,
                                    &request));
  VENDOR_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void ExchangeByMessages(const Torus& torus, void* field) {
  std::array<MPI_Request, 2 * kSides> requests{};
  for (int side = 0; side < kSides; ++side) {
    const int opposite = side ^ 1;
    VENDOR_OK(MPI_Irecv(field, 1, torus.ghosts[side], torus.neighbours[side], opposite, torus.comm,
                        &requests[side]));
    VENDOR_OK(MPI_Isend(field, 1, torus.owned[side], torus.neighbours[side], side, torus.comm,
                        &requests[kSides + side]));
  }
  VENDOR_OK(MPI_Waitall(2 * kSides, requests.data(), MPI_STATUSES_IGNORE));
}

}  // namespace

void ExchangeHalos(const Kind& kind) {
  const Torus torus;
  Buffer field(kind, size_t{kAll} * kAll * sizeof(int64_t));
  int step = 0;
  for (const auto exchange : {ExchangeAtOnce, ExchangeMeanwhile, ExchangeByMessages}) {
    for (int round = 0; round < 3; ++round, ++step) {
      field.Write(torus.Block(step, false));
      exchange(torus, field.data());
      VENDOR_CHECK(field.Read<int64_t>(size_t{kAll} * kAll) == torus.Block(step, true));
    }
  }
}

}  // namespace ferry::vendor_memory
