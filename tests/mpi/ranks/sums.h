/* Matched sums for programs that start them on queues and themselves: all ranks know what comes out
 * in each round. Kernels of streams may make the input and check the result. */
#ifndef FERRY_TESTS_MPI_RANKS_SUMS_H_
#define FERRY_TESTS_MPI_RANKS_SUMS_H_

#include <stdatomic.h>
#include <unistd.h>

#include "tests/mpi/ranks/on_queue.h"

struct sum {
  long *in, *out;
  long round, wrong, summed;
  int count;
  MPI_Request request;
};

static inline void make_input(void* argument) {
  struct sum* const sum = argument;
  for (int i = 0; i < sum->count; ++i) sum->in[i] = 1000 * sum->round + 10 * rank + i;
}

static inline void take_result(void* argument) {
  struct sum* const sum = argument;
  for (int i = 0; i < sum->count; ++i) {
    sum->wrong += sum->out[i] != size * (1000 * sum->round + i) + 5L * size * (size - 1);
  }
  ++sum->round;
  ++sum->summed;
}

static inline struct sum* make_sum(int count, MPI_Comm comm) {
  struct sum* const sum = calloc(1, sizeof *sum);
  CHECK(sum != NULL);
  sum->in = calloc((size_t)count, sizeof(long));
  sum->out = calloc((size_t)count, sizeof(long));
  sum->count = count;
  OK(MPI_Allreduce_init(sum->in, sum->out, count, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL,
                        &sum->request));
  return sum;
}

/* Frees it after so many rounds, and its request, if there still is one. */
static inline void free_sum(struct sum* sum, long rounds) {
  CHECK(sum->wrong == 0 && sum->summed == rounds);
  if (sum->request != MPI_REQUEST_NULL) OK(MPI_Request_free(&sum->request));
  free(sum->in);
  free(sum->out);
  free(sum);
}

/* A kernel that waits until the gate is open. */
static atomic_int gate;
static inline void pass_gate(void* argument) {
  (void)argument;
  while (atomic_load(&gate) == 0) usleep(100);
}

#endif /* FERRY_TESTS_MPI_RANKS_SUMS_H_ */
