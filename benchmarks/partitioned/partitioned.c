/* Partitioned messages between two ranks, beside plain ones of the same bytes.
 *
 *   partitioned pair  private|allocated THREADS BATCH_MICROSECONDS CELL...
 *   partitioned late  private|allocated NOISE_MICROSECONDS BATCH_MICROSECONDS CELL...
 *   partitioned rate  THREADS
 *   partitioned inits
 *
 * A CELL is BYTES/PARTITIONS, BYTES/plain (MPI_Send, MPI_Recv) or BYTES/persistent (MPI_Send_init,
 * MPI_Recv_init). Rank 0 prints "CELL FIGURE":
 *
 * pair: microseconds one way, of ping-pongs. The threads of the rank that sends ready a share of
 * the partitions each, and meet; a plain message leaves once they have met. late: microseconds from
 * the last partition's readying, or the plain send, to the receiver's end of its wait, when the
 * last partition is late. rate: millions of MPI_Pready a second while the receiver has not started,
 * all threads together ("ready FIGURE"). inits: microseconds of an init ("psend_init FIGURE").
 *
 * Nothing here is Ferry's: each MPI library's own mpi.h compiles it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/mpi/pattern.h"
#include "benchmarks/partitioned/threads.h"

enum { kPlain = 0, kPersistent = -1, kTimes = 31, kInits = 16 };
enum { kRatePartitions = 4096, kRateBytes = 8, kRateTag = kTag + 1 };

typedef struct {
  Side side; /* rank, bytes, buffers */
  int peer;
  int partitions; /* or kPlain, kPersistent */
  Threads threads;
  MPI_Request send;
  MPI_Request receive;
  double noise_s;
} Bench;

/* ---- A message --------------------------------------------------------------------------------
 */

/* The first partition of a thread's share; of the one behind the last, their number. */
static int FirstOf(const Bench* bench, int thread, int partitions) {
  return (int)((int64_t)partitions * thread / bench->threads.count);
}

static void MakeRequests(Bench* bench) {
  Side* const side = &bench->side;
  if (bench->partitions > 0) {
    const MPI_Count count = (MPI_Count)(side->size / (size_t)bench->partitions);
    BENCH_CHECK(MPI_Psend_init(side->out, bench->partitions, count, MPI_BYTE, bench->peer, kTag,
                               MPI_COMM_WORLD, MPI_INFO_NULL, &bench->send));
    BENCH_CHECK(MPI_Precv_init(side->in, bench->partitions, count, MPI_BYTE, bench->peer, kTag,
                               MPI_COMM_WORLD, MPI_INFO_NULL, &bench->receive));
  } else if (bench->partitions == kPersistent) {
    BENCH_CHECK(MPI_Send_init(side->out, (int)side->size, MPI_BYTE, bench->peer, kTag,
                              MPI_COMM_WORLD, &bench->send));
    BENCH_CHECK(MPI_Recv_init(side->in, (int)side->size, MPI_BYTE, bench->peer, kTag,
                              MPI_COMM_WORLD, &bench->receive));
  }
}
static void FreeRequests(Bench* bench) {
  if (bench->partitions != kPlain) {
    BENCH_CHECK(MPI_Request_free(&bench->send));
    BENCH_CHECK(MPI_Request_free(&bench->receive));
  }
}

static void StartReceiving(Bench* bench) {
  if (bench->partitions != kPlain) {
    BENCH_CHECK(MPI_Start(&bench->receive));
  }
}
static void EndReceiving(Bench* bench) {
  if (bench->partitions != kPlain) {
    BENCH_CHECK(MPI_Wait(&bench->receive, MPI_STATUS_IGNORE));
  } else {
    Receive(bench->side.in, bench->side.size, bench->peer);
  }
}

static void ReadyShare(void* context, int thread) {
  const Bench* const bench = context;
  const int end = FirstOf(bench, thread + 1, bench->partitions);
  for (int i = FirstOf(bench, thread, bench->partitions); i < end; ++i) {
    BENCH_CHECK(MPI_Pready(i, bench->send));
  }
}
static void MeetOnly(void* context, int thread) {
  (void)context;
  (void)thread;
}

static void SendOnce(Bench* bench) {
  if (bench->partitions > 0) {
    BENCH_CHECK(MPI_Start(&bench->send));
    Together(&bench->threads, ReadyShare, bench);
    BENCH_CHECK(MPI_Wait(&bench->send, MPI_STATUS_IGNORE));
    return;
  }
  Together(&bench->threads, MeetOnly, bench);
  if (bench->partitions == kPersistent) {
    BENCH_CHECK(MPI_Start(&bench->send));
    BENCH_CHECK(MPI_Wait(&bench->send, MPI_STATUS_IGNORE));
  } else {
    Send(bench->side.out, bench->side.size, bench->peer);
  }
}

