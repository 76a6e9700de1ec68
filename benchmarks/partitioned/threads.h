/* Threads that do a share of something together, and meet before and after it. */
#ifndef BENCHMARKS_PARTITIONED_THREADS_H_
#define BENCHMARKS_PARTITIONED_THREADS_H_

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostThreads = 16 };

typedef void (*Share)(void* context, int thread);

typedef struct {
  int count; /* with the one that starts them, which is thread 0 */
  pthread_barrier_t begin;
  pthread_barrier_t end;
  pthread_t threads[kMostThreads];
  Share share; /* changed while they wait for `begin`; NULL: they end */
  void* context;
} Threads;

typedef struct {
  Threads* threads;
  int number;
} Worker;

static inline void* Work(void* argument) {
  const Worker worker = *(const Worker*)argument;
  Threads* const threads = worker.threads;
  free(argument);
  for (;;) {
    (void)pthread_barrier_wait(&threads->begin);
    if (threads->share == NULL) {
      return NULL;
    }
    threads->share(threads->context, worker.number);
    (void)pthread_barrier_wait(&threads->end);
  }
}

static inline void StartThreads(Threads* threads, int count) {
  threads->count = count;
  int failed = pthread_barrier_init(&threads->begin, NULL, (unsigned)count) != 0 ||
               pthread_barrier_init(&threads->end, NULL, (unsigned)count) != 0;
  for (int i = 1; i < count && !failed; ++i) {
    Worker* const worker = malloc(sizeof(*worker));
    if (worker == NULL) {
      failed = 1;
      break;
    }
    *worker = (Worker){threads, i};
    failed = pthread_create(&threads->threads[i], NULL, Work, worker) != 0;
  }
  if (failed) {
    fprintf(stderr, "benchmark: no %d threads\n", count);
    exit(1);
  }
}

/* All threads carry out their shares; the calling one is thread 0. */
static inline void Together(Threads* threads, Share share, void* context) {
  if (threads->count == 1) {
    share(context, 0);
    return;
  }
  threads->share = share;
  threads->context = context;
  (void)pthread_barrier_wait(&threads->begin);
  share(context, 0);
  (void)pthread_barrier_wait(&threads->end);
}

static inline void EndThreads(Threads* threads) {
  if (threads->count > 1) {
    threads->share = NULL;
    (void)pthread_barrier_wait(&threads->begin);
  }
  for (int i = 1; i < threads->count; ++i) {
    (void)pthread_join(threads->threads[i], NULL);
  }
}

#endif /* BENCHMARKS_PARTITIONED_THREADS_H_ */
