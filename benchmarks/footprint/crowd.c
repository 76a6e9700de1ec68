/* A rank of a crowd: it starts, talks to so many of the others, says "ready PID US", and sleeps
 * until it is killed. US: how long a round of messages took, in microseconds, for each rank that
 * it talked to; the median of the later half of its rounds.
 *
 *   crowd none|ring|all|PARTNERS BYTES ROUNDS
 *
 * none: to no rank. ring: to its neighbours. all: to every other rank. A number: to so many
 * ranks of the other half, the other one of two nodes. Each time one message of so many bytes,
 * there and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

/* Whom a rank sends to, and receives from, in each of its steps. */
typedef struct {
  int rank;
  int ranks;
  int steps;
  int halves; /* 1: only across */
} Talk;

static int Partner(const Talk* talk, int step, int direction) {
  if (!talk->halves) {
    return (talk->rank + talk->ranks + direction * (step + 1)) % talk->ranks;
  }
  const int half = talk->ranks / 2;
  /* Both ends of a pair meet in the same step: what one adds the other one takes off. */
  const int within = talk->rank < half ? (talk->rank + step) % half
                                       : (talk->rank - half + half - step % half) % half;
  return talk->rank < half ? half + within : within;
}

static void Round(const Talk* talk, char* buffer, size_t size) {
  for (int step = 0; step < talk->steps; ++step) {
    Request request;
    StartReceive(buffer + size, size, Partner(talk, step, -1), &request);
    Send(buffer, size, Partner(talk, step, 1));
    WaitAll(1, &request);
  }
}

int main(int argc, char** argv) {
  Talk talk = {0, 0, 0, 0};
  if (argc != 4) {
    fprintf(stderr, "usage: crowd none|ring|all|PARTNERS BYTES ROUNDS\n");
    return 2;
  }
  const size_t size = strtoul(argv[2], NULL, 10);
  const int rounds = atoi(argv[3]);
  Start(&talk.rank, &talk.ranks);
  talk.halves = atoi(argv[1]) > 0;
  talk.steps = strcmp(argv[1], "ring") == 0  ? 1
               : strcmp(argv[1], "all") == 0 ? talk.ranks - 1
                                             : atoi(argv[1]);
  char* const buffer = calloc(2, size);
  double* const times = calloc((size_t)rounds, sizeof(times[0]));
  for (int round = 0; round < rounds; ++round) {
    const double begin = Now();
    Round(&talk, buffer, size);
    times[round] = (Now() - begin) / (talk.steps > 0 ? talk.steps : 1);
  }
  const double middle = rounds == 0 ? 0 : Median(times + rounds / 2, (size_t)(rounds - rounds / 2));
  printf("ready %d %.1f\n", (int)getpid(), 1e6 * middle);
  fflush(stdout);
  while (1) {
    pause();
  }
}
