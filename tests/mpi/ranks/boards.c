/* Collectives of ranks that share a node, or of which some do: lengths around those where the way
 * changes, many communicators, and mistakes of some ranks while others wait. Run by two ranks or
 * more; on several nodes by two or more on the last one.
 *
 * `boards dies`: the last rank dies while the others wait for it in a collective, or in several.
 * `boards leader_dies`: the same of the first rank of the last one's node.
 * `boards nonblocking ...`: the same by nonblocking calls, several of them at once.
 */
#include <stdint.h>

#include "tests/mpi/ranks/check.h"

enum { kWarm = 10, kLargest = 300000 };

static int is_nonblocking;
static int near; /* ranks of this node */

/* A call in the form that is tested. Returns how it ended, be it at once or in the wait. */
#define CALL(name, nonblocking_name, ...)                                                   \
  (is_nonblocking                                                                           \
       ? (nonblocking = MPI_##nonblocking_name(__VA_ARGS__, &request),                      \
          nonblocking == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : nonblocking) \
       : MPI_##name(__VA_ARGS__))
static MPI_Request request;
static int nonblocking;

static void warm_up(MPI_Comm comm) {
  for (int i = 0; i < kWarm; ++i) OK(CALL(Barrier, Ibarrier, comm));
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
    OK(CALL(Allreduce, Iallreduce, in, out, count, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < count; ++i) CHECK(out[i] == size * (i % 1000) + size * (size - 1) / 2);
    OK(CALL(Reduce, Ireduce, in, out, count, MPI_INT, MPI_MAX, root, comm));
    for (int i = 0; i < count && rank == root; ++i) CHECK(out[i] == i % 1000 + size - 1);
    for (int i = 0; i < count; ++i) out[i] = rank == root ? i + root : -1;
    OK(CALL(Bcast, Ibcast, out, count, MPI_INT, root, comm));
    for (int i = 0; i < count; ++i) CHECK(out[i] == i + root);
    if (count > kLargest / size) continue;
    OK(CALL(Allgather, Iallgather, in, count, MPI_INT, out, count, MPI_INT, comm));
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
      OK(CALL(Allreduce, Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm));
      CHECK(sum == size * (i + k));
    }
    int last = rank == 0 ? i : -1; /* the root does not wait for the others to see it */
    OK(CALL(Bcast, Ibcast, &last, 1, MPI_INT, 0, comm));
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
    OK(CALL(Allreduce, Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, half));
    CHECK(sum == half_size);
    OK(CALL(Bcast, Ibcast, &number, 1, MPI_INT, 0, reversed));
    CHECK(number == size - 1);
    OK(CALL(Barrier, Ibarrier, MPI_COMM_WORLD));
  }
  OK(MPI_Comm_free(&half));
  OK(MPI_Comm_free(&reversed));
}

/* ---- Mistakes ---- */

/* Whom an error names: the wait, too, if the call does not block. */
static const char* called(const char* name) { return is_nonblocking ? "MPI_" : name; }

static void expect_any(int error, const char* text) {
  CHECK(error != MPI_SUCCESS);
  expect_error(error, error, text);
}

static void check_mistakes(void) {
  static int data[100000], result[100000];
  const MPI_Comm world = MPI_COMM_WORLD;
  const int is_last = rank == size - 1;

  step = "an operation that is none, on one rank";
  int error =
      CALL(Allreduce, Iallreduce, data, result, 1, MPI_INT, is_last ? MPI_OP_NULL : MPI_SUM, world);
  if (is_last) {
    expect_error(error, MPI_ERR_OP, called("MPI_Allreduce"));
  } else {
    expect_error(error, MPI_ERR_OTHER, "could not go through with it");
  }
  OK(CALL(Barrier, Ibarrier, world));

  step = "counts that differ";
  error = CALL(Allreduce, Iallreduce, data, result, is_last ? 2 : 1, MPI_INT, MPI_SUM, world);
  if (is_last) {
    expect_error(error, MPI_ERR_COUNT, "4 bytes in place of 8");
  } else {
    expect_any(error, called("MPI_Allreduce"));
  }
  OK(CALL(Barrier, Ibarrier, world));

  step = "a count of 0 against others";
  expect_any(CALL(Allreduce, Iallreduce, data, result, is_last ? 0 : 1000, MPI_INT, MPI_SUM, world),
             called("MPI_Allreduce"));
  OK(CALL(Barrier, Ibarrier, world));

  step = "another collective";
  error = is_last ? CALL(Allreduce, Iallreduce, data, result, 1, MPI_INT, MPI_SUM, world)
                  : CALL(Barrier, Ibarrier, world);
  expect_any(error, is_last ? "called another collective at the same time: barrier" : "MPI_");
  OK(CALL(Barrier, Ibarrier, world));
}