/* Ping-pongs in which a receive is always started before the other rank can send. */
static double RepeatPair(void* context, int rounds) {
  Bench* const bench = context;
  if (bench->side.rank == 1) {
    StartReceiving(bench);
  }
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (bench->side.rank == 0) {
      StartReceiving(bench);
      SendOnce(bench);
      EndReceiving(bench);
    } else {
      EndReceiving(bench);
      if (i + 1 < rounds) {
        StartReceiving(bench);
      }
      SendOnce(bench);
    }
  }
  return Now() - start;
}

/* One whose result is compared. */
static void Check(Bench* bench) {
  Side* const side = &bench->side;
  FillBytes(side->out, side->rank, 0, side->size);
  memset(side->in, 0x55, side->size);
  (void)RepeatPair(bench, 1);
  CompareBytes(side, side->in, bench->peer, 0, side->size);
}

/* ---- One late thread --------------------------------------------------------------------------
 */

static void ComputeFor(double seconds) {
  const double end = Now() + seconds;
  while (Now() < end) {
  }
}

/* Rank 0's: all but the last partition are ready, the one that makes the last one takes longer.
 * Returns when that was readied. */
static double SendLate(Bench* bench) {
  double readied = 0;
  if (bench->partitions > 0) {
    BENCH_CHECK(MPI_Start(&bench->send));
    if (bench->partitions > 1) {
      BENCH_CHECK(MPI_Pready_range(0, bench->partitions - 2, bench->send));
    }
    ComputeFor(bench->noise_s);
    readied = Now();
    BENCH_CHECK(MPI_Pready(bench->partitions - 1, bench->send));
    BENCH_CHECK(MPI_Wait(&bench->send, MPI_STATUS_IGNORE));
    return readied;
  }
  ComputeFor(bench->noise_s);
  readied = Now();
  SendOnce(bench);
  return readied;
}

/* Seconds that the receiver waited from the last readying on, the median of so many rounds. Both
 * ranks are on one machine, whose clock they share. */
