/* Clocks, and how often a thing must be done to be measured, alike for every library. Include
 * benchmarks/common/shim.h first. */
#ifndef BENCHMARKS_COMMON_TIMING_H_
#define BENCHMARKS_COMMON_TIMING_H_

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { kBatches = 7, kMaxRounds = 100000 };

static inline double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int CompareDoubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Sorts them. */
static inline double Median(double* values, size_t count) {
  qsort(values, count, sizeof(values[0]), CompareDoubles);
  return values[count / 2];
}

/* Rank 0's number, on all ranks. */
static inline int64_t FromRank0(int64_t value, int rank, int ranks) {
  if (rank != 0) {
    Receive(&value, sizeof(value), 0);
  }
  for (int other = 1; rank == 0 && other < ranks; ++other) {
    Send(&value, sizeof(value), other);
  }
  return value;
}

/* Collective: seconds that one of rank 0's rounds takes, the median over batches of about
 * `batch_s`. repeat(context, n) does n rounds and returns the seconds they took. The warm-up also
 * says how many rounds make a batch. */
static inline double MeasureTogether(double (*repeat)(void* context, int rounds), void* context,
                                     double batch_s, int rank, int ranks) {
  int rounds = 1;
  double round_s = repeat(context, rounds);
  for (int again = 1; again && rounds < kMaxRounds;) {
    again = (int)FromRank0(rounds * round_s < batch_s / 4, rank, ranks);
    rounds *= again ? 4 : 1;
    round_s = again ? repeat(context, rounds) / rounds : round_s;
  }
  const double wanted = batch_s / round_s + 1;
  rounds = (int)FromRank0(wanted < (double)kMaxRounds ? (int)wanted : kMaxRounds, rank, ranks);
  double batches[kBatches];
  for (int batch = 0; batch < kBatches; ++batch) {
    batches[batch] = repeat(context, rounds) / rounds;
  }
  return Median(batches, kBatches);
}

#endif /* BENCHMARKS_COMMON_TIMING_H_ */
