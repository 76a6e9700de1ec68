/* Ping-pong latency and windowed bandwidth between ranks 0 and 1, after OSU's osu_latency and
 * osu_bw.
 *
 *   p2p [MEMORY [SCALE]]
 *
 * MEMORY is private (the default), heap or device. SCALE multiplies the number of rounds, in
 * percent. Rank 0 prints one line per size: "latency BYTES MICROSECONDS" (one way) and "bandwidth
 * BYTES MEGABYTES_PER_SECOND" (10^6), each the median of several batches.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim.h"

enum { kBatches = 9, kWindow = 64, kMaxBytes = 4 << 20 };

static const size_t kSizes[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, kMaxBytes};
enum { kSizeCount = sizeof(kSizes) / sizeof(kSizes[0]) };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int CompareDoubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double Median(double* values) {
  qsort(values, kBatches, sizeof(values[0]), CompareDoubles);
  return values[kBatches / 2];
}

/* Rounds in a batch: about as long for every size. */
static int Rounds(size_t size, int scale) {
  const int rounds = size <= 4096 ? 2000 : size <= 65536 ? 400 : size <= 262144 ? 100 : 20;
  const int scaled = rounds * scale / 100;
  return scaled > 0 ? scaled : 1;
}

static void PingPong(int rank, char* buffer, size_t size) {
  if (rank == 0) {
    Send(buffer, size, 1);
    Receive(buffer, size, 1);
  } else {
    Receive(buffer, size, 0);
    Send(buffer, size, 0);
  }
}

static double Latency(int rank, char* buffer, size_t size, int rounds) {
  double batches[kBatches];
  for (int batch = -1; batch < kBatches; ++batch) { /* batch -1 warms up */
    const double start = Now();
    for (int i = 0; i < rounds; ++i) {
      PingPong(rank, buffer, size);
    }
    if (batch >= 0) {
      batches[batch] = (Now() - start) / (2.0 * rounds);
    }
  }
  return Median(batches);
}

/* Rank 0 sends windows of messages; rank 1 answers each window with eight bytes. */
static void Window(int rank, char* buffer, size_t size, char* answer) {
  Request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    if (rank == 0) {
      StartSend(buffer, size, 1, &requests[i]);
    } else {
      StartReceive(buffer, size, 0, &requests[i]);
    }
  }
  WaitAll(kWindow, requests);
  if (rank == 0) {
    Receive(answer, 8, 1);
  } else {
    Send(answer, 8, 0);
  }
}

static double Bandwidth(int rank, char* buffer, size_t size, char* answer, int rounds) {
  const int windows = rounds / 20 + 1;
  double batches[kBatches];
  for (int batch = -1; batch < kBatches; ++batch) {
    const double start = Now();
    for (int i = 0; i < windows; ++i) {
      Window(rank, buffer, size, answer);
    }
    if (batch >= 0) {
      batches[batch] = (double)windows * kWindow * (double)size / (Now() - start);
    }
  }
  return Median(batches);
}

/* One exchange whose content is looked at: a benchmark of wrong data would be worth nothing. */
static void Verify(int rank, char* buffer, size_t size) {
  memset(buffer, rank == 0 ? 0x5a : 0, size);
  if (rank == 0) {
    Send(buffer, size, 1);
    return;
  }
  Receive(buffer, size, 0);
  for (size_t i = 0; i < size; ++i) {
    if (buffer[i] != 0x5a) {
      fprintf(stderr, "p2p: byte %zu of %zu is wrong\n", i, size);
      exit(1);
    }
  }
}

int main(int argc, char** argv) {
  const char* memory = argc > 1 ? argv[1] : "private";
  const int scale = argc > 2 ? atoi(argv[2]) : 100;
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "p2p: runs on 2 ranks, not on %d\n", ranks);
    return 2;
  }
  char* buffer = Allocate(memory, kMaxBytes);
  char* answer = Allocate(memory, 4096);
  if (buffer == NULL || answer == NULL) {
    fprintf(stderr, "p2p: no memory\n");
    return 1;
  }
  memset(buffer, 1, kMaxBytes);
  memset(answer, 1, 4096);
  for (int i = 0; i < kSizeCount; ++i) {
    const size_t size = kSizes[i];
    const int rounds = Rounds(size, scale);
    Verify(rank, buffer, size);
    Barrier();
    const double seconds = Latency(rank, buffer, size, rounds);
    Barrier();
    const double rate = Bandwidth(rank, buffer, size, answer, rounds);
    if (rank == 0) {
      printf("latency %zu %.3f\nbandwidth %zu %.1f\n", size, seconds * 1e6, size, rate / 1e6);
      fflush(stdout);
    }
  }
  Finish();
  return 0;
}
