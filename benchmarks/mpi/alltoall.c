/* MPI_Alltoall of the given bytes from each rank to each, after osu_alltoall. */
#include "benchmarks/mpi/collective.h"

static size_t CollectiveBytes(const Side* side) { return side->size * (size_t)side->ranks; }

static void Call(const Side* side) {
  COLLECTIVE(Alltoall, Ialltoall, side->out, (int)side->size, MPI_BYTE, side->in, (int)side->size,
             MPI_BYTE, MPI_COMM_WORLD);
}
static void Fill(const Side* side) { FillBytes(side->out, side->rank, 0, CollectiveBytes(side)); }
static void Compare(const Side* side) {
  for (int from = 0; from < side->ranks; ++from) {
    CompareBytes(side, side->in + (size_t)from * side->size, from, (size_t)side->rank * side->size,
                 side->size);
  }
}

COLLECTIVE_MAIN("alltoall")
