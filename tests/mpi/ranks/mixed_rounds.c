/* Rounds of matched collectives that some ranks enqueue and others start themselves. Any number of
 * ranks. With the argument "link", device memory is out of the CPU's reach. */
#include <ferry/stream.h>
#include <mpix.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { ROUNDS = 60, LONG = 100000 };

static int rank, size, is_link;
static ferry_stream stream;
static MPIX_Queue queue;

/* Whether the rank enqueues this round: a different half of the ranks each time, sometimes all or
 * none.
 */
static int enqueues(int who, int round) { return (who * 5 + round * round) % 7 < 3 + round % 2; }

static void begin_round(MPI_Request* request, int round) {
  if (enqueues(rank, round)) {
    OK(MPIX_Enqueue_start(queue, request));
  } else {
    OK(MPI_Start(request));
  }
}

static void end_round(MPI_Request* request, int round) {
  if (enqueues(rank, round)) {
    OK(MPIX_Enqueue_wait(queue, request));
    OK(MPIX_Queue_wait(queue));
  } else {
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
  }
}

/* ---- Data ---- */

struct sum {
  long* in;
  long* out;
  int count;
  MPI_Request request;
};

static struct sum make_sum(int count) {
  struct sum sum = {calloc((size_t)count, sizeof(long)), calloc((size_t)count, sizeof(long)), count,
                    MPI_REQUEST_NULL};
  OK(MPI_Allreduce_init(sum.in, sum.out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &sum.request));
  return sum;
}

static void set_sum(struct sum* sum, int round) {
  for (int i = 0; i < sum->count; ++i) sum->in[i] = 1000L * round + 10 * rank + i;
}

static void check_sum(const struct sum* sum, int round) {
  for (int i = 0; i < sum->count; ++i) {
    CHECK(sum->out[i] == size * (1000L * round + i) + 5L * size * (size - 1));
  }
}

static void free_sum(struct sum* sum) {
  OK(MPI_Request_free(&sum->request));
  free(sum->in);
  free(sum->out);
}

/* Several short and long collectives at once, which ranks start in different orders. */
static void check_sums(void) {
  step = "sums";
  struct sum sums[3] = {make_sum(1), make_sum(700), make_sum(LONG)};
  for (int k = 0; k < 3; ++k) OK(MPIX_Match(&sums[k].request));
  for (int round = 0; round < ROUNDS; ++round) {
    const int used = round % 10 == 0 ? 3 : 2;
    for (int k = 0; k < used; ++k) set_sum(&sums[k], round);
    for (int i = 0; i < used; ++i) begin_round(&sums[(i + rank) % used].request, round);
    for (int i = 0; i < used; ++i) end_round(&sums[(i + round) % used].request, round);
    for (int k = 0; k < used; ++k) check_sum(&sums[k], round);
  }
  for (int k = 0; k < 3; ++k) free_sum(&sums[k]);
}

