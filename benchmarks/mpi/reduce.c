/* MPI_Reduce: sums of floats, of the given bytes, after osu_reduce. */
#include "benchmarks/mpi/collective.h"

static size_t CollectiveBytes(const Side* side) { return side->size; }

static void Call(const Side* side) {
  COLLECTIVE(Reduce, Ireduce, side->out, side->in, (int)Floats(side), MPI_FLOAT, MPI_SUM, kRoot,
             MPI_COMM_WORLD);
}
static void Fill(const Side* side) { FillAddends(side); }
static void Compare(const Side* side) {
  if (side->rank == kRoot) {
    CompareSums(side);
  }
}

COLLECTIVE_MAIN("reduce")
