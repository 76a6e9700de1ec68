/* Measures the times of OpenSHMEM's calls between two PEs of one node.
 *
 *   shmem pair|group|wait BATCH_MICROSECONDS BYTES...
 *
 * pair: puts, gets, atomics and signals; group: barriers and collectives; wait: the CPU time of a
 * PE that waits. PE 0 prints "WHAT BYTES FIGURE" (nanoseconds; rate: millions of puts a second;
 * wait: milliseconds), each figure a median over batches of about the given length. What arrives is
 * compared with what was sent, outside the time that is measured. Every failure ends the job with a
 * message.
 *
 * Nothing here is Ferry's: each OpenSHMEM's own shmem.h compiles it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "benchmarks/shmem/calls.h"

enum { kWindow = 64, kAlignment = 4096, kWaitMilliseconds = 500 };

/* ---- For timing.h: a word from one PE to the other ------------------------------------------- */
static int64_t mailbox;

static void Send(const void* word, size_t size, int peer) {
  shmem_putmem(&mailbox, word, size, peer);
  shmem_barrier_all();
  shmem_barrier_all(); /* The other one has read it. */
}
static void Receive(void* word, size_t size, int peer) {
  (void)peer;
  shmem_barrier_all();
  memcpy(word, &mailbox, size);
  shmem_barrier_all();
}

#include "benchmarks/common/timing.h"

/* ---- The PEs --------------------------------------------------------------------------------- */
/* Static data, which the other PE writes. */
static uint64_t signal_word;
static unsigned long counter;
static double shares[kPes];

typedef struct {
  int me;
  int other;
  size_t size;
  char* in;       /* symmetric, room for both PEs' contributions */
  char* out;      /* symmetric: of collectives, which some libraries want so */
  char* source;   /* private */
  char* copy;     /* private */
  uint64_t turn;  /* of the ping-pong */
  uint64_t added; /* to the counter, by this PE */
  uint64_t seen;  /* in the counter, when both write it */
} Side;

static void Fail(const Side* side, const char* what) {
  fprintf(stderr, "benchmark: PE %d, %zu bytes: wrong %s\n", side->me, side->size, what);
  shmem_global_exit(1);
}

static double MeanOverPes(const Side* side, double value) {
  shares[side->me] = value;
  shmem_double_p(&shares[side->me], value, side->other);
  shmem_barrier_all();
  const double mean = (shares[0] + shares[1]) / kPes;
  shmem_barrier_all();
  return mean;
}

/* The byte that a PE has at a place: bytes left over from other sizes differ. */
static char Expected(int pe, size_t size, size_t at) {
  return (char)(pe * 31 + (int)size * 5 + (int)(at * 7 + at / 251) + 1);
}
static void Fill(char* buffer, int pe, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    buffer[i] = Expected(pe, size, i);
  }
}
static void Compare(const Side* side, const char* buffer, int pe, const char* what) {
  for (size_t i = 0; i < side->size; ++i) {
    if (buffer[i] != Expected(pe, side->size, i)) {
      Fail(side, what);
    }
  }
}

/* ---- A round of each thing ------------------------------------------------------------------- */

static inline void Memcpy(Side* side) {
  memcpy(side->copy, side->source, side->size);
  /* So that the compiler neither leaves it out nor joins it with the next. */
  __asm__("" ::"r"(side->copy) : "memory");
}
static inline void Put(Side* side) {
  shmem_putmem(side->in, side->source, side->size, side->other);
  shmem_quiet();
}
static inline void Get(Side* side) { shmem_getmem(side->copy, side->in, side->size, side->other); }
static inline void PutOne(Side* side) {
  shmem_uint64_p((uint64_t*)side->in, *(const uint64_t*)side->source, side->other);
  shmem_quiet();
}
static inline void GetOne(Side* side) {
  *(uint64_t*)side->copy = shmem_uint64_g((const uint64_t*)side->in, side->other);
}
static inline void PutWindow(Side* side) {
  for (int at = 0; at < kWindow; ++at) {
    shmem_put64_nbi((uint64_t*)side->in + at, (uint64_t*)side->source + at, 1, side->other);
  }
  shmem_quiet();
}

