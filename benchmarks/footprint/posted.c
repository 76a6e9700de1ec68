/* A rank that posts many receives, says "posted", and sleeps until it is killed.
 *
 *   posted RECEIVES */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "benchmarks/common/shim.h"

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  const int receives = argc > 1 ? atoi(argv[1]) : 0;
  char* buffer = Allocate("heap", 4096);
  Request* requests = calloc((size_t)receives + 1, sizeof(*requests));
  for (int i = 0; i < receives; ++i) {
    StartReceive(buffer, 8, (rank + 1) % ranks, &requests[i]);
  }
  printf("posted\n");
  fflush(stdout);
  while (1) {
    pause();
  }
}
