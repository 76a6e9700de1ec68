/* Measures how much several pairs of ranks (0 and 1, 2 and 3, ...) move together, after OSU's
   osu_mbw_mr.
 *
 *   pairs MEMORY BATCH_MICROSECONDS BYTES...
 *
 * Each even rank sends windows of 64 messages to the next rank, which answers every window. Rank 0
 * prints "pairs BYTES MESSAGES_PER_SECOND" of all pairs, from one barrier to the next: a pair that
 * the others keep waiting counts with all of its time. It is the median of several batches of about
 * the given length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kWindow = 64, kPageBytes = 4096 };

typedef struct {
  int rank;
  size_t size;
  char* buffers;
  char* answer;
} Side;

static void Window(const Side* side) {
  const int peer = side->rank ^ 1;
  Request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    char* buffer = side->buffers + (size_t)i * side->size;
    if (side->rank % 2 == 0) {
      StartSend(buffer, side->size, peer, &requests[i]);
    } else {
      StartReceive(buffer, side->size, peer, &requests[i]);
    }
  }
  WaitAll(kWindow, requests);
  if (side->rank % 2 == 0) {
    Receive(side->answer, 8, peer);
  } else {
    Send(side->answer, 8, peer);
  }
}

static double Repeat(void* context, int rounds) {
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    Window(context);
  }
  Barrier();
  return Now() - start;
}

int main(int argc, char** argv) {
  int ranks = 0;
  Side side = {0};
  Start(&side.rank, &ranks);
  if (argc < 4 || ranks % 2 != 0) {
    fprintf(stderr,
            "usage: pairs MEMORY BATCH_MICROSECONDS BYTES..., on an even number of ranks\n");
    return 2;
  }
  const size_t largest = LargestSize(argc, argv, 3, 1);
  const size_t bytes = (kWindow * largest + kPageBytes - 1) / kPageBytes * kPageBytes;
  side.buffers = Allocate(argv[1], bytes);
  side.answer = Allocate(argv[1], kPageBytes);
  if (side.buffers == NULL || side.answer == NULL) {
    fprintf(stderr, "pairs: no memory\n");
    return 1;
  }
  memset(side.buffers, 1, bytes);
  memset(side.answer, 1, kPageBytes);
  for (int i = 3; i < argc; ++i) {
    side.size = strtoull(argv[i], NULL, 10);
    const double window_s =
        MeasureTogether(Repeat, &side, strtod(argv[2], NULL) * 1e-6, side.rank, ranks);
    if (side.rank == 0) {
      printf("pairs %zu %.1f\n", side.size, ranks / 2 * kWindow / window_s);
      fflush(stdout);
    }
  }
  Finish();
  return 0;
}