static inline void FetchAdd(Side* side) {
  shmem_ulong_atomic_fetch_add(&counter, 1, side->other);
  side->added++;
}
static inline void CompareSwap(Side* side) {
  const unsigned long old = side->added;
  if (shmem_ulong_atomic_compare_swap(&counter, old, old + 1, side->other) != old) {
    Fail(side, "value of compare-swap");
  }
  side->added++;
}
static inline void SharedFetchAdd(Side* side) {
  shmem_ulong_atomic_fetch_add(&counter, 1, kRoot);
  side->added++;
}
/* An attempt: it fails when the other one was faster. */
static inline void SharedCompareSwap(Side* side) {
  const unsigned long seen = side->seen;
  const unsigned long old = shmem_ulong_atomic_compare_swap(&counter, seen, seen + 1, kRoot);
  side->added += old == seen;
  side->seen = old == seen ? seen + 1 : old;
}

static inline void SignalThereAndBack(Side* side) {
  ++side->turn;
  if (side->me != kRoot) {
    WaitForSignal(&signal_word, side->turn);
  }
  PutSignal(side->in, side->source, side->size, &signal_word, side->turn, side->other);
  if (side->me == kRoot) {
    WaitForSignal(&signal_word, side->turn);
  }
}

static inline void BarrierAll(Side* side) {
  (void)side;
  shmem_barrier_all();
}
static inline void SyncAll(Side* side) {
  (void)side;
  shmem_sync_all();
}
static inline void BroadcastOut(Side* side) { Broadcast(side->in, side->out, side->size); }
static inline void FcollectOut(Side* side) { Fcollect(side->in, side->out, side->size); }
static inline void SumReduceOut(Side* side) {
  SumReduce((float*)side->in, (float*)side->out, side->size / sizeof(float));
}

/* ---- Many rounds, and the seconds they took -------------------------------------------------- */
/* Macros, so that a round is no call. */

/* A round of PE 0's, while PE 1 waits for the end of all of them. */
#define ALONE(round)                                        \
  static double Repeat##round(void* context, int rounds) {  \
    Side* const side = context;                             \
    shmem_barrier_all();                                    \
    const double start = Now();                             \
    for (int i = 0; side->me == kRoot && i < rounds; ++i) { \
      round(side);                                          \
    }                                                       \
    const double seconds = Now() - start;                   \
    shmem_barrier_all();                                    \
    return seconds;                                         \
  }

/* A round of both at once; the mean of their times. */
#define TOGETHER(round)                                    \
  static double Repeat##round(void* context, int rounds) { \
    Side* const side = context;                            \
    shmem_barrier_all();                                   \
    const double start = Now();                            \
    for (int i = 0; i < rounds; ++i) {                     \
      round(side);                                         \
    }                                                      \
    return MeanOverPes(side, Now() - start);               \
  }

/* As OSU's benchmarks do, and benchmarks/mpi: the time within the call, with a barrier between
 * rounds outside of it, on average over PEs. */
#define COLLECTIVE(round)                                  \
  static double Repeat##round(void* context, int rounds) { \
    Side* const side = context;                            \
    double inside_s = 0;                                   \
    shmem_barrier_all();                                   \
    for (int i = 0; i < rounds; ++i) {                     \
      const double start = Now();                          \
      round(side);                                         \
      inside_s += Now() - start;                           \
      shmem_barrier_all();                                 \
    }                                                      \
    return MeanOverPes(side, inside_s);                    \
  }

ALONE(Memcpy)
ALONE(Put)
ALONE(Get)
ALONE(PutOne)
ALONE(GetOne)
ALONE(PutWindow)
ALONE(FetchAdd)
ALONE(CompareSwap)
TOGETHER(SharedFetchAdd)
TOGETHER(SharedCompareSwap)
TOGETHER(SignalThereAndBack)
TOGETHER(BarrierAll)
TOGETHER(SyncAll)
COLLECTIVE(BroadcastOut)
COLLECTIVE(FcollectOut)
COLLECTIVE(SumReduceOut)

/* ---- One after another ----------------------------------------------------------------------- */
static double batch_s;

