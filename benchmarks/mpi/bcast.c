/* MPI_Bcast of the given bytes, after osu_bcast. */
#include "benchmarks/mpi/collective.h"

static size_t CollectiveBytes(const Side* side) { return side->size; }

static void Call(const Side* side) {
  COLLECTIVE(Bcast, Ibcast, side->in, (int)side->size, MPI_BYTE, kRoot, MPI_COMM_WORLD);
}
static void Fill(const Side* side) {
  if (side->rank == kRoot) {
    FillBytes(side->in, kRoot, 0, side->size);
  }
}
static void Compare(const Side* side) { CompareBytes(side, side->in, kRoot, 0, side->size); }

COLLECTIVE_MAIN("bcast")
