/* Ping-pong latency and windowed bandwidth, one way and both, between pairs of ranks (0 and 1, 2
 * and 3, ...), after OSU's osu_latency, osu_bw and osu_bibw.
 *
 *   p2p MEMORY METRICS BUFFERS BATCH_MICROSECONDS BYTES...
 *
 * MEMORY is private, heap, device, or staged: device memory that the program itself copies through
 * pinned host memory. METRICS are some of "latency",
 * "bandwidth" and "bidirectional", with commas between, and BUFFERS some of
 *
 * - "separate": one whole-paged buffer to send and another to receive, which all messages share,
 *   those of a window of 64 too, and which nobody touches, as in OSU's;
 * - "touched": one buffer for both ways and another for each message of a window; the sender
 *   rewrites every byte before it sends and the receiver looks at every byte, both within the time
 *   that is measured;
 * - "untouched": the same, and neither does.
 *
 * The even rank of each pair prints, for each size and each of BUFFERS, "latency BUFFERS BYTES
 * MICROSECONDS" (one way), "bandwidth BUFFERS BYTES MEGABYTES_PER_SECOND" (10^6) and "bidirectional
 * ..." (the sum of both ways), each the median of several batches of about the given length.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kMaxWindow = 64, kMinWindow = 8, kWindowBytes = 16 << 20, kPageBytes = 4096 };
enum { kWarmUpRounds = 100 };
static const double kWarmUpSeconds = 0.5;

typedef struct {
  char* outgoing;
  char* incoming; /* as much, for the data that come in while `outgoing` goes out */
  char* staging;  /* host memory for both, or null */
} Buffers;

typedef struct {
  int sends_first; /* the even rank of the pair */
  int peer;
  int touch;
  size_t size;
  int window;
  size_t distance; /* from one message's place in a window to the next one's */
  Buffers at;      /* those that are measured */
  char* reply;     /* where the answer to a message comes in, and goes out */
  char* answer;
} Pair;

typedef struct {
  const char* name;
  int separate;
  int touch;
} Use;

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

/* Where the message of a buffer travels from or to. */
static char* HostOf(const Pair* pair, char* buffer) {
  return pair->at.staging == NULL ? buffer : pair->at.staging + (buffer - pair->at.outgoing);
}

static void Post(const Pair* pair, char* buffer, Request* request) {
  StartReceive(HostOf(pair, buffer), pair->size, pair->peer, request);
}

static void Ship(const Pair* pair, char* buffer, int value, Request* request) {
  char* host = HostOf(pair, buffer);
  Write(pair, buffer, value);
  if (host != buffer) {
    Copy(host, buffer, pair->size);
  }
  StartSend(host, pair->size, pair->peer, request);
}

static void Take(const Pair* pair, char* buffer, int value) {
  char* host = HostOf(pair, buffer);
  if (host != buffer) {
    Copy(buffer, host, pair->size);
  }
  Read(pair, buffer, value);
}

static void PingPong(const Pair* pair, int round) {
  for (int step = 0; step < 2; ++step) {
    const int sends = pair->sends_first == (step == 0);
    char* buffer = sends ? pair->at.outgoing : pair->reply;
    char* host = HostOf(pair, buffer);
    if (sends) {
      Write(pair, buffer, round + step);
      if (host != buffer) {
        Copy(host, buffer, pair->size);
      }
      Send(host, pair->size, pair->peer);
    } else {
      Receive(host, pair->size, pair->peer);
      Take(pair, buffer, round + step);
    }
  }
}

/* One rank sends a window of messages; the other answers it with eight bytes. */
static void Window(const Pair* pair, int round) {
  Request requests[kMaxWindow];
  char* buffers = pair->sends_first ? pair->at.outgoing : pair->reply;
  for (int i = 0; i < pair->window; ++i) {
    char* buffer = buffers + (size_t)i * pair->distance;
    if (pair->sends_first) {
      Ship(pair, buffer, round + i, &requests[i]);
    } else {
      Post(pair, buffer, &requests[i]);
    }
  }
  WaitAll(pair->window, requests);
  if (pair->sends_first) {
    Receive(pair->answer, 8, pair->peer);
    return;
  }
  for (int i = 0; i < pair->window; ++i) {
    Take(pair, buffers + (size_t)i * pair->distance, round + i);
  }
  Send(pair->answer, 8, pair->peer);
}

/* Both send a window, and receive one. */
static void Windows(const Pair* pair, int round) {
  Request requests[2 * kMaxWindow];
  for (int i = 0; i < pair->window; ++i) {
    Post(pair, pair->at.incoming + (size_t)i * pair->distance, &requests[i]);
  }
  for (int i = 0; i < pair->window; ++i) {
    Ship(pair, pair->at.outgoing + (size_t)i * pair->distance, round + i,
         &requests[pair->window + i]);
  }
  WaitAll(2 * pair->window, requests);
  for (int i = 0; i < pair->window; ++i) {
    Take(pair, pair->at.incoming + (size_t)i * pair->distance, round + i);
  }
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

/* Seconds a round takes: the median over batches. The warm-up also tells how long one takes. */
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
  return Median(batches, kBatches);
}

