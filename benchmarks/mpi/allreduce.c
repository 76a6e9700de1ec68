/* MPI_Allreduce: sums of floats, of the given bytes, after osu_allreduce. */
#include "benchmarks/mpi/collective.h"

static size_t CollectiveBytes(const Side* side) { return side->size; }

static void Call(const Side* side) {
  COLLECTIVE(Allreduce, Iallreduce, side->out, side->in, (int)Floats(side), MPI_FLOAT, MPI_SUM,
             MPI_COMM_WORLD);
}
static void Fill(const Side* side) { FillAddends(side); }
static void Compare(const Side* side) { CompareSums(side); }

COLLECTIVE_MAIN("allreduce")