static double MeasureLate(Bench* bench, int rounds) {
  double* const waited = malloc((size_t)rounds * sizeof(double));
  double arrived = 0;
  if (waited == NULL) {
    exit(1);
  }
  if (bench->side.rank == 1) {
    StartReceiving(bench);
  }
  Barrier();
  for (int i = 0; i < rounds; ++i) {
    if (bench->side.rank == 0) {
      const double readied = SendLate(bench);
      BENCH_CHECK(MPI_Recv(&arrived, 1, MPI_DOUBLE, bench->peer, kTag + 2, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
      waited[i] = arrived - readied;
    } else {
      EndReceiving(bench);
      arrived = Now();
      if (i + 1 < rounds) {
        StartReceiving(bench);
      }
      BENCH_CHECK(MPI_Send(&arrived, 1, MPI_DOUBLE, bench->peer, kTag + 2, MPI_COMM_WORLD));
    }
  }
  const double median = bench->side.rank == 0 ? Median(waited, (size_t)rounds) : 0;
  free(waited);
  return median;
}

/* ---- How fast partitions are readied ----------------------------------------------------------
 */

static double share_began[kMostThreads];
static double share_ended[kMostThreads];

/* All but the last partition of all, which may let a library begin. */
static void ReadyMany(void* context, int thread) {
  const Bench* const bench = context;
  const int end = FirstOf(bench, thread + 1, kRatePartitions - 1);
  const int first = FirstOf(bench, thread, kRatePartitions - 1);
  share_began[thread] = Now();
  for (int i = first; i < end; ++i) {
    BENCH_CHECK(MPI_Pready(i, bench->send));
  }
  share_ended[thread] = Now();
}

/* Without taking a core from the other rank's threads meanwhile. */
static void SleepUntilWord(const Bench* bench) {
  const struct timespec pause = {0, 200000};
  int has_come = 0;
  while (!has_come) {
    (void)nanosleep(&pause, NULL);
    BENCH_CHECK(MPI_Iprobe(bench->peer, kRateTag, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE));
  }
  BENCH_CHECK(
      MPI_Recv(NULL, 0, MPI_BYTE, bench->peer, kRateTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Rank 0: seconds from the first thread's begin to the last one's end. */
static double ReadyRound(Bench* bench) {
  double began = 0;
  double ended = 0;
  BENCH_CHECK(MPI_Start(&bench->send));
  Together(&bench->threads, ReadyMany, bench);
  for (int i = 0; i < bench->threads.count; ++i) {
    began = i == 0 || share_began[i] < began ? share_began[i] : began;
    ended = i == 0 || share_ended[i] > ended ? share_ended[i] : ended;
  }
  BENCH_CHECK(MPI_Send(NULL, 0, MPI_BYTE, bench->peer, kRateTag, MPI_COMM_WORLD));
  BENCH_CHECK(MPI_Pready(kRatePartitions - 1, bench->send));
  BENCH_CHECK(MPI_Wait(&bench->send, MPI_STATUS_IGNORE));
  return ended - began;
}

static void MeasureRate(Bench* bench) {
  const size_t bytes = (size_t)kRatePartitions * kRateBytes;
  double rounds[kTimes];
  /* So that the receiver's memory can be written directly, but not before it has started. */
  char* const buffer = PatternMemory("allocated", bytes);
  if (bench->side.rank == 0) {
    BENCH_CHECK(MPI_Psend_init(buffer, kRatePartitions, kRateBytes, MPI_BYTE, bench->peer, kTag,
                               MPI_COMM_WORLD, MPI_INFO_NULL, &bench->send));
  } else {
    BENCH_CHECK(MPI_Precv_init(buffer, kRatePartitions, kRateBytes, MPI_BYTE, bench->peer, kTag,
                               MPI_COMM_WORLD, MPI_INFO_NULL, &bench->receive));
  }
  for (int i = 0; i < kTimes; ++i) {
    Barrier();
    if (bench->side.rank == 0) {
      FillBytes(buffer, i, 0, bytes);
      rounds[i] = ReadyRound(bench);
    } else {
      SleepUntilWord(bench);
      BENCH_CHECK(MPI_Start(&bench->receive));
      BENCH_CHECK(MPI_Wait(&bench->receive, MPI_STATUS_IGNORE));
      CompareBytes(&bench->side, buffer, i, 0, bytes);
    }
  }
  if (bench->side.rank == 0) {
    printf("ready %.5f\n", (kRatePartitions - 1) / Median(rounds, kTimes) * 1e-6);
    fflush(stdout);
  }
  BENCH_CHECK(MPI_Request_free(bench->side.rank == 0 ? &bench->send : &bench->receive));
}

/* ---- The cost of inits ------------------------------------------------------------------------
 */

/* Seconds of an init; the requests are then used once, as the first start may end the setup. */
static double TimeInits(Bench* bench, MPI_Request* requests) {
  Side* const side = &bench->side;
  const double start = Now();
  for (int i = 0; i < kInits; ++i) {
    if (side->rank == 0) {
      BENCH_CHECK(MPI_Psend_init(side->out, bench->partitions, 8, MPI_BYTE, bench->peer, kTag,
                                 MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
    } else {
      BENCH_CHECK(MPI_Precv_init(side->in + (size_t)i * 8 * (size_t)bench->partitions,
                                 bench->partitions, 8, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &requests[i]));
    }
  }
  return (Now() - start) / kInits;
}

static void UseOnce(const Bench* bench, MPI_Request* requests) {
  BENCH_CHECK(MPI_Startall(kInits, requests));
  for (int i = 0; bench->side.rank == 0 && i < kInits; ++i) {
    BENCH_CHECK(MPI_Pready_range(0, bench->partitions - 1, requests[i]));
  }
  BENCH_CHECK(MPI_Waitall(kInits, requests, MPI_STATUSES_IGNORE));
}

static void MeasureInits(Bench* bench) {
  enum { kPartitions = 8 };
  MPI_Request requests[kInits];
  double inits[kTimes];
  double theirs = 0;
  bench->partitions = kPartitions;
  bench->side.out = PatternMemory("private", kInits * kPartitions * 8);
  bench->side.in = PatternMemory("private", kInits * kPartitions * 8);
  for (int i = 0; i < kTimes; ++i) {
    Barrier();
    inits[i] = TimeInits(bench, requests);
    UseOnce(bench, requests);
    for (int at = 0; at < kInits; ++at) {
      BENCH_CHECK(MPI_Request_free(&requests[at]));
    }
  }
  const double mine = Median(inits, kTimes);
  if (bench->side.rank == 1) {
    Send(&mine, sizeof(mine), 0);
    return;
  }
  Receive(&theirs, sizeof(theirs), 1);
  printf("psend_init %.5f\nprecv_init %.5f\n", mine * 1e6, theirs * 1e6);
  fflush(stdout);
}

/* ---- Cells ------------------------------------------------------------------------------------
 */

/* Sets bytes and partitions; 0 if the text is no cell. */
static int ReadCell(Bench* bench, const char* text) {
  char* end = NULL;
  bench->side.size = strtoull(text, &end, 10);
  if (bench->side.size == 0 || *end != '/') {
    return 0;
  }
  if (strcmp(end, "/plain") == 0) {
    bench->partitions = kPlain;
    return 1;
  }
  if (strcmp(end, "/persistent") == 0) {
    bench->partitions = kPersistent;
    return 1;
  }
  const char* const number = end + 1;
  const unsigned long partitions = strtoul(number, &end, 10);
  bench->partitions = (int)partitions;
  return partitions > 0 && partitions <= bench->side.size && *end == '\0' &&
         bench->side.size % partitions == 0;
}

/* The seconds of a figure. */
static double MeasureCell(Bench* bench, int is_late, double batch_s) {
  if (!is_late) {
    return MeasureTogether(RepeatPair, bench, batch_s, bench->side.rank, bench->side.ranks) / 2;
  }
  const double rounds = kBatches * batch_s / bench->noise_s;
  return MeasureLate(bench, rounds < 11 ? 11 : rounds > 1001 ? 1001 : (int)rounds);
}

static void MeasureCells(Bench* bench, int is_late, double batch_s, int count, char** cells) {
  for (int i = 0; i < count; ++i) {
    (void)ReadCell(bench, cells[i]);
    MakeRequests(bench);
    Check(bench);
    const double seconds = MeasureCell(bench, is_late, batch_s);
    Check(bench);
    FreeRequests(bench);
    if (bench->side.rank == 0) {
      printf("%s %.5f\n", cells[i], seconds * 1e6);
      fflush(stdout);
    }
  }
}

static int Usage(void) {
  fprintf(stderr,
          "usage: partitioned pair|late private|allocated THREADS|NOISE_US BATCH_US CELL...\n"
          "       partitioned rate THREADS\n       partitioned inits\n"
          "on two ranks, with 1 to %d threads; a CELL is BYTES/PARTITIONS, BYTES/plain or "
          "BYTES/persistent\n",
          kMostThreads);
  return 2;
}

/* Memory for the largest cell; 0 if one is none. */
static int MakeBuffers(Bench* bench, const char* memory, int count, char** cells) {
  size_t most = 0;
  for (int i = 0; i < count; ++i) {
    if (!ReadCell(bench, cells[i])) {
      return 0;
    }
    most = bench->side.size > most ? bench->side.size : most;
  }
  bench->side.out = PatternMemory(memory, most);
  bench->side.in = PatternMemory(memory, most);
  return count > 0;
}

static void Initialize(Bench* bench, int threads) {
  const int wanted = threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int level = 0;
  BENCH_CHECK(MPI_Init_thread(NULL, NULL, wanted, &level));
  BENCH_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &bench->side.rank));
  BENCH_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &bench->side.ranks));
  bench->peer = 1 - bench->side.rank;
  if (level < wanted) {
    fprintf(stderr, "partitioned: the library has no MPI_THREAD_MULTIPLE\n");
    exit(1);
  }
  if (threads == 1) { /* else the threads shall have all cores */
  }
}

int main(int argc, char** argv) {
  Bench bench = {0};
  int threads = 1;
  const char* const mode = argc > 1 ? argv[1] : "";
  const int is_rate = strcmp(mode, "rate") == 0 && argc == 3;
  const int is_late = strcmp(mode, "late") == 0 && argc > 5;
  const int is_pair = strcmp(mode, "pair") == 0 && argc > 5;
  if (is_rate || is_pair) {
    threads = atoi(argv[is_rate ? 2 : 3]);
  }
  if (threads < 1 || threads > kMostThreads) {
    return Usage();
  }
  Initialize(&bench, threads);
  if (bench.side.ranks != 2 || !(is_rate || is_late || is_pair || strcmp(mode, "inits") == 0)) {
    return Usage();
  }
  if ((is_late || is_pair) && !MakeBuffers(&bench, argv[2], argc - 5, argv + 5)) {
    return Usage();
  }
  bench.noise_s = is_late ? strtod(argv[3], NULL) * 1e-6 : 0;
  if (is_late && !(bench.noise_s > 0)) {
    return Usage();
  }
  StartThreads(&bench.threads, threads);
  if (is_rate) {
    MeasureRate(&bench);
  } else if (is_late || is_pair) {
    MeasureCells(&bench, is_late, strtod(argv[4], NULL) * 1e-6, argc - 5, argv + 5);
  } else {
    MeasureInits(&bench);
  }
  EndThreads(&bench.threads);
  Barrier();
  Finish();
  return 0;
}
