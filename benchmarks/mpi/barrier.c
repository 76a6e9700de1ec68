/* MPI_Barrier, one after the other, after osu_barrier. The size says nothing. */
#include "benchmarks/mpi/pattern.h"

static const double kLateSeconds = 1e-4;

static size_t Bytes(const Side* side) { return side->size; }

/* No rank leaves before the last one has come: all ranks live on one machine, whose clock they
 * share. Each of them is late once. */
static void Check(const Side* side) {
  for (int late = 0; late < side->ranks; ++late) {
    for (const double start = Now(); side->rank == late && Now() < start + kLateSeconds;) {
    }
    double came = Now();
    Barrier();
    double left = Now();
    BENCH_CHECK(MPI_Allreduce(MPI_IN_PLACE, &came, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    BENCH_CHECK(MPI_Allreduce(MPI_IN_PLACE, &left, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD));
    if (left < came) {
      Mistaken(side, "barrier, left early by somebody when late was rank", (size_t)late);
    }
  }
}

static double Repeat(void* context, int rounds) {
  const Side* side = context;
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    Barrier();
  }
  return MeanOverRanks(Now() - start, side->ranks);
}

int main(int argc, char** argv) {
  static const Pattern kPattern = {
      .name = "barrier", .bytes = Bytes, .check = Check, .repeat = Repeat, .figure = Microseconds};
  return RunPattern(argc, argv, &kPattern);
}
