/* Wrong calls of partitioned collectives, their numbers, and ranks that die. Any number of ranks.
 *
 * `partitioned_collective_mistakes dies`: the last rank dies in a round of several requests.
 * `partitioned_collective_mistakes "dies late"`: it dies while data move.
 * `partitioned_collective_mistakes "dies soon" RANK US`: that rank dies so many microseconds after
 * the init, while the ranks prepare, or later. `partitioned_collective_mistakes compared`: for a
 * job whose ranks compare their calls.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "tests/mpi/ranks/partitioned_runs.h"

static int words[64], result[64];

static int make_sum(int partitions, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  return MPIX_Pallreduce_init(words, result, partitions, count, type, op, comm, info, request);
}

/* A request of long ago keeps its numbers, so none gets them a second time. */
static void check_numbers(void) {
  step = "numbers that come round again";
  enum { UNITS = 4096 };
  static int from[UNITS], to[UNITS];
  MPI_Comm comm;
  MPI_Request old, other;
  MPI_Info info = hints("1", "4096");
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPIX_Pallreduce_init(from, to, UNITS, 1, MPI_INT, MPI_SUM, comm, info, &old));
  for (int i = 1; i < 65536 / (UNITS + 1); ++i) {
    OK(MPIX_Pallreduce_init(from, to, UNITS, 1, MPI_INT, MPI_SUM, comm, info, &other));
    OK(MPI_Request_free(&other));
  }
  expect_error(MPIX_Pallreduce_init(from, to, UNITS, 1, MPI_INT, MPI_SUM, comm, info, &other),
               MPI_ERR_OTHER, "free some");
  for (int i = 0; i < UNITS; ++i) from[i] = i;
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Start(&old));
    OK(MPI_Pready_range(0, UNITS - 1, old));
    OK(MPI_Wait(&old, MPI_STATUS_IGNORE));
    for (int i = 0; i < UNITS; ++i) CHECK(to[i] == i * size);
    OK(MPI_Request_free(&old));
    OK(MPIX_Pallreduce_init(from, to, UNITS, 1, MPI_INT, MPI_SUM, comm, info, &old));
  }
  OK(MPI_Request_free(&old));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Info_free(&info));
}

/* No rank gets through, so that all go on alike. */
static void check_mistakes(void) {
  step = "wrong arguments";
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_error(make_sum(0, 1, MPI_INT, MPI_SUM, world, none, &request), MPI_ERR_ARG,
               "partitions is 0");
  expect_error(make_sum(1, -1, MPI_INT, MPI_SUM, world, none, &request), MPI_ERR_COUNT,
               "count is -1");
  expect_error(make_sum(3, INT64_MAX / 2, MPI_INT, MPI_SUM, world, none, &request), MPI_ERR_COUNT,
               "for each of 3 partitions");
  expect_error(make_sum(1, 1, MPI_DATATYPE_NULL, MPI_SUM, world, none, &request), MPI_ERR_TYPE,
               "datatype is no datatype");
  expect_error(make_sum(1, 1, MPI_INT, MPI_OP_NULL, world, none, &request), MPI_ERR_OP,
               "op is no operation");
  expect_error(make_sum(1, 1, MPI_FLOAT, MPI_BAND, world, none, &request), MPI_ERR_OP, "");
  expect_error(make_sum(1, 1, MPI_INT, MPI_SUM, world, none, NULL), MPI_ERR_ARG,
               "the address for the request is null");
  CHECK(make_sum(1, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL, none, &request) != MPI_SUCCESS);
  expect_error(MPIX_Pbcast_init(words, 2, 4, MPI_INT, size, world, none, &request), MPI_ERR_ROOT,
               "is no rank");
  expect_error(MPIX_Pbcast_init(NULL, 2, 4, MPI_INT, 0, world, none, &request), MPI_ERR_BUFFER, "");
  expect_error(MPIX_Pallgather_init(words, MPI_IN_PLACE, 1, 1, MPI_INT, world, none, &request),
               MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
  expect_error(MPIX_Pallreduce_init(words, words, 1, 1, MPI_INT, MPI_SUM, world, none, &request),
               MPI_ERR_BUFFER, "the same memory");
  for (int i = 0; i < 3; ++i) {
    static const char* const wrong[] = {"", "0", "12 KiB"};
    MPI_Info info = hints(wrong[i], NULL);
    expect_error(make_sum(1, 1, MPI_INT, MPI_SUM, world, info, &request), MPI_ERR_INFO_VALUE,
                 "ferry_partitioned_min_bytes");
    OK(MPI_Info_free(&info));
    info = hints(NULL, wrong[i]);
    expect_error(make_sum(1, 1, MPI_INT, MPI_SUM, world, info, &request), MPI_ERR_INFO_VALUE,
                 "ferry_partitioned_max_units");
    OK(MPI_Info_free(&info));
  }
}

static void check_misuse(void) {
  step = "wrong use";
  MPI_Info info = hints("1", NULL);
  struct run run = make(ALLREDUCE, 70, 2, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, info));
  expect_error(MPI_Pready(0, run.request), MPI_ERR_REQUEST, "not active");
  expect_error(MPIX_Pbuf_prepare(run.request), MPI_ERR_REQUEST, "not active");
  CHECK(has_arrived(&run, 3));
  set(&run, 1);
  OK(MPI_Start(&run.request));
  expect_error(MPI_Start(&run.request), MPI_ERR_REQUEST, "active");
  OK(MPI_Pready(1, run.request));
  expect_error(MPI_Pready(1, run.request), MPI_ERR_REQUEST, "partition 1 was readied");
  expect_error(MPI_Pready_range(0, 68, run.request), MPI_ERR_REQUEST, "0 to 68 was readied");
  OK(MPI_Pready(69, run.request)); /* the others of the range are ready all the same */
  OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
  compare_all(&run);
  drop(&run);
  OK(MPI_Info_free(&info));
}

