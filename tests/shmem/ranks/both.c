/* MPI and OpenSHMEM in one program, begun and ended in the order that the argument names. */
#include <mpi.h>

#include "tests/shmem/ranks/check.h"

static void use_both(void) {
  note_place();
  int rank = -1, size = -1, sum = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(rank == me && size == pes);
  enum { kCount = 200000 };
  int* const to = shmem_malloc(kCount * sizeof(int));
  int* const from = shmem_malloc(kCount * sizeof(int));
  int* const private = malloc(kCount * sizeof(int));
  for (int round = 0; round < 20; ++round) {
    /* Symmetric memory in messages. */
    for (int i = 0; i < kCount; ++i) from[i] = i + me + round;
    MPI_Sendrecv(from, kCount, MPI_INT, after, 3, to, kCount, MPI_INT, before, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < kCount; ++i) CHECK(to[i] == i + before + round);
    /* Other memory in puts. */
    for (int i = 0; i < kCount; ++i) private[i] = 2 * i + me + round;
    shmem_barrier_all();
    shmem_int_put(to, private, kCount, after);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) CHECK(to[i] == 2 * i + before + round);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == pes * (pes - 1) / 2);
  }
  free(private);
  shmem_free(from);
  shmem_free(to);
}

static void use_shmem(void) {
  long* const word = shmem_calloc(1, sizeof(long));
  shmem_long_p(word, me + 1, after);
  shmem_barrier_all();
  CHECK(*word == before + 1);
  shmem_free(word);
}

static void use_mpi(void) {
  int got = -1;
  MPI_Sendrecv(&me, 1, MPI_INT, after, 0, &got, 1, MPI_INT, before, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (got != before) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  const char* const order = argc > 1 ? argv[1] : "";
  const int mpi_begins = order[0] == 'm', mpi_ends = order[1] == 'm'; /* first, and last */
  if (mpi_begins) MPI_Init(&argc, &argv);
  shmem_init();
  if (!mpi_begins) MPI_Init(&argc, &argv);
  use_both();
  if (mpi_ends) {
    shmem_finalize();
    use_mpi();
    shmem_init();
    use_both();
    shmem_finalize();
    MPI_Finalize();
  } else {
    MPI_Finalize();
    use_shmem();
    shmem_finalize();
    shmem_init();
    use_shmem();
    shmem_finalize();
  }
  printf("PE %d: ok\n", me);
  return 0;
}