/* Where processes outnumber cores, it takes the kernel some time to find a good place for each. */
static void WarmUp(const Pair* pair) {
  const double end = Now() + kWarmUpSeconds;
  while (Agree(pair, Now() < end)) {
    (void)Repeat(pair, PingPong, kWarmUpRounds);
  }
}

/* Returns 1 if `names`, with commas between, has this one. */
static int Has(const char* names, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = names; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
      return 1;
    }
  }
  return 0;
}

static void MeasureUse(Pair* pair, const Use* use, const char* metrics, double batch_s) {
  static const struct {
    const char* name;
    void (*round)(const Pair*, int);
    int ways;
  } kMetrics[] = {
      {"latency", PingPong, 0}, {"bandwidth", Window, 1}, {"bidirectional", Windows, 2}};
  for (size_t i = 0; i < sizeof(kMetrics) / sizeof(kMetrics[0]); ++i) {
    if (!Has(metrics, kMetrics[i].name)) {
      continue;
    }
    Barrier();
    const double round_s = Measure(pair, kMetrics[i].round, batch_s);
    const double moved = (double)kMetrics[i].ways * pair->window * (double)pair->size;
    if (pair->sends_first) {
      printf("%s %s %zu %.4f\n", kMetrics[i].name, use->name, pair->size,
             moved == 0 ? round_s / 2 * 1e6 : moved / round_s / 1e6);
      fflush(stdout);
    }
  }
}

/* Messages of a window that have a place each: what caches hold must not be all that counts. */
static int WindowFor(size_t size) {
  const size_t fitting = kWindowBytes / size;
  return fitting > kMaxWindow ? kMaxWindow : fitting < kMinWindow ? kMinWindow : (int)fitting;
}

/* Both begin pages. */
static Buffers AllocateBoth(const char* memory, size_t bytes) {
  const size_t each = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int staged = strcmp(memory, "staged") == 0;
  Buffers both = {.outgoing = Filled(staged ? "device" : memory, 2 * each, 1)};
  both.incoming = both.outgoing + each;
  both.staging = staged ? Filled("pinned", 2 * each, 1) : NULL;
  return both;
}

/* Every use that is asked for, of the pair's size. */
static void MeasureSize(Pair* pair, const Buffers* separate, const Buffers* windows,
                        const char* metrics, const char* uses, double batch_s) {
  static const Use kUses[] = {{"separate", 1, 0}, {"touched", 0, 1}, {"untouched", 0, 0}};
  for (size_t i = 0; i < sizeof(kUses) / sizeof(kUses[0]); ++i) {
    if (!Has(uses, kUses[i].name)) {
      continue;
    }
    const int apart = kUses[i].separate;
    pair->touch = kUses[i].touch;
    pair->window = apart ? kMaxWindow : WindowFor(pair->size);
    pair->distance = apart ? 0 : pair->size;
    pair->at = apart ? *separate : *windows;
    pair->reply = apart ? pair->at.incoming : pair->at.outgoing;
    MeasureUse(pair, &kUses[i], metrics, batch_s);
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  if (argc < 6 || ranks % 2 != 0) {
    fprintf(stderr,
            "usage: p2p MEMORY METRICS BUFFERS BATCH_MICROSECONDS BYTES..., on an even "
            "number of ranks\n");
    return 2;
  }
  const size_t largest = LargestSize(argc, argv, 5, 1);
  size_t window_bytes = kPageBytes;
  for (int i = 5; i < argc && strcmp(argv[3], "separate") != 0; ++i) {
    const size_t size = strtoull(argv[i], NULL, 10);
    const size_t bytes = size * (size_t)WindowFor(size);
    window_bytes = bytes > window_bytes ? bytes : window_bytes;
  }
  const Buffers separate = AllocateBoth(argv[1], largest);
  const Buffers windows = AllocateBoth(argv[1], window_bytes);
  Pair pair = {.sends_first = rank % 2 == 0, .peer = rank ^ 1, .size = 8, .at = separate};
  pair.reply = separate.incoming;
  pair.answer = Filled(strcmp(argv[1], "staged") == 0 ? "pinned" : argv[1], kPageBytes, 1);
  Barrier();
  WarmUp(&pair);
  for (int i = 5; i < argc; ++i) {
    pair.size = strtoull(argv[i], NULL, 10);
    MeasureSize(&pair, &separate, &windows, argv[2], argv[3], strtod(argv[4], NULL) * 1e-6);
  }
  Barrier();
  Finish();
  return 0;
}