/* ---- Ranks that die, or differ ---- */

static int die_or_wait(void) {
  step = "a rank that dies";
  MPI_Info info = hints("1", NULL);
  struct run sum = make(ALLREDUCE, 6, 100, MPI_UNSIGNED, MPI_SUM, 1, 1);
  struct run all = make(ALLGATHER, 6, 100, MPI_UNSIGNED, MPI_OP_NULL, 1, 1);
  OK(init(&sum, info));
  OK(init(&all, info));
  set(&sum, 1);
  set(&all, 1);
  MPI_Request both[2] = {sum.request, all.request};
  OK(MPI_Startall(2, both));
  for (int p = 0; p < 6; ++p) {
    if (rank == size - 1 && p == 3) _exit(0); /* without leaving MPI */
    OK(MPI_Pready(p, sum.request));
    OK(MPI_Pready(p, all.request));
  }
  for (int p = 0; p < 6; ++p) {
    while (!has_arrived(&sum, p) || !has_arrived(&all, p)) sched_yield();
  }
  for (int i = 0; i < 2; ++i) printf("class %d\n", MPI_Wait(&both[i], MPI_STATUS_IGNORE));
  fflush(stdout);
  _exit(0);
}

static atomic_int rounds;
static void* leave(void* argument) {
  (void)argument;
  while (atomic_load(&rounds) < 3) sched_yield();
  _exit(0); /* without leaving MPI */
}

/* The last rank dies while data move. The next start fails, too. */
static int die_while_data_move(void) {
  step = "a rank that dies while data move";
  pthread_t thread;
  struct run run = make(ALLREDUCE, 8, 50000, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, MPI_INFO_NULL));
  if (rank == size - 1) CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
  for (int failed = 0; failed < 2; atomic_fetch_add(&rounds, 1)) {
    int error = MPI_Start(&run.request);
    for (int p = 0; p < 8 && error == MPI_SUCCESS; ++p) {
      error = MPI_Pready((p + rank) % 8, run.request);
    }
    if (error == MPI_SUCCESS) error = MPI_Wait(&run.request, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) printf("class %d\n", error);
    CHECK(failed == 0 || error != MPI_SUCCESS);
    failed += error != MPI_SUCCESS;
  }
  fflush(stdout);
  _exit(0);
}

static long leaves_after_us;
static void* leave_soon(void* argument) {
  (void)argument;
  usleep((useconds_t)leaves_after_us);
  _exit(0);
}

/* A rank that is told that all went well has the right sums. The next start fails, too. */
static int die_soon(int dying) {
  enum { PARTITIONS = 8, COUNT = 30000, ALL = PARTITIONS * COUNT };
  step = "a rank that dies soon";
  unsigned* const in = memory(sizeof(unsigned) * ALL);
  unsigned* const out = memory(sizeof(unsigned) * ALL);
  for (int i = 0; i < ALL; ++i) in[i] = (unsigned)(i + rank);
  MPI_Request request;
  pthread_t thread;
  OK(MPIX_Pallreduce_init(in, out, PARTITIONS, COUNT, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &request));
  if (rank == dying) CHECK(pthread_create(&thread, NULL, leave_soon, NULL) == 0);
  for (int failed = 0; failed < 2;) {
    memset(out, 0, sizeof(unsigned) * ALL);
    int error = MPI_Start(&request);
    for (int p = 0; p < PARTITIONS && error == MPI_SUCCESS; ++p) {
      error = MPI_Pready((p + rank) % PARTITIONS, request);
    }
    if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) printf("class %d\n", error);
    for (int i = 0; i < ALL && error == MPI_SUCCESS; ++i) {
      CHECK(out[i] == (unsigned)(i * size + size * (size - 1) / 2));
    }
    CHECK(failed == 0 || error != MPI_SUCCESS);
    failed += error != MPI_SUCCESS;
  }
  fflush(stdout);
  _exit(0);
}

static void check_compared(void) {
  step = "ranks that compare their calls";
  MPI_Request request;
  if (size == 1) return;
  expect_error(make_sum(rank == 0 ? 2 : 4, 8 / (rank == 0 ? 2 : 4), MPI_INT, MPI_SUM,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &request),
               MPI_ERR_OP, "2 partitions");
  expect_error(
      make_sum(2, rank == 0 ? 4 : 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
      MPI_ERR_COUNT, "10 MPI_INT");
  const int error =
      make_sum(rank == 0 ? 0 : 2, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  expect_error(error, rank == 0 ? MPI_ERR_ARG : MPI_ERR_OTHER, "partitions is 0");
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  CHECK(size <= MOST_RANKS);
  const char* const mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "dies") == 0) return die_or_wait();
  if (strcmp(mode, "dies late") == 0) return die_while_data_move();
  if (strcmp(mode, "dies soon") == 0) {
    leaves_after_us = atol(argv[3]);
    return die_soon(atoi(argv[2]));
  }
  if (strcmp(mode, "compared") == 0) check_compared();
  check_numbers();
  check_mistakes();
  check_misuse();
  return end_well("all mistakes were named");
}
