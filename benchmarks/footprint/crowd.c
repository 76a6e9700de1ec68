/* A rank of a crowd: it starts, talks to so many of the others, says "ready PID", and sleeps until
 * it is killed.
 *
 *   crowd none|ring|all BYTES ROUNDS
 *
 * none: to nobody. ring: to its neighbours. all: to every other rank. Each time so many messages of
 * so many bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/common/shim.h"

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: crowd none|ring|all BYTES ROUNDS\n");
    return 2;
  }
  const size_t size = strtoul(argv[2], NULL, 10);
  const int rounds = atoi(argv[3]);
  Start(&rank, &ranks);
  const int most = strcmp(argv[1], "none") == 0 ? 0 : strcmp(argv[1], "ring") == 0 ? 1 : ranks - 1;
  char* const buffer = calloc(2, size);
  for (int round = 0; round < rounds; ++round) {
    for (int step = 1; step <= most; ++step) {
      Request request;
      StartReceive(buffer + size, size, (rank + ranks - step) % ranks, &request);
      Send(buffer, size, (rank + step) % ranks);
      WaitAll(1, &request);
    }
  }
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (1) {
    pause();
  }
}
