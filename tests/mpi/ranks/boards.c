/* Collectives of ranks that share a node: lengths around those where the way changes, many
 * communicators, and mistakes of some ranks while others wait. Run by two ranks or more.
 *
 * `boards dies`: the last rank dies while the others wait for it in a collective, or in several.
 */
#include <stdint.h>

#include "tests/mpi/ranks/check.h"

enum { kWarm = 10, kLargest = 300000 };

static void warm_up(MPI_Comm comm) {
  for (int i = 0; i < kWarm; ++i) OK(MPI_Barrier(comm));
}

/* ---- Lengths ---- */

static int* in;
static int* out;

static void check_lengths(MPI_Comm comm, const char* what) {
  static const int kCounts[] = {0,    1,    11,    12,    13,    1023,  1024,  1025,
                                4096, 8192, 12289, 16384, 16385, 40000, 70001, 131072};
  for (size_t c = 0; c < sizeof(kCounts) / sizeof(kCounts[0]); ++c) {
    const int count = kCounts[c];
    const int root = (int)c % size;
    step = what;
    for (int i = 0; i < count; ++i) in[i] = i % 1000 + rank;
    OK(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < count; ++i) CHECK(out[i] == size * (i % 1000) + size * (size - 1) / 2);
    OK(MPI_Reduce(in, out, count, MPI_INT, MPI_MAX, root, comm));
    for (int i = 0; i < count && rank == root; ++i) CHECK(out[i] == i % 1000 + size - 1);
    for (int i = 0; i < count; ++i) out[i] = rank == root ? i + root : -1;
    OK(MPI_Bcast(out, count, MPI_INT, root, comm));
    for (int i = 0; i < count; ++i) CHECK(out[i] == i + root);
    if (count > kLargest / size) continue;
    OK(MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm));
    for (int i = 0; i < count * size; ++i) CHECK(out[i] == i % count % 1000 + i / count);
  }
}

static void check_memory(void) {
  in = malloc(kLargest * sizeof(int));
  out = malloc(kLargest * sizeof(int));
  check_lengths(MPI_COMM_WORLD, "lengths in private memory");
  free(in);
  free(out);
  OK(MPI_Alloc_mem(kLargest * sizeof(int), MPI_INFO_NULL, &in));
  OK(MPI_Alloc_mem(kLargest * sizeof(int), MPI_INFO_NULL, &out));
  check_lengths(MPI_COMM_WORLD, "lengths in allocated memory");
  OK(MPI_Free_mem(in));
  OK(MPI_Free_mem(out));
}

/* ---- Communicators ---- */

/* Their boards would not fit the heap all at once. */
static void check_communicators(void) {
  for (int i = 0; i < 600; ++i) {
    step = "one communicator after the other";
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int k = 0; k < 6; ++k) {
      int sum = 0;
      const int one = i + k;
      OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
      CHECK(sum == size * (i + k));
    }
    int last = rank == 0 ? i : -1; /* the root does not wait for the others to see it */
    OK(MPI_Bcast(&last, 1, MPI_INT, 0, comm));
    OK(MPI_Comm_free(&comm));
    CHECK(last == i);
  }
}

/* Groups that overlap, each with its own board. */
static void check_halves(void) {
  MPI_Comm half, reversed;
  step = "overlapping communicators";
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
  const int half_size = size_of(half);
  for (int i = 0; i < 50; ++i) {
    int one = 1, sum = 0, number = rank;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
    CHECK(sum == half_size);
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, reversed));
    CHECK(number == size - 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Comm_free(&half));
  OK(MPI_Comm_free(&reversed));
}

/* ---- Mistakes ---- */

static void expect_any(int error, const char* text) {
  CHECK(error != MPI_SUCCESS);
  expect_error(error, error, text);
}

static void check_mistakes(void) {
  static int data[100000], result[100000];
  const MPI_Comm world = MPI_COMM_WORLD;
  const int is_last = rank == size - 1;

  step = "an operation that is none, on one rank";
  int error = MPI_Allreduce(data, result, 1, MPI_INT, is_last ? MPI_OP_NULL : MPI_SUM, world);
  if (is_last) {
    expect_error(error, MPI_ERR_OP, "MPI_Allreduce");
  } else {
    expect_error(error, MPI_ERR_OTHER, "could not go through with it");
  }
  OK(MPI_Barrier(world));

  step = "a negative count on one rank, of many bytes";
  error = MPI_Allgather(data, is_last ? -1 : 20000, MPI_INT, result, 20000 / size, MPI_INT, world);
  CHECK(error != MPI_SUCCESS);
  OK(MPI_Barrier(world));

  step = "counts that differ";
  error = MPI_Allreduce(data, result, is_last ? 2 : 1, MPI_INT, MPI_SUM, world);
  if (is_last) {
    expect_error(error, MPI_ERR_COUNT, "4 bytes in place of 8");
  } else {
    expect_any(error, "MPI_Allreduce");
  }
  OK(MPI_Barrier(world));

  step = "a count of 0 against others";
  expect_any(MPI_Allreduce(data, result, is_last ? 0 : 1000, MPI_INT, MPI_SUM, world),
             "MPI_Allreduce");
  OK(MPI_Barrier(world));

  step = "counts that take different ways";
  expect_any(MPI_Allreduce(data, result, is_last ? 100000 : 1, MPI_INT, MPI_SUM, world),
             "MPI_Allreduce");
  OK(MPI_Barrier(world));

  step = "another collective";
  error = is_last ? MPI_Allreduce(data, result, 1, MPI_INT, MPI_SUM, world) : MPI_Barrier(world);
  expect_any(error, is_last ? "called another collective at the same time: barrier" : "MPI_");
  OK(MPI_Barrier(world));

  step = "another root";
  error = MPI_Reduce(data, result, 1, MPI_INT, MPI_SUM, is_last ? size - 1 : 0, world);
  if (is_last) expect_error(error, MPI_ERR_ROOT, "passed the root 0");
  OK(MPI_Barrier(world));

  step = "a buffer that is no memory";
  error = MPI_Bcast(is_last ? (void*)(uintptr_t)0x10000 : (void*)data, 100000, MPI_INT, 0, world);
  expect_any(error, "MPI_Bcast");
  OK(MPI_Barrier(world));
}

/* ---- Deaths ---- */

static void die_or_wait(void) {
  warm_up(MPI_COMM_WORLD);
  if (rank == size - 1) _Exit(0); /* without leaving MPI */
  step = "waiting for the dead";
  int one = 1, sum = 0, error = MPI_SUCCESS, class = 0;
  error = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  OK(MPI_Error_class(error, &class));
  CHECK(MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS); /* and again, at once */
  printf("class %d\n", class);
  fflush(stdout);
  _Exit(0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "dies") == 0) die_or_wait();
  warm_up(MPI_COMM_WORLD);
  check_memory();
  check_communicators();
  check_halves();
  check_mistakes();
  check_memory();
  return end_well("all boards were right");
}
