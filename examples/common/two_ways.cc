#include "examples/common/two_ways.h"

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <vector>

namespace examples {
namespace {

constexpr int kTurns = 5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Microseconds of a step.
double MeasureOnce(const std::function<void()>& begin, const std::function<void(int)>& way,
                   int steps) {
  begin();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  way(steps);
  MPI_Barrier(MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6 / steps;
}

bool IsRightOnAll(bool mine) {
  const int own = mine ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

}  // namespace

TwoWays MeasureInTurns(const Ways& ways, int steps, bool* is_right) {
  std::vector<double> partitioned;
  std::vector<double> plain;
  *is_right = true;
  for (int turn = 0; turn < kTurns; ++turn) {
    partitioned.push_back(MeasureOnce(ways.begin, ways.partitioned, steps));
    *is_right = IsRightOnAll(ways.is_right()) && *is_right;
    plain.push_back(MeasureOnce(ways.begin, ways.plain, steps));
    *is_right = IsRightOnAll(ways.is_right()) && *is_right;
  }
  return {Median(partitioned), Median(plain)};
}

void ReportTwoWays(const std::string& title, const TwoWays& times, const std::string& what,
                   bool is_right) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::printf("%s: %.1f us with partitions, %.1f us after synchronising; %s: %s\n", title.c_str(),
                times.partitioned_us, times.plain_us, what.c_str(), is_right ? "PASS" : "FAIL");
    std::fflush(stdout);
  }
}

int NumberIn(const char* text, int least, int most) {
  const std::string_view digits = text;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && number >= least && number <= most ? number : 0;
}

}  // namespace examples
