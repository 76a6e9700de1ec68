/* A datatype of a block for every 8 bytes, at distances that follow no pattern: made, used in an
 * MPI_Bcast of the given bytes, and freed, as programs do whose data move from step to step. */
#include "benchmarks/mpi/collective.h"

enum { kBlockBytes = sizeof(double) };

static int* displacements; /* in blocks */

static int Blocks(const Side* side) { return (int)((side->size + kBlockBytes - 1) / kBlockBytes); }

static size_t CollectiveBytes(const Side* side) {
  return ((size_t)Blocks(side) * 2 + 1) * kBlockBytes;
}

static void Call(const Side* side) {
  MPI_Datatype type;
  BENCH_CHECK(MPI_Type_create_indexed_block(Blocks(side), 1, displacements, MPI_DOUBLE, &type));
  BENCH_CHECK(MPI_Type_commit(&type));
  BENCH_CHECK(MPI_Bcast(side->in, 1, type, kRoot, MPI_COMM_WORLD));
  BENCH_CHECK(MPI_Type_free(&type));
}
static void Fill(const Side* side) {
  displacements = realloc(displacements, (size_t)Blocks(side) * sizeof(*displacements));
  for (int i = 0; i < Blocks(side); ++i) {
    displacements[i] = 2 * i + (i * 7 / 4) % 2;
    if (side->rank == kRoot) {
      FillBytes(side->in + (size_t)displacements[i] * kBlockBytes, kRoot, (size_t)i * kBlockBytes,
                kBlockBytes);
    }
  }
}
static void Compare(const Side* side) {
  for (int i = 0; i < Blocks(side); ++i) {
    CompareBytes(side, side->in + (size_t)displacements[i] * kBlockBytes, kRoot,
                 (size_t)i * kBlockBytes, kBlockBytes);
  }
}

COLLECTIVE_MAIN("datatype")
