/* Measures what MPI adds to ferry.h: the same messages by MPI's calls and by ferry.h's, in turns,
 * between the same two ranks of one process each.
 *
 *   overhead private|allocated BATCH_MICROSECONDS BYTES...
 *
 * Rank 0 prints "latency BYTES MPI FERRY" (microseconds one way, blocking calls) and "window BYTES
 * MPI FERRY" (microseconds a message, in windows of 64 nonblocking ones), medians of batches of
 * about the given length.
 */
#include "benchmarks/mpi/pair.h"
#include "ferry/ferry.h"

enum { kTurns = 15, kWays = 2 };

#define FERRY_CHECK(call)                                               \
  do {                                                                  \
    if ((call) != FERRY_SUCCESS) {                                      \
      fprintf(stderr, "overhead: %s: %s\n", #call, ferry_last_error()); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

static void MpiPingPong(const Side* side) {
  if (Leads(side)) {
    Send(side->out, side->size, Peer(side));
    Receive(side->in, side->size, Peer(side));
  } else {
    Receive(side->in, side->size, Peer(side));
    Send(side->out, side->size, Peer(side));
  }
}

static void FerryPingPong(const Side* side) {
  if (Leads(side)) {
    FERRY_CHECK(ferry_send(side->out, side->size, Peer(side), kTag));
    FERRY_CHECK(ferry_recv(side->in, side->size, Peer(side), kTag, NULL));
  } else {
    FERRY_CHECK(ferry_recv(side->in, side->size, Peer(side), kTag, NULL));
    FERRY_CHECK(ferry_send(side->out, side->size, Peer(side), kTag));
  }
}

static void MpiWindow(const Side* side) { ExchangeWindow(side, 0); }

static void FerryWindow(const Side* side) {
  ferry_request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    FERRY_CHECK(Leads(side) ? ferry_isend(side->out, side->size, Peer(side), kTag, &requests[i])
                            : ferry_irecv(side->in, side->size, Peer(side), kTag, &requests[i]));
  }
  FERRY_CHECK(ferry_waitall(kWindow, requests, NULL));
  char answer = 0;
  FERRY_CHECK(Leads(side) ? ferry_recv(&answer, 0, Peer(side), kTag, NULL)
                          : ferry_send(&answer, 0, Peer(side), kTag));
}

typedef void (*Round)(const Side*);

static double Repeat(const Side* side, Round round, int rounds) {
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    round(side);
  }
  return (Now() - start) / rounds;
}

static void CheckRound(const Side* side, Round round, int receives) {
  memset(side->in, 0x55, side->size);
  FillBytes(side->out, side->rank, 0, side->size);
  round(side);
  if (receives) {
    CompareBytes(side, side->in, Peer(side), 0, side->size);
  }
}

/* Prints the medians of both ways, of rounds with `messages` messages one after the other. */
static void Compare(const char* what, const Side* side, const Round ways[kWays], double batch_s,
                    int messages) {
  (void)Repeat(side, ways[1], 100);
  const double wanted = batch_s / Repeat(side, ways[1], 100);
  const int rounds =
      (int)FromRank0(wanted < kMaxRounds ? (int)wanted + 1 : kMaxRounds, side->rank, side->ranks);
  double times[kWays][kTurns];
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int way = 0; way < kWays; ++way) {
      times[way][turn] = Repeat(side, ways[way], rounds) / messages * 1e6;
    }
  }
  if (side->rank == 0) {
    printf("%s %zu %.5f %.5f\n", what, side->size, Median(times[0], kTurns),
           Median(times[1], kTurns));
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  static const Round kPingPong[kWays] = {MpiPingPong, FerryPingPong};
  static const Round kWindows[kWays] = {MpiWindow, FerryWindow};
  Side side = {0};
  Start(&side.rank, &side.ranks);
  if (argc < 4 || side.ranks != 2) {
    fprintf(stderr, "usage: overhead private|allocated BATCH_MICROSECONDS BYTES..., on 2 ranks\n");
    return 2;
  }
  const size_t largest = LargestSize(argc, argv, 3, 1);
  side.out = PatternMemory(argv[1], largest);
  side.in = PatternMemory(argv[1], largest);
  const double batch_s = strtod(argv[2], NULL) * 1e-6;
  for (int i = 3; i < argc; ++i) {
    side.size = strtoull(argv[i], NULL, 10);
    for (int way = 0; way < kWays; ++way) {
      CheckRound(&side, kPingPong[way], 1);
      CheckRound(&side, kWindows[way], !Leads(&side));
    }
    Compare("latency", &side, kPingPong, batch_s, 2);
    Compare("window", &side, kWindows, batch_s, kWindow);
  }
  Barrier();
  Finish();
  return 0;
}
