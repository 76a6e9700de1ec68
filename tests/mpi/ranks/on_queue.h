/* A stream and a queue for programs that, run with an argument, have their collectives enqueued,
 * too. "mixed": each rank enqueues one round and starts the next itself, so that each round has
 * ranks of both kinds. */
#ifndef FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_
#define FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_

#include <ferry/stream.h>
#include <mpix.h>

#include "tests/mpi/ranks/check.h"

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
  if (on_queue_stream == NULL) {
    CHECK(ferry_stream_create(0, &on_queue_stream) == FERRY_SUCCESS);
    OK(MPIX_Queue_init(&on_queue_queue, MPIX_QUEUE_FERRY, &on_queue_stream));
  }
  return 1;
}

/* Starts the matched request and waits for it, both on the queue, or, mixed, every other time by
 * the rank. */
static inline void run_on_queue(MPI_Request* request) {
  static int on_queue_rounds = 0;
  int on_queue_rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &on_queue_rank));
  if (on_queue_is_mixed && (on_queue_rounds++ + on_queue_rank) % 2 == 0) {
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    return;
  }
  OK(MPIX_Enqueue_start(on_queue_queue, request));
  OK(MPIX_Enqueue_wait(on_queue_queue, request));
  OK(MPIX_Queue_wait(on_queue_queue));
}

static inline void close_on_queue(void) {
  if (on_queue_stream != NULL) {
    OK(MPIX_Queue_free(&on_queue_queue));
    CHECK(ferry_stream_destroy(&on_queue_stream) == FERRY_SUCCESS);
  }
}

#endif /* FERRY_TESTS_MPI_RANKS_ON_QUEUE_H_ */
