/* Device memory, streams and queues. Programs that are run with an argument have their collectives
 * enqueued, too. "mixed": each rank enqueues one round and starts the next itself, so that each
 * round has ranks of both kinds. */
#ifndef FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_
#define FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_

#include <ferry/stream.h>
#include <mpix.h>

#include "tests/mpi/ranks/check.h"

static inline void* on_device(size_t bytes) {
  void* memory = NULL;
  CHECK(ferry_alloc(bytes, FERRY_MEMORY_DEVICE, 0, &memory) == FERRY_SUCCESS);
  return memory;
}

static inline void open_queue(ferry_stream* stream, MPIX_Queue* queue) {
  CHECK(ferry_stream_create(0, stream) == FERRY_SUCCESS);
  OK(MPIX_Queue_init(queue, MPIX_QUEUE_FERRY, stream));
}

static inline void close_queue(ferry_stream* stream, MPIX_Queue* queue) {
  OK(MPIX_Queue_free(queue));
  CHECK(ferry_stream_destroy(stream) == FERRY_SUCCESS);
}

/* Has the queue start the matched request and wait for it, and waits for the queue. */
static inline void run_round(MPIX_Queue queue, MPI_Request* request) {
  OK(MPIX_Enqueue_start(queue, request));
  OK(MPIX_Enqueue_wait(queue, request));
  OK(MPIX_Queue_wait(queue));
}

/* The last rank's queue awaits a message that rank 0 never sends: nothing behind it is reached.
 * Returns the request of either rank. */
static inline MPI_Request await_nothing(MPIX_Queue queue) {
  static long word;
  MPI_Request never = MPI_REQUEST_NULL;
  if (rank == 0) OK(MPI_Send_init(&word, 1, MPI_LONG, size - 1, 7, MPI_COMM_WORLD, &never));
  if (rank == size - 1) OK(MPI_Recv_init(&word, 1, MPI_LONG, 0, 7, MPI_COMM_WORLD, &never));
  if (never != MPI_REQUEST_NULL) OK(MPIX_Match(&never));
  if (rank == size - 1) {
    OK(MPIX_Enqueue_start(queue, &never));
    OK(MPIX_Enqueue_wait(queue, &never));
  }
  return never;
}

/* ---- Programs whose argument says whether there is a queue ---- */

static int on_queue_wanted = 0;
static int on_queue_is_mixed = 0;
static ferry_stream on_queue_stream = NULL;
static MPIX_Queue on_queue_queue = MPIX_QUEUE_NULL;

/* Called in main, before MPI_Init. */
static inline void want_queues(int argc, char** argv) {
  on_queue_wanted = argc > 1;
  on_queue_is_mixed = argc > 1 && strcmp(argv[1], "mixed") == 0;
}

/* Whether a queue is wanted. Makes the queue at the first call. */
static inline int is_on_queue(void) {
  if (!on_queue_wanted) return 0;
  if (on_queue_stream == NULL) open_queue(&on_queue_stream, &on_queue_queue);
  return 1;
}

/* Starts the matched request and waits for it, both on the queue, or, mixed, every other time by
 * the rank. */
static inline void run_on_queue(MPI_Request* request) {
  static int on_queue_rounds = 0;
  if (on_queue_is_mixed && (on_queue_rounds++ + rank_in(MPI_COMM_WORLD)) % 2 == 0) {
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    return;
  }
  run_round(on_queue_queue, request);
}

static inline void close_on_queue(void) {
  if (on_queue_stream != NULL) close_queue(&on_queue_stream, &on_queue_queue);
}

#endif /* FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_ */