/* Columns of device memory, whose gaps kernels or the CPU pack. */
static void check_columns(void) {
  step = "columns of device memory";
  enum { SIDE = 64, WORDS = SIDE * SIDE };
  static int host[WORDS];
  MPI_Datatype column;
  MPI_Request request;
  void* matrix;
  const int root = size - 1;
  CHECK(ferry_alloc(sizeof host, FERRY_MEMORY_DEVICE, 0, &matrix) == FERRY_SUCCESS);
  OK(MPI_Type_vector(SIDE, 3, SIDE, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  OK(MPI_Bcast_init(matrix, 1, column, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  OK(MPIX_Match(&request));
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < WORDS; ++i) host[i] = 10000 * round + (rank == root ? i : -1);
    CHECK(ferry_stream_memcpy(stream, matrix, host, sizeof host) == FERRY_SUCCESS);
    CHECK(ferry_stream_synchronize(stream) == FERRY_SUCCESS);
    begin_round(&request, round);
    end_round(&request, round);
    CHECK(ferry_stream_memcpy(stream, host, matrix, sizeof host) == FERRY_SUCCESS);
    CHECK(ferry_stream_synchronize(stream) == FERRY_SUCCESS);
    for (int i = 0; i < WORDS; ++i) {
      CHECK(host[i] == 10000 * round + (rank == root || i % SIDE < 3 ? i : -1));
    }
  }
  OK(MPI_Request_free(&request));
  OK(MPI_Type_free(&column));
  CHECK(ferry_free(matrix) == FERRY_SUCCESS);
}

/* ---- Progress ---- */

/* Rank 0 starts its part and waits for something else, which comes after the others' parts are
 * over. */
static void check_progress(void) {
  step = "progress in other calls";
  struct sum sum = make_sum(700);
  int token = 0;
  OK(MPIX_Match(&sum.request));
  for (int round = 0; round < 10; ++round) {
    set_sum(&sum, round);
    if (rank == 0) {
      OK(MPI_Start(&sum.request));
      if (size > 1) {
        OK(MPI_Recv(&token, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      for (int flag = 0; !flag;) OK(MPI_Test(&sum.request, &flag, MPI_STATUS_IGNORE));
    } else {
      OK(MPIX_Enqueue_start(queue, &sum.request));
      OK(MPIX_Enqueue_wait(queue, &sum.request));
      OK(MPIX_Queue_wait(queue));
      if (rank == size - 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
    }
    check_sum(&sum, round);
  }
  /* A request that is freed while it is under way goes on. */
  set_sum(&sum, 0);
  if (rank == 0) {
    OK(MPI_Start(&sum.request));
    OK(MPI_Request_free(&sum.request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  } else {
    OK(MPIX_Enqueue_start(queue, &sum.request));
    OK(MPIX_Enqueue_wait(queue, &sum.request));
    OK(MPIX_Queue_wait(queue));
    check_sum(&sum, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Request_free(&sum.request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free(sum.out);
  free(sum.in);
}

/* ---- Wrong use, and failures ---- */

static void check_mistakes(void) {
  step = "mistakes";
  struct sum sum = make_sum(3);
  MPI_Request match = MPI_REQUEST_NULL;
  if (rank == 0) {
    OK(MPIX_Imatch(&sum.request, &match));
    /* Nobody else has offered. */
    if (size > 1) expect_error(MPI_Start(&sum.request), MPI_ERR_REQUEST, "not matched yet");
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank != 0) OK(MPIX_Imatch(&sum.request, &match));
  OK(MPI_Wait(&match, MPI_STATUS_IGNORE));

  set_sum(&sum, 1);
  OK(MPI_Start(&sum.request));
  expect_error(MPI_Start(&sum.request), MPI_ERR_REQUEST, "is active");
  expect_error(MPIX_Enqueue_start(queue, &sum.request), MPI_ERR_REQUEST, "is active");
  expect_error(MPIX_Match(&sum.request), MPI_ERR_REQUEST, "is active");
  OK(MPI_Wait(&sum.request, MPI_STATUS_IGNORE));
  check_sum(&sum, 1);
  OK(MPIX_Enqueue_start(queue, &sum.request));
  expect_error(MPI_Start(&sum.request), MPI_ERR_REQUEST, "belongs to a queue");
  OK(MPIX_Enqueue_wait(queue, &sum.request));
  OK(MPIX_Queue_wait(queue));
  check_sum(&sum, 1);
  free_sum(&sum);
}

static atomic_int gate;
static void pass_gate(void* argument) {
  (void)argument;
  while (atomic_load(&gate) == 0) usleep(100);
}

/* A rank destroys its stream with its part on it: ranks that have started theirs themselves see it
 * fail, and do not wait for ever. */
static void check_destroyed_stream(void) {
  step = "a destroyed stream";
  if (size == 1) return;
  struct sum sum = make_sum(100);
  OK(MPIX_Match(&sum.request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  if (rank == size - 1) {
    ferry_stream own;
    MPIX_Queue doomed;
    MPI_Request never;
    long room;
    CHECK(ferry_stream_create(0, &own) == FERRY_SUCCESS);
    OK(MPIX_Queue_init(&doomed, MPIX_QUEUE_FERRY, &own));
    /* It is enqueued behind a message that never comes, so that the start is not reached. */
    OK(MPI_Recv_init(&room, 1, MPI_LONG, 0, 7, MPI_COMM_WORLD, &never));
    OK(MPIX_Match(&never));
    OK(MPIX_Enqueue_start(doomed, &never));
    OK(MPIX_Enqueue_wait(doomed, &never));
    OK(MPIX_Enqueue_start(doomed, &sum.request));
    CHECK(ferry_stream_destroy(&own) == FERRY_SUCCESS);
    OK(MPIX_Queue_free(&doomed));
    expect_error(MPI_Start(&sum.request), MPI_ERR_OTHER, "has failed");
    OK(MPI_Request_free(&never));
  } else {
    MPI_Request never;
    long room = 0;
    if (rank == 0) {
      OK(MPI_Send_init(&room, 1, MPI_LONG, size - 1, 7, MPI_COMM_WORLD, &never));
      OK(MPIX_Match(&never));
    }
    const int error = MPI_Start(&sum.request); /* this call may report it already */
    expect_error(error != MPI_SUCCESS ? error : MPI_Wait(&sum.request, MPI_STATUS_IGNORE),
                 MPI_ERR_REQUEST, "match it anew");
    expect_error(MPI_Start(&sum.request), MPI_ERR_REQUEST, "has failed");
    if (rank == 0) OK(MPI_Request_free(&never));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free_sum(&sum);
}

/* The other way round: a rank that would have started its part itself leaves, and the queues learn
 * of it.
 */
static void check_freed_partner(void) {
  step = "a partner that frees its request";
  if (size == 1) return;
  struct sum sum = make_sum(100);
  OK(MPIX_Match(&sum.request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  if (rank != 0) {
    CHECK(ferry_stream_launch(stream, pass_gate, NULL) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_start(queue, &sum.request));
    OK(MPIX_Enqueue_wait(queue, &sum.request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) OK(MPI_Request_free(&sum.request));
  atomic_store(&gate, 1);
  if (rank != 0) {
    CHECK(MPIX_Queue_wait(queue) != MPI_SUCCESS);
    expect_error(MPI_Start(&sum.request), MPI_ERR_REQUEST, "has failed");
    OK(MPI_Request_free(&sum.request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free(sum.in);
  free(sum.out);
}

/* If one rank cannot match, no rank carries the collective out. */
static void check_refusal(void) {
  step = "a refusal";
  if (!is_link) return;
  enum { BLOCKS = 140000 }; /* two of them are a strided copy */
  MPI_Datatype blocks;
  MPI_Request request;
  void* device;
  int* const places = malloc(BLOCKS * sizeof(int));
  CHECK(ferry_alloc((size_t)BLOCKS * 16, FERRY_MEMORY_DEVICE, 0, &device) == FERRY_SUCCESS);
  for (int i = 0; i < BLOCKS; ++i) places[i] = 3 * i + (i / 2) % 2;
  OK(MPI_Type_create_indexed_block(BLOCKS, 1, places, MPI_INT, &blocks));
  OK(MPI_Type_commit(&blocks));
  OK(MPI_Bcast_init(device, 1, blocks, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  expect_error(MPIX_Match(&request), MPI_ERR_TYPE, "more than 65536 blocks");
  expect_error(MPI_Start(&request), MPI_ERR_TYPE, "its match has failed");
  OK(MPI_Request_free(&request));
  OK(MPI_Bcast_init(device, 1, blocks, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  OK(MPI_Start(&request)); /* started anew, and not matched */
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&request));
  OK(MPI_Type_free(&blocks));
  free(places);
  CHECK(ferry_free(device) == FERRY_SUCCESS);
}

int main(int argc, char** argv) {
  is_link = argc > 1;
  begin(&argc, &argv);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  OK(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream));
  check_sums();
  check_columns();
  check_progress();
  check_mistakes();
  check_refusal();
  check_destroyed_stream();
  check_freed_partner();
  OK(MPIX_Queue_free(&queue));
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  OK(MPI_Finalize());
  printf("all rounds were right\n");
  return 0;
}
