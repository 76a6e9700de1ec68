/* Ping-pong between the device buffers of two ranks, which may share a device.
 *
 *   ranks BATCH_MICROSECONDS BYTES...
 *
 * Rank 0 prints "ranks BYTES MICROSECONDS" one way, the median of several batches of about the
 * given length, and checks that the data it gets back are those that it sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

typedef struct {
  int rank;
  size_t size;
  char* sent;
  char* received;
} Pair;

/* Rank 1 sends back the data that it received. */
static double Repeat(void* context, int rounds) {
  const Pair* pair = context;
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (pair->rank == 0) {
      Send(pair->sent, pair->size, 1);
      Receive(pair->received, pair->size, 1);
    } else {
      Receive(pair->received, pair->size, 0);
      Send(pair->received, pair->size, 0);
    }
  }
  return Now() - start;
}

static void CheckBytes(const Pair* pair, const char* expected, char* found) {
  Copy(found, pair->received, pair->size);
  if (pair->rank == 0 && memcmp(found, expected, pair->size) != 0) {
    fprintf(stderr, "ranks: what came back is not what was sent\n");
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: ranks BATCH_MICROSECONDS BYTES...\n");
    return 2;
  }
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "ranks: start it on two ranks\n");
    return 2;
  }
  const double batch_s = atof(argv[1]) * 1e-6;
  for (int i = 2; i < argc; ++i) {
    const size_t size = strtoull(argv[i], NULL, 10);
    Pair pair = {rank, size, NULL, NULL};
    BENCH_CHECK(ferry_alloc(size, FERRY_MEMORY_DEVICE, 0, (void**)&pair.sent));
    BENCH_CHECK(ferry_alloc(size, FERRY_MEMORY_DEVICE, 0, (void**)&pair.received));
    char* bytes = malloc(size);
    char* found = malloc(size);
    if (bytes == NULL || found == NULL) {
      fprintf(stderr, "ranks: no memory\n");
      return 1;
    }
    for (size_t at = 0; at < size; ++at) {
      bytes[at] = (char)(1 + at % 101);
    }
    Copy(pair.sent, bytes, size);
    Barrier();
    const double seconds = MeasureTogether(Repeat, &pair, batch_s, rank, ranks);
    CheckBytes(&pair, bytes, found);
    if (rank == 0) {
      printf("ranks %zu %.4f\n", size, seconds / 2 * 1e6);
    }
    free(bytes);
    free(found);
    BENCH_CHECK(ferry_free(pair.sent));
    BENCH_CHECK(ferry_free(pair.received));
  }
  Finish();
  return 0;
}
