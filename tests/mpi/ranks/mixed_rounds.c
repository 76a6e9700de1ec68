/* Rounds of matched collectives that some ranks enqueue and others start themselves. Any number of
 * ranks. With the argument "link", device memory is out of the CPU's reach. */
#include "tests/mpi/ranks/sums.h"

enum { ROUNDS = 60, LONG = 100000 };

static int is_link;
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

/* Checks the result of a round, in all its words. */
static void take_sum(struct sum* sum) {
  take_result(sum);
  CHECK(sum->wrong == 0);
}

/* Several short and long collectives at once, which ranks start in different orders. */
static void check_sums(void) {
  step = "sums";
  struct sum* const sums[3] = {make_sum(1, MPI_COMM_WORLD), make_sum(700, MPI_COMM_WORLD),
                               make_sum(LONG, MPI_COMM_WORLD)};
  for (int k = 0; k < 3; ++k) OK(MPIX_Match(&sums[k]->request));
  for (int round = 0; round < ROUNDS; ++round) {
    const int used = round % 10 == 0 ? 3 : 2;
    for (int k = 0; k < used; ++k) make_input(sums[k]);
    for (int i = 0; i < used; ++i) begin_round(&sums[(i + rank) % used]->request, round);
    for (int i = 0; i < used; ++i) end_round(&sums[(i + round) % used]->request, round);
    for (int k = 0; k < used; ++k) take_sum(sums[k]);
  }
  for (int k = 0; k < 3; ++k) free_sum(sums[k], k < 2 ? ROUNDS : ROUNDS / 10);
}

/* Columns of device memory, whose gaps kernels or the CPU pack. */
static void check_columns(void) {
  step = "columns of device memory";
  enum { SIDE = 64, WORDS = SIDE * SIDE };
  static int host[WORDS];
  MPI_Datatype column;
  MPI_Request request;
  void* const matrix = on_device(sizeof host);
  const int root = size - 1;
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
  struct sum* const sum = make_sum(700, MPI_COMM_WORLD);
  int token = 0;
  OK(MPIX_Match(&sum->request));
  for (int round = 0; round < 10; ++round) {
    make_input(sum);
    if (rank == 0) {
      OK(MPI_Start(&sum->request));
      if (size > 1) {
        OK(MPI_Recv(&token, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      for (int flag = 0; !flag;) OK(MPI_Test(&sum->request, &flag, MPI_STATUS_IGNORE));
    } else {
      run_round(queue, &sum->request);
      if (rank == size - 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
    }
    take_sum(sum);
  }
  /* A request that is freed while it is under way goes on. */
  make_input(sum);
  if (rank == 0) {
    OK(MPI_Start(&sum->request));
    OK(MPI_Request_free(&sum->request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  } else {
    run_round(queue, &sum->request);
    take_sum(sum);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Request_free(&sum->request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free_sum(sum, rank == 0 ? 10 : 11);
}

/* ---- Wrong use, and failures ---- */

static void check_mistakes(void) {
  step = "mistakes";
  struct sum* const sum = make_sum(3, MPI_COMM_WORLD);
  MPI_Request match = MPI_REQUEST_NULL;
  if (rank == 0) {
    OK(MPIX_Imatch(&sum->request, &match));
    /* Nobody else has offered. */
    if (size > 1) expect_error(MPI_Start(&sum->request), MPI_ERR_REQUEST, "not matched yet");
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank != 0) OK(MPIX_Imatch(&sum->request, &match));
  OK(MPI_Wait(&match, MPI_STATUS_IGNORE));

  make_input(sum);
  OK(MPI_Start(&sum->request));
  expect_error(MPI_Start(&sum->request), MPI_ERR_REQUEST, "is active");
  expect_error(MPIX_Enqueue_start(queue, &sum->request), MPI_ERR_REQUEST, "is active");
  expect_error(MPIX_Match(&sum->request), MPI_ERR_REQUEST, "is active");
  OK(MPI_Wait(&sum->request, MPI_STATUS_IGNORE));
  take_sum(sum);
  make_input(sum);
  OK(MPIX_Enqueue_start(queue, &sum->request));
  expect_error(MPI_Start(&sum->request), MPI_ERR_REQUEST, "belongs to a queue");
  OK(MPIX_Enqueue_wait(queue, &sum->request));
  OK(MPIX_Queue_wait(queue));
  take_sum(sum);
  free_sum(sum, 2);
}

/* A rank destroys its stream with its part on it: ranks that have started theirs themselves see it
 * fail, and do not wait for ever. */
static void check_destroyed_stream(void) {
  step = "a destroyed stream";
  if (size == 1) return;
  struct sum* const sum = make_sum(100, MPI_COMM_WORLD);
  OK(MPIX_Match(&sum->request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  MPI_Request never;
  if (rank == size - 1) {
    ferry_stream own;
    MPIX_Queue doomed;
    open_queue(&own, &doomed);
    never = await_nothing(doomed);
    OK(MPIX_Enqueue_start(doomed, &sum->request));
    CHECK(ferry_stream_destroy(&own) == FERRY_SUCCESS);
    OK(MPIX_Queue_free(&doomed));
    /* Its own end, or the others' for it: whichever was heard of first. */
    const int error = MPI_Start(&sum->request);
    int class = MPI_SUCCESS;
    OK(MPI_Error_class(error, &class));
    expect_error(error, class == MPI_ERR_REQUEST ? MPI_ERR_REQUEST : MPI_ERR_OTHER, "has failed");
  } else {
    never = await_nothing(queue);
    const int error = MPI_Start(&sum->request); /* this call may report it already */
    expect_error(error != MPI_SUCCESS ? error : MPI_Wait(&sum->request, MPI_STATUS_IGNORE),
                 MPI_ERR_REQUEST, "match it anew");
    expect_error(MPI_Start(&sum->request), MPI_ERR_REQUEST, "has failed");
  }
  if (never != MPI_REQUEST_NULL) OK(MPI_Request_free(&never));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free_sum(sum, 0);
}

/* The other way round: a rank that would have started its part itself leaves, and the queues learn
 * of it.
 */
static void check_freed_partner(void) {
  step = "a partner that frees its request";
  if (size == 1) return;
  struct sum* const sum = make_sum(100, MPI_COMM_WORLD);
  OK(MPIX_Match(&sum->request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  if (rank != 0) {
    CHECK(ferry_stream_launch(stream, pass_gate, NULL) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_start(queue, &sum->request));
    OK(MPIX_Enqueue_wait(queue, &sum->request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) OK(MPI_Request_free(&sum->request));
  atomic_store(&gate, 1);
  if (rank != 0) {
    CHECK(MPIX_Queue_wait(queue) != MPI_SUCCESS);
    expect_error(MPI_Start(&sum->request), MPI_ERR_REQUEST, "has failed");
    OK(MPI_Request_free(&sum->request));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free_sum(sum, 0);
}

/* If one rank cannot match, no rank carries the collective out. */
static void check_refusal(void) {
  step = "a refusal";
  if (!is_link) return;
  enum { BLOCKS = 140000 }; /* two of them are a strided copy */
  MPI_Datatype blocks;
  MPI_Request request;
  void* const device = on_device((size_t)BLOCKS * 16);
  int* const places = malloc(BLOCKS * sizeof(int));
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
  open_queue(&stream, &queue);
  check_sums();
  check_columns();
  check_progress();
  check_mistakes();
  check_refusal();
  check_destroyed_stream();
  check_freed_partner();
  close_queue(&stream, &queue);
  return end_well("all rounds were right");
}
