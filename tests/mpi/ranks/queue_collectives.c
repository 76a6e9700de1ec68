/* Collectives on queues beside each other, beside messages and kernels, and in wrong use. Any
 * number of ranks. */
#include <sys/mman.h>

#include "tests/mpi/ranks/sums.h"

enum { MOST = 8, ROUNDS = 40 };

static ferry_stream streams[2];
static MPIX_Queue queues[2];

static void launch(int stream, void (*kernel)(void*), void* argument) {
  CHECK(ferry_stream_launch(streams[stream], kernel, argument) == FERRY_SUCCESS);
}

static void check_order_of_starts(void) {
  step = "starts in another order on each rank";
  struct sum* sums[4];
  MPI_Request requests[4];
  for (int i = 0; i < 4; ++i) {
    sums[i] = make_sum(i == 0 ? 1000 : i, MPI_COMM_WORLD);
    requests[i] = sums[i]->request;
  }
  OK(MPIX_Matchall(4, requests));
  for (int round = 0; round < ROUNDS; ++round) {
    /* Each rank begins with a different one, and takes turns with the queues. */
    for (int i = 0; i < 4; ++i) {
      const int k = (i + rank) % 4, q = (k + rank + round) % 2;
      launch(q, make_input, sums[k]);
      OK(MPIX_Enqueue_start(queues[q], &sums[k]->request));
    }
    for (int i = 0; i < 4; ++i) {
      const int k = (3 * rank + i) % 4, q = (k + rank + round) % 2;
      OK(MPIX_Enqueue_wait(queues[q], &sums[k]->request));
      launch(q, take_result, sums[k]);
    }
    OK(MPIX_Queue_wait(queues[0])); /* they change queues */
    OK(MPIX_Queue_wait(queues[1]));
  }
  for (int i = 0; i < 4; ++i) free_sum(sums[i], ROUNDS);
}

static void check_beside_messages(void) {
  step = "beside messages";
  struct sum* const sum = make_sum(500, MPI_COMM_WORLD);
  long going = rank, coming = -1;
  MPI_Request all[3];
  all[0] = sum->request;
  OK(MPI_Recv_init(&coming, 1, MPI_LONG, before, 1, MPI_COMM_WORLD, &all[1]));
  OK(MPI_Send_init(&going, 1, MPI_LONG, next, 1, MPI_COMM_WORLD, &all[2]));
  MPI_Request match;
  OK(MPIX_Imatchall(3, all, &match));
  OK(MPI_Wait(&match, MPI_STATUS_IGNORE));
  for (int round = 0; round < ROUNDS; ++round) {
    launch(0, make_input, sum);
    OK(MPIX_Enqueue_startall(queues[0], 3, all));
    OK(MPIX_Enqueue_waitall(queues[0], 3, all));
    launch(0, take_result, sum);
  }
  OK(MPIX_Queue_wait(queues[0]));
  CHECK(coming == before);
  OK(MPI_Request_free(&all[1]));
  OK(MPI_Request_free(&all[2]));
  free_sum(sum, ROUNDS);
}

/* Collectives of several communicators, matched in different orders. */
static void check_communicators(void) {
  step = "communicators matched crosswise";
  MPI_Comm comms[3];
  struct sum* sums[6];
  MPI_Request matches[6];
  for (int c = 0; c < 3; ++c) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]));
  for (int i = 0; i < 6; ++i) sums[i] = make_sum(i + 1, comms[i / 2]);
  for (int i = 0; i < 6; ++i) {
    const int k = rank % 2 == 0 ? i : 5 - i;
    OK(MPIX_Imatch(&sums[k]->request, &matches[i]));
  }
  OK(MPI_Waitall(6, matches, MPI_STATUSES_IGNORE));
  for (int i = 0; i < 6; ++i) {
    launch(0, make_input, sums[i]);
    OK(MPIX_Enqueue_start(queues[0], &sums[i]->request));
    OK(MPIX_Enqueue_wait(queues[0], &sums[i]->request));
    launch(0, take_result, sums[i]);
  }
  OK(MPIX_Queue_wait(queues[0]));
  for (int i = 0; i < 6; ++i) free_sum(sums[i], 1);
  for (int c = 0; c < 3; ++c) OK(MPI_Comm_free(&comms[c]));
}

