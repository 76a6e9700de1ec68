/* A pattern that is one collective call, measured as OSU's benchmarks do: the time within the call,
 * on average over ranks, with a barrier between rounds outside of it.
 *
 *   PATTERN [nonblocking] ...   the nonblocking call, and the wait for it; then as in pattern.h
 *
 * A source defines Call (one COLLECTIVE, from side->out to side->in), CollectiveBytes, and how a
 * result is prepared and compared (Fill, Compare), then COLLECTIVE_MAIN(NAME). */
#ifndef BENCHMARKS_MPI_COLLECTIVE_H_
#define BENCHMARKS_MPI_COLLECTIVE_H_

#include "benchmarks/mpi/pattern.h"

enum { kRoot = 0 };

static int is_nonblocking;

/* The call `name` with these arguments, or `nonblocking_name` and the wait. */
#define COLLECTIVE(name, nonblocking_name, ...)                 \
  if (is_nonblocking) {                                         \
    MPI_Request request;                                        \
    BENCH_CHECK(MPI_##nonblocking_name(__VA_ARGS__, &request)); \
    BENCH_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));         \
  } else                                                        \
    BENCH_CHECK(MPI_##name(__VA_ARGS__))

static void Call(const Side* side);
static void Fill(const Side* side);
static void Compare(const Side* side);
static size_t CollectiveBytes(const Side* side);

static inline double RepeatCollective(void* context, int rounds) {
  const Side* side = context;
  double inside_s = 0;
  Barrier();
  for (int i = 0; i < rounds; ++i) {
    const double start = Now();
    Call(side);
    inside_s += Now() - start;
    Barrier();
  }
  return MeanOverRanks(inside_s, side->ranks);
}

static inline void CheckCollective(const Side* side) {
  memset(side->in, 0x55, CollectiveBytes(side));
  Fill(side);
  Call(side);
  Compare(side);
}

#define COLLECTIVE_MAIN(pattern_name)                                           \
  int main(int argc, char** argv) {                                             \
    static const Pattern kPattern = {.name = pattern_name,                      \
                                     .bytes = CollectiveBytes,                  \
                                     .check = CheckCollective,                  \
                                     .repeat = RepeatCollective,                \
                                     .figure = Microseconds};                   \
    is_nonblocking = argc > 1 && strcmp(argv[1], "nonblocking") == 0;           \
    return RunPattern(argc - is_nonblocking, argv + is_nonblocking, &kPattern); \
  }

#endif /* BENCHMARKS_MPI_COLLECTIVE_H_ */