/* By messages, not all ranks would find out. */
static void check_mistakes_on_one_board(void) {
  static int data[100000], result[100000];
  const MPI_Comm world = MPI_COMM_WORLD;
  const int is_last = rank == size - 1;

  step = "a negative count on one rank, of many bytes";
  int error = CALL(Allgather, Iallgather, data, is_last ? -1 : 20000, MPI_INT, result, 20000 / size,
                   MPI_INT, world);
  CHECK(error != MPI_SUCCESS);
  OK(CALL(Barrier, Ibarrier, world));

  step = "counts that take different ways";
  expect_any(
      CALL(Allreduce, Iallreduce, data, result, is_last ? 100000 : 1, MPI_INT, MPI_SUM, world),
      called("MPI_Allreduce"));
  OK(CALL(Barrier, Ibarrier, world));

  step = "another root";
  error = CALL(Reduce, Ireduce, data, result, 1, MPI_INT, MPI_SUM, is_last ? size - 1 : 0, world);
  if (is_last && !is_nonblocking) { /* there the other may have gone on before this one looks */
    expect_error(error, MPI_ERR_ROOT, "passed the root 0");
  } else if (is_last) {
    expect_any(error, called("MPI_Reduce"));
  }
  OK(CALL(Barrier, Ibarrier, world));

  step = "a buffer that is no memory";
  error = CALL(Bcast, Ibcast, is_last ? (void*)(uintptr_t)0x10000 : (void*)data, 100000, MPI_INT, 0,
               world);
  expect_any(error, called("MPI_Bcast"));
  OK(CALL(Barrier, Ibarrier, world));
}

/* ---- Several at once ---- */

enum { kSeveral = 12 };

/* Long and short ones, and some that no board carries out, that are waited for in another order on
 * each rank, with blocking ones between, and with ranks that come late. */
static void check_several(void) {
  static int sums[kSeveral][5000], ones[5000], of_all[kSeveral][64], counts[64], places[64];
  CHECK(size <= 64);
  for (int i = 0; i < 5000; ++i) ones[i] = 1;
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    places[i] = size - 1 - i;
  }
  for (int round = 0; round < 60; ++round) {
    step = "several at once";
    MPI_Request requests[3 * kSeveral];
    int roots[kSeveral], total = 0;
    for (int i = 0; i < kSeveral; ++i) {
      const int count = i % 3 == 0 ? 5000 : i;
      for (int k = 0; k < count; ++k) sums[i][k] = -1;
      OK(MPI_Iallreduce(ones, sums[i], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3 * i]));
      OK(MPI_Iallgatherv(&rank, 1, MPI_INT, of_all[i], counts, places, MPI_INT, MPI_COMM_WORLD,
                         &requests[3 * i + 1]));
      roots[i] = rank == i % size ? round + i : -1;
      OK(MPI_Ibcast(&roots[i], 1, MPI_INT, i % size, MPI_COMM_WORLD, &requests[3 * i + 2]));
      if (i % 5 == rank % 5) {
        int flag = 0;
        OK(MPI_Test(&requests[3 * i], &flag, MPI_STATUS_IGNORE));
      }
      if (i == 7) OK(MPI_Allreduce(&ones[i], &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    CHECK(total == size);
    for (int i = 0; i < 3 * kSeveral; ++i) {
      OK(MPI_Wait(&requests[(i * 5 + rank * 7) % (3 * kSeveral)], MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < kSeveral; ++i) {
      const int count = i % 3 == 0 ? 5000 : i;
      for (int k = 0; k < count; ++k) CHECK(sums[i][k] == size);
      for (int k = 0; k < size; ++k) CHECK(of_all[i][k] == size - 1 - k);
      CHECK(roots[i] == round + i);
    }
  }
}

/* One rank waits in a receive, another in a collective of before: its helper has to go on with it.
 */
static void check_helper(void) {
  step = "a rank that waits for something else";
  for (int round = 0; round < 20; ++round) {
    int sum = 0, token = 0;
    if (rank == 0) {
      OK(MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
      OK(MPI_Recv(&token, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      OK(CALL(Allreduce, Iallreduce, &round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
      if (rank == size - 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
    }
    CHECK(sum == size * round);
  }
}

/* ---- Deaths ---- */

static void die_or_wait(int dead) {
  warm_up(MPI_COMM_WORLD);
  if (rank == dead) _Exit(0); /* without leaving MPI */
  step = "waiting for the dead";
  int one = 1, sum = 0, error = MPI_SUCCESS, class = 0;
  error = CALL(Allreduce, Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  OK(MPI_Error_class(error, &class));
  CHECK(CALL(Barrier, Ibarrier, MPI_COMM_WORLD) != MPI_SUCCESS); /* and again, at once */
  printf("class %d\n", class);
  fflush(stdout);
  _Exit(0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  is_nonblocking = argc > 1 && strcmp(argv[1], "nonblocking") == 0;
  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  near = size_of(node);
  OK(MPI_Comm_free(&node));
  if (argc > 1 && strcmp(argv[argc - 1], "dies") == 0) die_or_wait(size - 1);
  if (argc > 1 && strcmp(argv[argc - 1], "leader_dies") == 0) die_or_wait(size - size / 2);
  warm_up(MPI_COMM_WORLD);
  check_memory();
  check_communicators();
  check_halves();
  if (near == size || !is_nonblocking) check_mistakes();
  if (near == size) check_mistakes_on_one_board();
  check_memory();
  if (is_nonblocking) {
    check_several();
    check_helper();
  }
  return end_well("all boards were right");
}