/* ---- Barriers ---- */

static struct arrivals { atomic_long of[MOST]; } * arrivals; /* in a file that all ranks map */

static void arrive(void* argument) {
  (void)argument;
  atomic_store(&arrivals->of[rank], atomic_load(&arrivals->of[rank]) + 1);
}

static long early, left;

static void leave(void* argument) {
  (void)argument;
  ++left;
  for (int i = 0; i < size; ++i) early += atomic_load(&arrivals->of[i]) < left;
}

static void check_barrier(void) {
  step = "barriers";
  char path[] = "/tmp/ferry_arrivals_XXXXXX";
  int file = rank == 0 ? mkstemp(path) : -1;
  CHECK(rank != 0 || (file >= 0 && ftruncate(file, sizeof *arrivals) == 0));
  OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
  FILE* const opened = rank == 0 ? fdopen(file, "r+") : fopen(path, "r+");
  CHECK(opened != NULL);
  arrivals = mmap(NULL, sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(opened), 0);
  CHECK(arrivals != MAP_FAILED);
  MPI_Request request;
  OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  OK(MPIX_Match(&request));
  for (int round = 0; round < ROUNDS; ++round) {
    launch(0, arrive, NULL);
    OK(MPIX_Enqueue_start(queues[0], &request));
    OK(MPIX_Enqueue_wait(queues[0], &request));
    launch(0, leave, NULL);
  }
  OK(MPIX_Queue_wait(queues[0]));
  CHECK(left == ROUNDS && early == 0);
  OK(MPI_Request_free(&request));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(munmap(arrivals, sizeof *arrivals) == 0 && fclose(opened) == 0);
  if (rank == 0) CHECK(unlink(path) == 0);
}

/* ---- Device memory ---- */

static void set_device(void* device, const void* host, size_t bytes) {
  CHECK(ferry_stream_memcpy(streams[0], device, host, bytes) == FERRY_SUCCESS);
  CHECK(ferry_stream_synchronize(streams[0]) == FERRY_SUCCESS);
}

static void check_device_memory(void) {
  step = "device memory";
  enum { COUNT = 3000 };
  const size_t bytes = COUNT * sizeof(int);
  int *const in = on_device(bytes), *const out = on_device(bytes * MOST), host[COUNT];
  MPI_Request sum, all, copies;
  OK(MPI_Allreduce_init(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum));
  OK(MPI_Allgather_init(in, COUNT, MPI_INT, out, COUNT, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &all));
  OK(MPI_Bcast_init(in, COUNT, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &copies));
  OK(MPIX_Match(&sum));
  OK(MPIX_Match(&all));
  OK(MPIX_Match(&copies));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < COUNT; ++i) host[i] = 1000 * round + 10 * rank + i;
    set_device(in, host, bytes);
    run_round(queues[0], &sum);
    set_device(host, out, bytes);
    for (int i = 0; i < COUNT; ++i) {
      CHECK(host[i] == size * (1000 * round + i) + 10 * size * (size - 1) / 2);
    }
    OK(MPIX_Enqueue_start(queues[0], &all));
    OK(MPIX_Enqueue_wait(queues[0], &all));
    OK(MPIX_Enqueue_start(queues[0], &copies));
    OK(MPIX_Enqueue_wait(queues[0], &copies));
    OK(MPIX_Queue_wait(queues[0]));
    for (int r = 0; r <= size; ++r) {
      set_device(host, r < size ? out + r * COUNT : in, bytes);
      for (int i = 0; i < COUNT; ++i) {
        CHECK(host[i] == 1000 * round + 10 * (r < size ? r : size - 1) + i);
      }
    }
  }
  OK(MPI_Request_free(&sum));
  OK(MPI_Request_free(&all));
  OK(MPI_Request_free(&copies));
  CHECK(ferry_free(in) == FERRY_SUCCESS && ferry_free(out) == FERRY_SUCCESS);
}

