/* Many ranks of one node: messages between all of them, and each kind of collective. Every answer
 * is known. Run by any number of ranks.
 */
#include "tests/mpi/ranks/check.h"

enum { kCount = 3, kLong = 2000, kRounds = 3 };

static int* vector_of(int count) {
  int* const numbers = malloc((size_t)count * sizeof(int));
  CHECK(numbers != NULL);
  return numbers;
}

static int sum_of_ranks(void) { return size * (size - 1) / 2; }

static void check_messages(void) {
  step = "one message to rank 0 from each, in any order";
  if (rank != 0) {
    OK(MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
  } else {
    int sum = 0;
    for (int i = 1; i < size; ++i) {
      int from = -1;
      MPI_Status status;
      OK(MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status));
      CHECK(from == status.MPI_SOURCE);
      sum += from;
    }
    CHECK(sum == sum_of_ranks());
  }
  step = "a ring";
  int* const out = vector_of(kLong);
  int* const in = vector_of(kLong);
  for (int i = 0; i < kLong; ++i) out[i] = rank + i;
  OK(MPI_Sendrecv(out, kLong, MPI_INT, next, 2, in, kLong, MPI_INT, before, 2, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  for (int i = 0; i < kLong; ++i) CHECK(in[i] == before + i);
  free(in);
  free(out);
}

static void check_reductions(int count) {
  int* const in = vector_of(count);
  int* const out = vector_of(count);
  for (int i = 0; i < count; ++i) in[i] = rank + i;
  OK(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK(out[i] == sum_of_ranks() + size * i);
  OK(MPI_Reduce(in, out, count, MPI_INT, MPI_MAX, size - 1, MPI_COMM_WORLD));
  for (int i = 0; i < count && rank == size - 1; ++i) CHECK(out[i] == size - 1 + i);
  OK(MPI_Scan(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK(out[i] == rank * (rank + 1) / 2 + (rank + 1) * i);
  free(out);
  free(in);
}

static void check_blocks(int count) {
  int* const all = vector_of(count * size);
  int* const own = vector_of(count * size);
  const int root = size / 2;
  for (int i = 0; i < count; ++i) own[i] = rank == root ? i + 7 : -1;
  OK(MPI_Bcast(own, count, MPI_INT, root, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK(own[i] == i + 7);
  for (int i = 0; i < count; ++i) own[i] = rank * count + i;
  OK(MPI_Allgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < count * size; ++i) CHECK(all[i] == i);
  memset(all, 0, (size_t)(count * size) * sizeof(int));
  OK(MPI_Gather(own, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD));
  for (int i = 0; i < count * size && rank == root; ++i) CHECK(all[i] == i);
  OK(MPI_Scatter(all, count, MPI_INT, own, count, MPI_INT, root, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK(own[i] == rank * count + i);
  for (int i = 0; i < count * size; ++i) own[i] = rank * 1000 + i / count;
  OK(MPI_Alltoall(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < count * size; ++i) CHECK(all[i] == i / count * 1000 + rank);
  free(own);
  free(all);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  check_messages();
  for (int round = 0; round < kRounds; ++round) {
    step = "a barrier";
    OK(MPI_Barrier(MPI_COMM_WORLD));
    step = "short vectors";
    check_reductions(kCount);
    check_blocks(kCount);
  }
  step = "long vectors";
  check_reductions(kLong);
  step = "a communicator of every other rank";
  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half));
  const int half_size = size_of(half);
  CHECK(sum == half_size * (half_size - 1) + half_size * (rank % 2));
  OK(MPI_Comm_free(&half));
  return end_well("the crowd was right");
}
