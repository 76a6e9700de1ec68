/* Ping-pong latency and windowed bandwidth between pairs of ranks (0 and 1, 2 and 3, ...), after
 * OSU's osu_latency and osu_bw.
 *
 *   p2p MEMORY bind|float BATCH_MICROSECONDS BYTES...
 *
 * MEMORY is private, heap or device. "bind" gives each rank a core of its own. The even rank of
 * each pair prints, for each size, "latency BUFFERS BYTES MICROSECONDS" (one way) and "bandwidth
 * BUFFERS BYTES MEGABYTES_PER_SECOND" (10^6), each the median of several batches of about the given
 * length. BUFFERS is "touched" when the sender rewrites every byte before it sends and the receiver
 * looks at every byte, both within the time that is measured, and "untouched" when neither does.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/common/shim.h"

enum { kBatches = 7, kMaxWindow = 64, kMinWindow = 8, kWindowBytes = 16 << 20, kPageBytes = 4096 };
enum { kMaxRounds = 100000, kWarmUpRounds = 100 };
static const double kWarmUpSeconds = 0.5;

typedef struct {
  int sends_first; /* the even rank of the pair */
  int peer;
  int touch;
  size_t size;
  int window;
  char* buffers; /* `window` of them */
  char* answer;
} Pair;

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

static void Write(const Pair* pair, char* buffer, int value) {
  if (pair->touch) {
    memset(buffer, value & 0xff, pair->size);
  }
}

/* Every byte is compared with its neighbour: as fast a way to read them all as there is. */
static void Read(const Pair* pair, const char* buffer, int value) {
  if (pair->touch &&
      (buffer[0] != (char)(value & 0xff) || memcmp(buffer, buffer + 1, pair->size - 1) != 0)) {
    fprintf(stderr, "p2p: wrong data in a message of %zu bytes\n", pair->size);
    exit(1);
  }
}

static void PingPong(const Pair* pair, int round) {
  char* buffer = pair->buffers;
  if (pair->sends_first) {
    Write(pair, buffer, round);
    Send(buffer, pair->size, pair->peer);
    Receive(buffer, pair->size, pair->peer);
    Read(pair, buffer, round + 1);
  } else {
    Receive(buffer, pair->size, pair->peer);
    Read(pair, buffer, round);
    Write(pair, buffer, round + 1);
    Send(buffer, pair->size, pair->peer);
  }
}

/* One rank sends a window of messages; the other answers it with eight bytes. */
static void Window(const Pair* pair, int round) {
  Request requests[kMaxWindow];
  for (int i = 0; i < pair->window; ++i) {
    char* buffer = pair->buffers + (size_t)i * pair->size;
    if (pair->sends_first) {
      Write(pair, buffer, round + i);
      StartSend(buffer, pair->size, pair->peer, &requests[i]);
    } else {
      StartReceive(buffer, pair->size, pair->peer, &requests[i]);
    }
  }
  WaitAll(pair->window, requests);
  if (pair->sends_first) {
    Receive(pair->answer, 8, pair->peer);
    return;
  }
  for (int i = 0; i < pair->window; ++i) {
    Read(pair, pair->buffers + (size_t)i * pair->size, round + i);
  }
  Send(pair->answer, 8, pair->peer);
}

/* The sender's number of rounds, so that both ranks of a pair do the same. */
static int Agree(const Pair* pair, int rounds) {
  int64_t* word = (int64_t*)(void*)pair->answer;
  if (pair->sends_first) {
    *word = rounds;
    Send(word, sizeof(*word), pair->peer);
  } else {
    Receive(word, sizeof(*word), pair->peer);
  }
  return (int)*word;
}

static double Repeat(const Pair* pair, void (*round)(const Pair*, int), int rounds) {
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    round(pair, i);
  }
  return (Now() - start) / rounds;
}

/* Seconds a round takes: the median over batches. What warms up also says how long one takes. */
static double Measure(const Pair* pair, void (*round)(const Pair*, int), double batch_s) {
  int rounds = 1;
  double round_s = Repeat(pair, round, rounds);
  for (int again = 1; again && rounds < kMaxRounds;) {
    again = Agree(pair, rounds * round_s < batch_s / 4);
    rounds *= again ? 4 : 1;
    round_s = again ? Repeat(pair, round, rounds) : round_s;
  }
  rounds = Agree(pair, batch_s / round_s < kMaxRounds ? (int)(batch_s / round_s) + 1 : kMaxRounds);
  double batches[kBatches];
  for (int batch = 0; batch < kBatches; ++batch) {
    batches[batch] = Repeat(pair, round, rounds);
  }
  qsort(batches, kBatches, sizeof(batches[0]), CompareDoubles);
  return batches[kBatches / 2];
}

/* Where processes outnumber cores, it takes the kernel some time to find a good place for each. */
static void WarmUp(Pair* pair) {
  const double end = Now() + kWarmUpSeconds;
  pair->touch = 0;
  while (Agree(pair, Now() < end)) {
    (void)Repeat(pair, PingPong, kWarmUpRounds);
  }
}

static void MeasureSize(Pair* pair, double batch_s) {
  const char* names[] = {"untouched", "touched"};
  for (pair->touch = 1; pair->touch >= 0; --pair->touch) {
    Barrier();
    const double latency_s = Measure(pair, PingPong, batch_s) / 2;
    Barrier();
    const double window_s = Measure(pair, Window, batch_s);
    if (pair->sends_first) {
      printf("latency %s %zu %.4f\nbandwidth %s %zu %.2f\n", names[pair->touch], pair->size,
             latency_s * 1e6, names[pair->touch], pair->size,
             pair->window * (double)pair->size / window_s / 1e6);
      fflush(stdout);
    }
  }
}

static int WindowFor(size_t size) {
  const size_t fitting = kWindowBytes / size;
  return fitting > kMaxWindow ? kMaxWindow : fitting < kMinWindow ? kMinWindow : (int)fitting;
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  if (argc < 5 || ranks % 2 != 0) {
    fprintf(
        stderr,
        "usage: p2p MEMORY bind|float BATCH_MICROSECONDS BYTES..., on an even number of ranks\n");
    return 2;
  }
  if (strcmp(argv[2], "bind") == 0) {
    Bind(rank, ranks);
  }
  size_t all_bytes = 0;
  for (int i = 4; i < argc; ++i) {
    const size_t size = strtoull(argv[i], NULL, 10);
    if (size == 0) {
      fprintf(stderr, "p2p: \"%s\" is no size\n", argv[i]);
      return 2;
    }
    const size_t bytes = size * (size_t)WindowFor(size);
    all_bytes = bytes > all_bytes ? bytes : all_bytes;
  }
  Pair pair = {.sends_first = rank % 2 == 0, .peer = rank ^ 1};
  pair.buffers = Allocate(argv[1], (all_bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  pair.answer = Allocate(argv[1], kPageBytes);
  if (pair.buffers == NULL || pair.answer == NULL) {
    fprintf(stderr, "p2p: no memory\n");
    return 1;
  }
  memset(pair.buffers, 1, all_bytes);
  memset(pair.answer, 1, kPageBytes);
  pair.size = 8;
  Barrier();
  WarmUp(&pair);
  for (int i = 4; i < argc; ++i) {
    pair.size = strtoull(argv[i], NULL, 10);
    pair.window = WindowFor(pair.size);
    MeasureSize(&pair, strtod(argv[3], NULL) * 1e-6);
  }
  Barrier();
  Finish();
  return 0;
}
