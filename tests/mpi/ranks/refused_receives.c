/* The last rank's small receives are refused: their buffers run past the end of its device memory.
 * It is told so, the message is taken nevertheless, and the next collective is right.
 */
#include "tests/mpi/ranks/on_queue.h"

enum { words = 2048, rounds = 3 };

/* Rank 0 waits here until its message has been taken, unless it was sent at once. */
static void broadcast(int* memory, int count) {
  const int is_refused = rank == size - 1;
  int* const buffer = is_refused ? memory + words - 1 : memory;
  const int error = MPI_Bcast(buffer, count, MPI_INT, 0, MPI_COMM_WORLD);
  if (is_refused) {
    expect_error(error, MPI_ERR_BUFFER, "runs past the end of its device memory");
  } else {
    OK(error);
  }
}

static void sum(int* memory, int seed) {
  int all = 0;
  const int own = seed + rank;
  OK(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(all == size * seed + size * (size - 1) / 2);
  int value = rank == 0 ? seed : -1;
  CHECK(ferry_memcpy(memory, &value, sizeof(value)) == FERRY_SUCCESS);
  OK(MPI_Bcast(memory, 1, MPI_INT, 0, MPI_COMM_WORLD));
  CHECK(ferry_memcpy(&value, memory, sizeof(value)) == FERRY_SUCCESS);
  CHECK(value == seed);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* const memory = on_device(words * sizeof(int));
  for (int round = 0; round < rounds; ++round) {
    step = "a broadcast that is refused";
    broadcast(memory, round == 0 ? words : 2);
    step = "the collectives behind it";
    sum(memory, 100 * round);
  }
  CHECK(ferry_free(memory) == FERRY_SUCCESS);
  return end_well("refused receives did no harm");
}