/* ---- Wrong use ---- */

/* Calls by the rank for a request that belongs to a queue. */
static void expect_all_refused(MPI_Request* request) {
  int flag = 0;
  expect_error(MPI_Start(request), MPI_ERR_REQUEST, "belongs to a queue");
  expect_error(MPI_Test(request, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "belongs to a queue");
  expect_error(MPI_Wait(request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "belongs to a queue");
  expect_error(MPI_Request_free(request), MPI_ERR_REQUEST, "belongs to a queue");
}

static void check_mistakes(void) {
  step = "mistakes";
  struct sum* const sum = make_sum(3, MPI_COMM_WORLD);
  struct sum* const other = make_sum(3, MPI_COMM_WORLD);
  MPI_Request both[2] = {other->request, sum->request};
  int flag = 1;
  OK(MPIX_Is_matched(sum->request, &flag));
  CHECK(flag == 0);
  expect_error(MPIX_Enqueue_start(queues[0], &sum->request), MPI_ERR_REQUEST, "is not matched");
  OK(MPIX_Match(&other->request));
  OK(MPIX_Is_matched(other->request, &flag));
  CHECK(flag == 1);
  /* If one request is not matched, nothing is enqueued. */
  expect_error(MPIX_Enqueue_startall(queues[0], 2, both), MPI_ERR_REQUEST, "is not matched");
  expect_error(MPIX_Enqueue_wait(queues[0], &other->request), MPI_ERR_REQUEST, "no start of it");
  OK(MPIX_Match(&sum->request));
  OK(MPIX_Match(&sum->request)); /* matching again is no error */

  launch(0, pass_gate, NULL);
  launch(0, make_input, sum);
  OK(MPIX_Enqueue_start(queues[0], &sum->request));
  expect_error(MPIX_Enqueue_start(queues[0], &sum->request), MPI_ERR_REQUEST, "has no wait yet");
  expect_error(MPIX_Enqueue_startall(queues[0], 2, both), MPI_ERR_REQUEST, "request 1 of 2");
  expect_error(MPIX_Enqueue_wait(queues[1], &sum->request), MPI_ERR_REQUEST, "on another queue");
  expect_error(MPIX_Queue_free(&queues[0]), MPI_ERR_REQUEST, "no wait yet");
  expect_all_refused(&sum->request);
  OK(MPIX_Enqueue_wait(queues[0], &sum->request));
  expect_error(MPIX_Enqueue_wait(queues[0], &sum->request), MPI_ERR_REQUEST, "no start of it");
  expect_error(MPIX_Enqueue_start(queues[1], &sum->request), MPI_ERR_REQUEST, "another queue");
  expect_error(MPIX_Queue_free(&queues[0]), MPI_ERR_REQUEST, "has not done all");
  expect_all_refused(&sum->request);
  launch(0, take_result, sum);
  atomic_store(&gate, 1);
  OK(MPIX_Queue_wait(queues[0]));

  /* Between the queues' rounds the rank itself starts it. */
  make_input(sum);
  OK(MPI_Start(&sum->request));
  expect_error(MPIX_Enqueue_start(queues[0], &sum->request), MPI_ERR_REQUEST, "is active");
  OK(MPI_Wait(&sum->request, MPI_STATUS_IGNORE));
  take_result(sum);
  MPI_Request twice[2] = {sum->request, sum->request};
  expect_error(MPIX_Enqueue_startall(queues[0], 2, twice), MPI_ERR_REQUEST, "twice");

  MPI_Request barrier;
  OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
  expect_error(MPIX_Match(&barrier), MPI_ERR_REQUEST, "not a persistent");
  OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
  free_sum(sum, 2);
  free_sum(other, 0);
}

/* A rank that starts late may be told at once that another rank has given up. */
static int start_and_wait(MPI_Request* request) {
  const int error = MPIX_Enqueue_start(queues[0], request);
  if (error != MPI_SUCCESS) return error;
  OK(MPIX_Enqueue_wait(queues[0], request));
  return MPIX_Queue_wait(queues[0]);
}

/* The root sends less than is received, which single messages may do, and collectives must not. */
static void check_counts(void) {
  step = "counts that do not fit";
  if (size == 1) return;
  int words[4] = {0, 0, 0, 0};
  MPI_Request request;
  OK(MPI_Bcast_init(words, rank == 0 ? 3 : 4, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  OK(MPIX_Match(&request));
  if (rank != 0) {
    const int error = start_and_wait(&request);
    CHECK(error != MPI_SUCCESS); /* or it has the message from a receiver that has given up */
    if (size == 2) expect_error(error, MPI_ERR_TRUNCATE, "12 bytes in place of 16");
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Request_free(&request));
}

static void add_ints(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Rank 0 cannot match: the others, which could, do not wait for it. Those that exchange messages
 * with it are told, the rest when those free theirs. */
static void check_refusal(void) {
  step = "a refusal";
  MPI_Datatype type;
  MPI_Op op;
  MPI_Request request;
  int in[8] = {0}, out[8];
  OK(MPI_Type_dup(MPI_INT, &type));
  OK(MPI_Op_create(add_ints, 1, &op));
  OK(MPI_Allreduce_init(in, out, 8, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  if (rank == 0) OK(MPI_Type_free(&type));
  for (int i = 0; i < 2 && rank == 0; ++i) {
    expect_error(MPIX_Match(&request), MPI_ERR_TYPE, "its datatype was freed");
  }
  if (rank != 0 && MPIX_Match(&request) == MPI_SUCCESS) {
    CHECK(start_and_wait(&request) != MPI_SUCCESS);
  }
  OK(MPI_Request_free(&request));
  if (rank != 0) OK(MPI_Type_free(&type));
  OK(MPI_Op_free(&op));
}

/* Data with gaps, also in device memory: columns of a matrix of 16, and blocks of many lengths. */
static void check_gaps(void) {
  step = "data with gaps";
  enum { ROWS = 500, COLUMNS = 16, WORDS = ROWS * COLUMNS };
  const int lengths[] = {1, 5, 2, 2, 2, 7}, places[] = {3, 10, 20, 30, 40, 90};
  const size_t bytes = WORDS * sizeof(int);
  static int host[WORDS], sums[WORDS];
  MPI_Datatype column, pieces;
  MPI_Request requests[3];
  void *const first = on_device(bytes), *const second = on_device(bytes);
  void* const third = on_device(bytes * MOST);
  OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column));
  OK(MPI_Type_indexed(6, lengths, places, MPI_INT, &pieces));
  OK(MPI_Type_commit(&column));
  OK(MPI_Type_commit(&pieces));
  OK(MPI_Bcast_init((int*)first + 3, 1, column, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[0]));
  OK(MPI_Bcast_init(second, 1, pieces, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  OK(MPI_Allgather_init((int*)first + 5, 1, column, third, ROWS, MPI_INT, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &requests[2]));
  OK(MPIX_Matchall(3, requests));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < WORDS; ++i) host[i] = 100000 * rank + 10 * i + round;
    set_device(first, host, bytes);
    set_device(second, host, bytes);
    OK(MPIX_Enqueue_startall(queues[0], 3, requests));
    OK(MPIX_Enqueue_waitall(queues[0], 3, requests));
    OK(MPIX_Queue_wait(queues[0]));
    set_device(sums, first, bytes);
    for (int i = 0; i < WORDS; ++i) {
      CHECK(sums[i] == 100000 * (i % COLUMNS == 3 ? size - 1 : rank) + 10 * i + round);
    }
    set_device(sums, second, bytes);
    for (int block = 0, i = 0; i < WORDS; ++i) {
      while (block < 6 && i >= places[block] + lengths[block]) ++block;
      const int is_sent = block < 6 && i >= places[block];
      CHECK(sums[i] == 100000 * (is_sent ? 0 : rank) + 10 * i + round);
    }
    for (int from = 0; from < size; ++from) {
      set_device(sums, (int*)third + from * ROWS, ROWS * sizeof(int));
      for (int i = 0; i < ROWS; ++i) {
        CHECK(sums[i] == 100000 * from + 10 * (i * COLUMNS + 5) + round);
      }
    }
  }
  for (int i = 0; i < 3; ++i) OK(MPI_Request_free(&requests[i]));
  OK(MPI_Type_free(&column));
  OK(MPI_Type_free(&pieces));
  CHECK(ferry_free(first) == FERRY_SUCCESS && ferry_free(second) == FERRY_SUCCESS);
  CHECK(ferry_free(third) == FERRY_SUCCESS);
}

/* A rank destroys its stream with a collective on it: nobody waits for ever, and the ranks that
 * took part report it, then or at the next start. */
static void check_destroyed_stream(void) {
  step = "a destroyed stream";
  if (size == 1) return;
  struct sum* const sum = make_sum(100, MPI_COMM_WORLD);
  OK(MPIX_Match(&sum->request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  atomic_store(&gate, 0);
  if (rank == size - 1) {
    ferry_stream stream;
    MPIX_Queue queue;
    open_queue(&stream, &queue);
    CHECK(ferry_stream_launch(stream, pass_gate, NULL) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_start(queue, &sum->request));
    OK(MPIX_Enqueue_wait(queue, &sum->request));
    atomic_store(&gate, 1);
    CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
    CHECK(MPIX_Queue_wait(queue) != MPI_SUCCESS);
    OK(MPIX_Queue_free(&queue));
  } else {
    (void)start_and_wait(&sum->request); /* the gate may have opened in time */
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free_sum(sum, 0);
}

/* A start without a wait: the stream is destroyed before any of it has run. */
static void check_abandoned_start(void) {
  step = "an abandoned start";
  if (size == 1) return;
  struct sum* const sum = make_sum(100, MPI_COMM_WORLD);
  OK(MPIX_Match(&sum->request));
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* otherwise the end may be told before the match */
  MPI_Request never;
  if (rank == size - 1) {
    ferry_stream stream;
    MPIX_Queue queue;
    open_queue(&stream, &queue);
    never = await_nothing(queue);
    OK(MPIX_Enqueue_start(queue, &sum->request));
    CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
    OK(MPIX_Queue_free(&queue));
    CHECK(MPIX_Enqueue_start(queues[0], &sum->request) != MPI_SUCCESS);
  } else {
    never = await_nothing(queues[0]);
    CHECK(start_and_wait(&sum->request) != MPI_SUCCESS); /* it needs all ranks */
    expect_error(MPIX_Enqueue_start(queues[0], &sum->request), MPI_ERR_REQUEST, "has failed");
  }
  if (never != MPI_REQUEST_NULL) OK(MPI_Request_free(&never));
  free_sum(sum, 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(size <= MOST);
  for (int i = 0; i < 2; ++i) open_queue(&streams[i], &queues[i]);
  check_order_of_starts();
  check_beside_messages();
  check_communicators();
  check_barrier();
  check_device_memory();
  check_mistakes();
  check_counts();
  check_gaps();
  check_refusal();
  check_destroyed_stream();
  check_abandoned_start();
  for (int i = 0; i < 2; ++i) close_queue(&streams[i], &queues[i]);
  return end_well("all queues were right");
}
