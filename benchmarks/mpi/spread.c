/* Measures the times that a short run of a program shows: small collectives and messages one after
 * the other, each over a few thousand rounds, as a first measurement often is.
 *
 *   SPREAD ROUNDS
 *
 * Rank 0 prints "NAME MICROSECONDS" for each: the mean over rounds and ranks, as osu_reduce and the
 * like count (the time within the call, with a barrier between rounds). Of latency: one way, of two
 * ranks. Every failure ends the job with a message.
 *
 * Nothing here is Ferry's: each MPI library's own mpi.h compiles it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kRoot = 0, kWarmUpPart = 10, kMostRanks = 64 };

static int rank;
static int ranks;
static double out[kMostRanks];
static double in[kMostRanks];

static void DoReduce(void) {
  BENCH_CHECK(MPI_Reduce(out, in, 1, MPI_DOUBLE, MPI_SUM, kRoot, MPI_COMM_WORLD));
}
static void DoGather(void) {
  BENCH_CHECK(MPI_Gather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, kRoot, MPI_COMM_WORLD));
}
static void DoScatter(void) {
  BENCH_CHECK(MPI_Scatter(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, kRoot, MPI_COMM_WORLD));
}
static void DoBcast(void) { BENCH_CHECK(MPI_Bcast(out, 1, MPI_DOUBLE, kRoot, MPI_COMM_WORLD)); }
static void DoAllreduce(void) {
  BENCH_CHECK(MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
}
/* There and back, between the first two ranks. */
static void DoPingPong(void) {
  if (rank > 1) {
    return;
  }
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == rank) {
      BENCH_CHECK(MPI_Send(out, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD));
    } else {
      BENCH_CHECK(MPI_Recv(in, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

static double MeanInside(void (*call)(void), int rounds) {
  double inside_s = 0;
  for (int i = 0; i < rounds; ++i) {
    Barrier();
    const double start = Now();
    call();
    inside_s += Now() - start;
  }
  double sum_s = 0;
  BENCH_CHECK(MPI_Reduce(&inside_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, kRoot, MPI_COMM_WORLD));
  return sum_s / ranks / rounds;
}

static double MeanTurn(void (*call)(void), int rounds) {
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    call();
  }
  return (Now() - start) / rounds / 2;
}

int main(int argc, char** argv) {
  Start(&rank, &ranks);
  const int rounds = argc == 2 ? atoi(argv[1]) : 0;
  if (rounds < 1 || ranks < 2 || ranks > kMostRanks) {
    fprintf(stderr, "usage: spread ROUNDS, on 2 to %d ranks\n", kMostRanks);
    return 2;
  }
  const struct {
    const char* name;
    void (*call)(void);
    double (*mean)(void (*call)(void), int rounds);
  } kMeasured[] = {{"latency", DoPingPong, MeanTurn}, {"reduce", DoReduce, MeanInside},
                   {"gather", DoGather, MeanInside},  {"scatter", DoScatter, MeanInside},
                   {"bcast", DoBcast, MeanInside},    {"allreduce", DoAllreduce, MeanInside}};
  for (size_t i = 0; i < sizeof(kMeasured) / sizeof(kMeasured[0]); ++i) {
    (void)kMeasured[i].mean(kMeasured[i].call, rounds / kWarmUpPart + 1);
    const double mean_s = kMeasured[i].mean(kMeasured[i].call, rounds);
    if (rank == 0) {
      printf("%s %.4f\n", kMeasured[i].name, mean_s * 1e6);
    }
  }
  Finish();
  return 0;
}
