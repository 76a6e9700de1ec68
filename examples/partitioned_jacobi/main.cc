// Heat in a plane by Jacobi's method, whose kernels send the edges of their tiles as they are
// ready.
//
//   ferryrun -n 4 partitioned_jacobi [TILE_WIDTH TILE_HEIGHT STEPS]
//
// Two layouts. rows: each rank has a band of rows, cut into four tiles beside each other; an edge
// has four partitions. blocks: the ranks form a grid, and each has two by two tiles; there are up
// to four neighbours, and an edge has two partitions. A kernel makes one step, a work-group for
// each tile; a group readies its tile's edges, which leave while others compute. In the plain way
// the host waits for the kernel, then starts persistent sends of whole edges. A third way enqueues
// all steps on a queue, and the host waits once. All are compared with a serial run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/five_point.h"
#include "examples/common/two_ways.h"
#include "examples/partitioned_jacobi/part.h"

namespace {

using partitioned_jacobi::Layout;
using partitioned_jacobi::Part;

// Computes the plane serially. The result is without its rim.
std::vector<double> Serial(const Layout& layout, int steps) {
  const size_t width = layout.plane_width() + 2;
  const size_t height = layout.plane_height() + 2;
  std::vector<double> from(width * height);
  std::fill_n(from.begin(), width, 1.0);
  std::vector<double> to = from;
  for (int step = 0; step < steps; ++step) {
    examples::JacobiRows(from.data(), to.data(), static_cast<int>(width), 1,
                         static_cast<int>(height) - 1);
    std::swap(from, to);
  }
  std::vector<double> inner;
  for (size_t row = 1; row + 1 < height; ++row) {
    const double* const first = &from[row * width + 1];
    inner.insert(inner.end(), first, first + width - 2);
  }
  return inner;
}

// Returns true if a rank's cells are those of the serial run, to the last bit.
bool IsAsSerial(const Layout& layout, int rank, const std::vector<double>& cells,
                const std::vector<double>& serial) {
  const uint64_t width = heat_width(layout.shape);
  const uint64_t height = heat_height(layout.shape);
  const uint64_t first_column = static_cast<uint64_t>(rank % layout.ranks[1]) * width;
  const uint64_t first_row = static_cast<uint64_t>(rank / layout.ranks[1]) * height;
  if (cells.size() != width * height) {
    return false;
  }
  for (uint64_t row = 0; row < height; ++row) {
    const double* const wanted = &serial[(first_row + row) * layout.plane_width() + first_column];
    if (!std::equal(wanted, wanted + width, &cells[row * width])) {
      return false;
    }
  }
  return true;
}

bool Solve(const Layout& layout, int rank, int steps) {
  const std::vector<double> serial = Serial(layout, steps);
  Part part(layout, rank);
  examples::Ways ways;
  ways.begin = [&] { part.Begin(); };
  ways.partitioned = [&](int count) { part.StepsWithPartitions(count); };
  ways.plain = [&](int count) { part.StepsAfterSynchronising(count); };
  ways.is_right = [&] { return IsAsSerial(layout, rank, part.Cells(), serial); };
  bool is_right = false;
  const examples::TwoWays times = examples::MeasureInTurns(ways, steps, &is_right);
  ways.partitioned = [&](int count) { part.StepsOnQueue(count); };
  bool is_right_by_queue = false;
  const double queue_us = examples::MeasureInTurns(ways, steps, &is_right_by_queue).partitioned_us;
  char words[160];
  std::snprintf(words, sizeof(words),
                "%.1f us on a queue; %d x %d ranks, %llu x %llu cells, equal to a serial run",
                queue_us, layout.ranks[1], layout.ranks[0],
                static_cast<unsigned long long>(layout.plane_width()),
                static_cast<unsigned long long>(layout.plane_height()));
  examples::ReportTwoWays(layout.name, times, words, is_right && is_right_by_queue);
  return is_right && is_right_by_queue;
}

bool Run(int width, int height, int steps) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto tile_width = static_cast<ferry_device_u32>(width);
  const auto tile_height = static_cast<ferry_device_u32>(height);
  Layout blocks = {"blocks", {0, 0}, {2, 2, tile_width, tile_height}};
  MPI_Dims_create(ranks, 2, blocks.ranks.data());
  bool is_right = true;
  for (const Layout& layout :
       {Layout{"rows", {ranks, 1}, {4, 1, tile_width, tile_height}}, blocks}) {
    is_right = Solve(layout, rank, steps) && is_right;
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernels are functions of this program.
  setenv("FERRY_GPU_BACKEND", "host", 1);
  int width = 64;
  int height = 32;
  int steps = 50;
  if (argc == 4) {
    width = examples::NumberIn(argv[1], 1, 4096);
    height = examples::NumberIn(argv[2], 1, 4096);
    steps = examples::NumberIn(argv[3], 1, 100000);
  }
  if ((argc != 1 && argc != 4) || width == 0 || height == 0 || steps == 0) {
    std::fprintf(stderr,
                 "usage: partitioned_jacobi [TILE_WIDTH TILE_HEIGHT STEPS]: 1 to 4096 cells, 1 to "
                 "100000 steps\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  bool is_right = false;
  try {
    is_right = Run(width, height, steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "partitioned_jacobi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