/* Collective: the figure is `factor` times what a round takes. */
static void Measure(Side* side, const char* what, double (*repeat)(void*, int), double factor) {
  const double round_s = MeasureTogether(repeat, side, batch_s, side->me, kPes);
  if (side->me == kRoot) {
    printf("%s %zu %.5f\n", what, side->size, factor * round_s);
    fflush(stdout);
  }
}

/* The puts have arrived at PE 1, and the gets have brought the same back. */
static void MeasureCopies(Side* side) {
  Fill(side->source, side->me, side->size);
  memset(side->in, 0, side->size);
  Measure(side, "memcpy", RepeatMemcpy, 1e9);
  memset(side->copy, 0, side->size);
  Measure(side, "put", RepeatPut, 1e9);
  if (side->me != kRoot) {
    Compare(side, side->in, kRoot, "put");
  }
  Measure(side, "get", RepeatGet, 1e9);
  if (side->me == kRoot) {
    Compare(side, side->copy, kRoot, "get");
  }
  memset(side->in, 0, side->size);
  shmem_barrier_all();
  Measure(side, "signal", RepeatSignalThereAndBack, 0.5e9);
  Compare(side, side->in, side->other, "put with signal");
  shmem_barrier_all();
}

/* A word by shmem_TYPE_p and shmem_TYPE_g. */
static void MeasureOne(Side* side) {
  side->size = sizeof(uint64_t);
  Fill(side->source, side->me, side->size);
  memset(side->in, 0, side->size);
  memset(side->copy, 0, side->size);
  shmem_barrier_all();
  Measure(side, "p", RepeatPutOne, 1e9);
  Measure(side, "g", RepeatGetOne, 1e9);
  if (side->me == kRoot) {
    Compare(side, side->copy, kRoot, "g");
  } else {
    Compare(side, side->in, kRoot, "p");
  }
  shmem_barrier_all();
}

static void MeasureRate(Side* side) {
  side->size = kWindow * sizeof(uint64_t);
  Fill(side->source, side->me, side->size);
  memset(side->in, 0, side->size);
  shmem_barrier_all();
  const double round_s = MeasureTogether(RepeatPutWindow, side, batch_s, side->me, kPes);
  if (side->me == kRoot) {
    printf("rate 8 %.5f\n", kWindow / round_s / 1e6);
  } else {
    Compare(side, side->in, kRoot, "window of puts");
  }
}

/* Measures on a counter that begins with 0 at both PEs, and looks whether all was counted. */
static void MeasureAtomic(Side* side, const char* what, double (*repeat)(void*, int)) {
  side->added = 0;
  side->seen = 0;
  counter = 0;
  side->size = sizeof(counter);
  shmem_barrier_all();
  Measure(side, what, repeat, 1e9);
  const double mine = (double)counter;
  if (MeanOverPes(side, mine) != MeanOverPes(side, (double)side->added)) {
    Fail(side, what);
  }
}

static void MeasurePair(Side* side, int count, char** sizes) {
  for (int i = 0; i < count; ++i) {
    side->size = strtoull(sizes[i], NULL, 10);
    MeasureCopies(side);
  }
  MeasureOne(side);
  MeasureRate(side);
  MeasureAtomic(side, "fetch_add", RepeatFetchAdd);
  MeasureAtomic(side, "fetch_add_shared", RepeatSharedFetchAdd);
  MeasureAtomic(side, "compare_swap", RepeatCompareSwap);
  MeasureAtomic(side, "compare_swap_shared", RepeatSharedCompareSwap);
}

static void FillAddends(Side* side) {
  for (size_t i = 0; i < side->size / sizeof(float); ++i) {
    ((float*)side->out)[i] = (float)((side->me + 1) * (int)(i % 7 + 1));
  }
}
static void CompareSums(const Side* side) {
  for (size_t i = 0; i < side->size / sizeof(float); ++i) {
    if (((float*)side->in)[i] != (float)(3 * (int)(i % 7 + 1))) {
      Fail(side, "sum");
    }
  }
}

