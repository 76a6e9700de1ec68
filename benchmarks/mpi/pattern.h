/* The code that the sources of benchmarks/mpi share: an MPI program that measures one pattern for
 * several sizes.
 *
 *   PATTERN private|allocated BATCH_MICROSECONDS BYTES...
 *
 * Buffers are private memory, as most programs have, or MPI_Alloc_mem's. Rank 0 prints "BYTES
 * FIGURE" for each size, the figure a median over several batches of about the given length.
 * Received data is compared with the expected data before and after the batches, outside the time
 * that is measured. Every failure ends the job with a message.
 *
 * Nothing here is Ferry's: each MPI library's own mpi.h compiles it.
 */
#ifndef BENCHMARKS_MPI_PATTERN_H_
#define BENCHMARKS_MPI_PATTERN_H_

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kPageBytes = 4096 };

typedef struct {
  int rank;
  int ranks;
  size_t size; /* the bytes that the table names */
  char* out;   /* what a rank contributes */
  char* in;    /* what it gets */
  MPI_Win win; /* of a pattern of windows: `in` is its memory */
} Side;

typedef struct Pattern {
  const char* name;
  /* The length of both buffers, for the largest size. */
  size_t (*bytes)(const Side* side);
  /* One round whose result is compared: writes `out`, clears `in`, does it, and compares. */
  void (*check)(const Side* side);
  /* Collective: `rounds` rounds, and the seconds they took, on average over ranks. */
  double (*repeat)(void* side, int rounds);
  /* The figure that rank 0 prints for the seconds that a round takes. */
  double (*figure)(const Side* side, double round_s);
  /* NULL: both buffers are PatternMemory. Else gets them, `bytes` each, of the kind of memory that
   * the command line names. */
  void (*open)(Side* side, const char* memory, size_t bytes);
  void (*close)(Side* side); /* NULL: nothing to do */
} Pattern;

static inline void Mistaken(const Side* side, const char* what, size_t at) {
  fprintf(stderr, "benchmark: rank %d of %d, %zu bytes: wrong %s at %zu\n", side->rank, side->ranks,
          side->size, what, at);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The byte that `rank` has at a place: its neighbours, and places of other messages, have others.
 */
static inline char Expected(int rank, size_t at) { return (char)(rank * 31 + at * 7 + at / 251); }

/* The `length` bytes that `rank` sends; the first is its own byte `start`. */
static inline void FillBytes(char* buffer, int rank, size_t start, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    buffer[i] = Expected(rank, start + i);
  }
}
static inline void CompareBytes(const Side* side, const char* buffer, int rank, size_t start,
                                size_t length) {
  for (size_t i = 0; i < length; ++i) {
    if (buffer[i] != Expected(rank, start + i)) {
      Mistaken(side, "byte", start + i);
    }
  }
}

/* Small whole numbers, so that their sum is exact in any order in which a library adds. */
static inline float Addend(int rank, size_t at) { return (float)((rank + 1) * (int)(at % 7 + 1)); }

static inline size_t Floats(const Side* side) { return side->size / sizeof(float); }

static inline void FillAddends(const Side* side) {
  for (size_t i = 0; i < Floats(side); ++i) {
    const float addend = Addend(side->rank, i);
    memcpy(side->out + i * sizeof(addend), &addend, sizeof(addend));
  }
}
static inline void CompareSums(const Side* side) {
  const int sum_of_ranks = side->ranks * (side->ranks - 1) / 2;
  for (size_t i = 0; i < Floats(side); ++i) {
    float sum = 0;
    memcpy(&sum, side->in + i * sizeof(sum), sizeof(sum));
    if (sum != Addend(side->ranks + sum_of_ranks - 1, i)) {
      Mistaken(side, "sum", i);
    }
  }
}

/* On all ranks. */
static inline double MeanOverRanks(double value, int ranks) {
  double sum = 0;
  BENCH_CHECK(MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  return sum / ranks;
}

static inline double Microseconds(const Side* side, double round_s) {
  (void)side;
  return round_s * 1e6;
}

static inline char* PatternMemory(const char* memory, size_t bytes) {
  void* buffer = NULL;
  if (strcmp(memory, "allocated") == 0) {
    BENCH_CHECK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer));
  } else if (strcmp(memory, "private") == 0) {
    buffer = aligned_alloc(kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  }
  if (buffer == NULL) {
    fprintf(stderr, "benchmark: no %zu bytes of %s memory\n", bytes, memory);
    exit(1);
  }
  memset(buffer, 0, bytes);
  return buffer;
}

static const double kWarmUpSeconds = 0.1;

/* Libraries connect at first use, and ranks that exchange much may get a better path then. */
static inline void WarmUp(const Pattern* pattern, Side* side) {
  const double end = Now() + kWarmUpSeconds;
  while (FromRank0(Now() < end, side->rank, side->ranks)) {
    pattern->repeat(side, 1);
  }
}

static inline int RunPattern(int argc, char** argv, const Pattern* pattern) {
  Side side = {0};
  Start(&side.rank, &side.ranks);
  if (argc < 4 || side.ranks % 2 != 0) {
    fprintf(stderr,
            "usage: %s private|allocated BATCH_MICROSECONDS BYTES..., on an even number "
            "of ranks\n",
            pattern->name);
    return 2;
  }
  size_t bytes = 0;
  for (int i = 3; i < argc; ++i) {
    side.size = strtoull(argv[i], NULL, 10);
    if (side.size == 0 || side.size % sizeof(float) != 0) {
      fprintf(stderr, "%s: \"%s\" is no size of whole floats\n", pattern->name, argv[i]);
      return 2;
    }
    bytes = pattern->bytes(&side) > bytes ? pattern->bytes(&side) : bytes;
  }
  if (pattern->open != NULL) {
    pattern->open(&side, argv[1], bytes);
  } else {
    side.out = PatternMemory(argv[1], bytes);
    side.in = PatternMemory(argv[1], bytes);
  }
  for (int i = 3; i < argc; ++i) {
    side.size = strtoull(argv[i], NULL, 10);
    pattern->check(&side);
    if (i == 3) {
      WarmUp(pattern, &side);
    }
    const double round_s = MeasureTogether(pattern->repeat, &side, strtod(argv[2], NULL) * 1e-6,
                                           side.rank, side.ranks);
    pattern->check(&side);
    if (side.rank == 0) {
      printf("%zu %.5f\n", side.size, pattern->figure(&side, round_s));
      fflush(stdout);
    }
  }
  Barrier();
  if (pattern->close != NULL) {
    pattern->close(&side);
  }
  Finish();
  return 0;
}

#endif /* BENCHMARKS_MPI_PATTERN_H_ */
