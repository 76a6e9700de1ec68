/* Measures how long a rank that holds many receives or messages takes to match another one, and the
 * memory of a posted receive.
 *
 *   match posted|wildcard|unexpected BATCH_MICROSECONDS DEPTH...
 *   match memory RECEIVES
 *
 * Rank 0 receives windows of 8-byte messages from rank 1, behind DEPTH receives that do not match
 * (posted: with other tags; wildcard: those from any source) or DEPTH messages that no rank has
 * received yet (unexpected). It prints "MODE DEPTH NANOSECONDS" for one message: from posting its
 * window to the end of the last receive. A window's messages are there before its receives in mode
 * unexpected, and are sent once it is posted in the others.
 *
 * "memory" prints "memory RECEIVES BYTES", the resident memory of rank 0 when that many are posted,
 * without the arrays that the program itself needs for them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kWindow = 64, kSize = 8, kMark = 8, kFirstTag = 100, kTags = 30000 };

typedef enum { kPosted, kWildcard, kUnexpected } Mode;

typedef struct {
  int rank;
  Mode mode;
  char* buffer;
} Side;

static void SendOne(const Side* side, int tag) {
  Request request;
  StartSendTagged(side->buffer, kSize, 1 - side->rank, tag, &request);
  WaitAll(1, &request);
}

static void ReceiveOne(const Side* side, int tag) {
  Request request;
  StartReceiveTagged(side->buffer, kSize, 1 - side->rank, tag, &request);
  WaitAll(1, &request);
}

static void SendWindow(const Side* side) {
  Request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    StartSend(side->buffer, kSize, 0, &requests[i]);
  }
  WaitAll(kWindow, requests);
}

/* Seconds from posting the window. */
static double ReceiveWindow(const Side* side) {
  Request requests[kWindow];
  const double start = Now();
  for (int i = 0; i < kWindow; ++i) {
    StartReceive(side->buffer, kSize, 1, &requests[i]);
  }
  if (side->mode != kUnexpected) {
    SendOne(side, kMark);
  }
  WaitAll(kWindow, requests);
  return Now() - start;
}

static double Repeat(void* context, int rounds) {
  const Side* side = context;
  double seconds = 0;
  for (int i = 0; i < rounds; ++i) {
    if (side->mode == kUnexpected && side->rank == 1) {
      SendWindow(side);
      SendOne(side, kMark); /* overtakes nothing */
      ReceiveOne(side, kMark);
    } else if (side->mode == kUnexpected) {
      ReceiveOne(side, kMark);
      seconds += ReceiveWindow(side);
      SendOne(side, kMark);
    } else if (side->rank == 1) {
      ReceiveOne(side, kMark);
      SendWindow(side);
    } else {
      seconds += ReceiveWindow(side);
    }
  }
  return side->rank == 0 ? seconds : 1; /* rank 0 decides how many rounds there are */
}

static int TagOf(int i) { return kFirstTag + i % kTags; }

static void PostMany(const Side* side, int count, char* buffers, Request* requests) {
  const int source = side->mode == kWildcard ? kAnySource : 1;
  for (int i = 0; i < count; ++i) {
    StartReceiveTagged(buffers + (size_t)i * kSize, kSize, source, TagOf(i), &requests[i]);
  }
}

/* In the order of their receives. */
static void SendMany(const Side* side, int count) {
  Request requests[kWindow];
  for (int i = 0; i < count; i += kWindow) {
    const int some = count - i < kWindow ? count - i : kWindow;
    for (int j = 0; j < some; ++j) {
      StartSendTagged(side->buffer, kSize, 0, TagOf(i + j), &requests[j]);
    }
    WaitAll(some, requests);
  }
}

static void MeasureDepth(Side* side, const char* name, int depth, double batch_s) {
  char* buffers = malloc((size_t)depth * kSize + 1);
  Request* requests = malloc((size_t)depth * sizeof(Request) + 1);
  if (side->rank == 0 && side->mode != kUnexpected) {
    PostMany(side, depth, buffers, requests);
  } else if (side->rank == 1 && side->mode == kUnexpected) {
    SendMany(side, depth);
  }
  Barrier();
  const double window_s = MeasureTogether(Repeat, side, batch_s, side->rank, 2);
  Barrier();
  if (side->rank == 0) {
    printf("%s %d %.2f\n", name, depth, window_s / kWindow * 1e9);
    fflush(stdout);
    if (side->mode == kUnexpected) {
      PostMany(side, depth, buffers, requests);
    }
    WaitAll(depth, requests);
  } else if (side->mode != kUnexpected) {
    SendMany(side, depth);
  }
  free(requests);
  free(buffers);
}

static size_t ResidentBytes(void) {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*s %zu", &pages) != 1) {
    fprintf(stderr, "match: cannot read /proc/self/statm\n");
    exit(1);
  }
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void MeasureMemory(const Side* side, int count) {
  const size_t own = (size_t)count * (kSize + sizeof(Request));
  if (side->rank == 1) {
    Barrier();
    SendMany(side, count);
    return;
  }
  char* buffers = malloc((size_t)count * kSize + 1);
  Request* requests = malloc((size_t)count * sizeof(Request) + 1);
  memset(buffers, 1, (size_t)count * kSize);
  PostMany(side, count, buffers, requests);
  printf("memory %d %zu\n", count, ResidentBytes() - own);
  fflush(stdout);
  Barrier();
  WaitAll(count, requests);
  free(requests);
  free(buffers);
}

int main(int argc, char** argv) {
  static const char* const kModes[] = {"posted", "wildcard", "unexpected"};
  int ranks = 0;
  Side side = {0};
  Start(&side.rank, &ranks);
  if (argc < 3 || ranks != 2) {
    fprintf(stderr,
            "usage: match posted|wildcard|unexpected BATCH_MICROSECONDS DEPTH..., or match memory "
            "RECEIVES, on two ranks\n");
    return 2;
  }
  side.buffer = aligned_alloc(64, 64);
  memset(side.buffer, 0, 64);
  for (int mode = kPosted; mode <= kUnexpected; ++mode) {
    side.mode = (Mode)mode;
    for (int i = 3; i < argc && strcmp(argv[1], kModes[mode]) == 0; ++i) {
      MeasureDepth(&side, kModes[mode], atoi(argv[i]), strtod(argv[2], NULL) * 1e-6);
    }
  }
  if (strcmp(argv[1], "memory") == 0) {
    side.mode = kPosted;
    MeasureMemory(&side, atoi(argv[2]));
  }
  Finish();
  return 0;
}
