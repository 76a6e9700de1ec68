/* How long a rank takes from its start to the end of its initialisation, libraries loaded.
 *
 *   attach START_NS    when it was executed (CLOCK_REALTIME)
 *
 * Prints "attach MILLISECONDS". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "benchmarks/common/shim.h"

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: attach START_NS\n");
    return 2;
  }
  Start(&rank, &ranks);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  printf("attach %.3f\n", (double)(now_ns - strtoll(argv[1], NULL, 10)) * 1e-6);
  fflush(stdout);
  Finish();
  return 0;
}