static void MeasureCollectives(Side* side) {
  Fill(side->out, side->me, side->size);
  memset(side->in, 0, kPes * side->size);
  shmem_barrier_all();
  Measure(side, "broadcast", RepeatBroadcastOut, 1e9);
  if (side->me != kRoot) { /* Of active sets, the root gets nothing. */
    Compare(side, side->in, kRoot, "broadcast");
  }
  memset(side->in, 0, kPes * side->size);
  shmem_barrier_all();
  Measure(side, "fcollect", RepeatFcollectOut, 1e9);
  for (int pe = 0; pe < kPes; ++pe) {
    Compare(side, side->in + (size_t)pe * side->size, pe, "fcollect");
  }
  FillAddends(side);
  shmem_barrier_all();
  Measure(side, "sum_reduce", RepeatSumReduceOut, 1e9);
  CompareSums(side);
  shmem_barrier_all();
}

static void MeasureGroup(Side* side, int count, char** sizes) {
  PrepareCollectives();
  side->size = 0;
  Measure(side, "barrier_all", RepeatBarrierAll, 1e9);
  Measure(side, "sync_all", RepeatSyncAll, 1e9);
  for (int i = 0; i < count; ++i) {
    side->size = strtoull(sizes[i], NULL, 10);
    MeasureCollectives(side);
  }
}

static double CpuMilliseconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return 1e3 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* PE 1 waits for a word of PE 0, which lets it wait. */
static void MeasureWait(Side* side) {
  double used_ms = 0;
  shmem_barrier_all();
  if (side->me == kRoot) {
    const struct timespec while_it_waits = {0, kWaitMilliseconds * 1000000L};
    nanosleep(&while_it_waits, NULL);
    shmem_uint64_p(&signal_word, 1, side->other);
    Receive(&used_ms, sizeof(used_ms), side->other);
    printf("wait %d %.5f\n", kWaitMilliseconds, used_ms);
  } else {
    const double before_ms = CpuMilliseconds();
    shmem_uint64_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
    used_ms = CpuMilliseconds() - before_ms;
    Send(&used_ms, sizeof(used_ms), side->other);
  }
}

static char* Private(size_t size) {
  char* const memory = aligned_alloc(kAlignment, size);
  if (memory != NULL) {
    memset(memory, 0, size);
  }
  return memory;
}

static int Begin(Side* side, int argc, char** argv) {
  size_t most = kAlignment;
  for (int i = 3; i < argc; ++i) {
    const size_t size = strtoull(argv[i], NULL, 10);
    if (size == 0 || size % sizeof(uint64_t) != 0 || size > kMostFloats * sizeof(float)) {
      fprintf(stderr, "benchmark: \"%s\" is no size of whole words up to 1 MiB\n", argv[i]);
      return 0;
    }
    most = size > most ? size : most;
  }
  most = (most + kAlignment - 1) / kAlignment * kAlignment;
  side->in = shmem_align(kAlignment, kPes * most);
  side->out = shmem_align(kAlignment, most);
  side->source = Private(most);
  side->copy = Private(most);
  if (side->in == NULL || side->out == NULL || side->source == NULL || side->copy == NULL) {
    fprintf(stderr, "benchmark: no memory for %zu bytes\n", most);
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  shmem_init();
  Side side = {.me = shmem_my_pe(), .other = 1 - shmem_my_pe()};
  if (argc < 3 || shmem_n_pes() != kPes) {
    fprintf(stderr, "usage: shmem pair|group|wait BATCH_MICROSECONDS BYTES..., on two PEs\n");
    return 2;
  }
  batch_s = strtod(argv[2], NULL) * 1e-6;
  if (!Begin(&side, argc, argv)) {
    return 2;
  }
  if (strcmp(argv[1], "pair") == 0) {
    MeasurePair(&side, argc - 3, argv + 3);
  } else if (strcmp(argv[1], "group") == 0) {
    MeasureGroup(&side, argc - 3, argv + 3);
  } else if (strcmp(argv[1], "wait") == 0) {
    MeasureWait(&side);
  } else {
    fprintf(stderr, "benchmark: \"%s\" is none of pair, group, wait\n", argv[1]);
    return 2;
  }
  if (side.me == kRoot) {
    printf("end 0 0\n");
    fflush(stdout);
  }
  shmem_finalize();
  return 0;
}
