/* One-sided communication of rank 0 with rank 1, after osu_put_latency and its kin.
 *
 *   window OPERATION [computing] ...   then as in pattern.h, on two ranks
 *
 * put, get, accumulate (a sum of floats), fetch_and_op, compare_and_swap (of 8 bytes): each with
 * the flush after it, within one MPI_Win_lock_all. puts, gets: windows of 64 of them with one
 * flush. fence: nothing but fences; put_fence: both ranks put, then come to a fence. Meanwhile the
 * target waits in MPI_Barrier, where every library makes progress; "computing": it computes for 100
 * ms without a call of MPI, and one operation is measured that begins in the midst of that. A put
 * is over then once the flush has returned and the target has found the data: some libraries flush
 * what they have sent, not what has come.
 *
 * "allocated" is the memory of MPI_Win_allocate, "private" memory of the program's own with
 * MPI_Win_create. The origin's buffer is the program's own. */
#include <stdatomic.h>

#include "benchmarks/mpi/pair.h"

enum { kTarget = 1 };

static const double kComputesSeconds = 0.1;
static const double kOriginIsLaterSeconds = 0.005; /* so that the target computes already */

typedef struct {
  const char* name;
  void (*begin)(const Side* side); /* the calls before the flush */
  /* Prepares both sides' memory, and compares what a round has left there. */
  void (*fill)(const Side* side);
  void (*compare)(const Side* side);
  int is_fence;
  double (*figure)(const Side* side, double round_s);
} OneSided;

static const OneSided* operation;
static int target_computes;

static void Put(const Side* side) {
  BENCH_CHECK(MPI_Put(side->out, (int)side->size, MPI_BYTE, Peer(side), 0, (int)side->size,
                      MPI_BYTE, side->win));
}
static void Get(const Side* side) {
  BENCH_CHECK(MPI_Get(side->out, (int)side->size, MPI_BYTE, Peer(side), 0, (int)side->size,
                      MPI_BYTE, side->win));
}
static void Puts(const Side* side) {
  for (int i = 0; i < kWindow; ++i) {
    Put(side);
  }
}
static void Gets(const Side* side) {
  for (int i = 0; i < kWindow; ++i) {
    Get(side);
  }
}
static void Accumulate(const Side* side) {
  const int count = (int)Floats(side);
  BENCH_CHECK(MPI_Accumulate(side->out, count, MPI_FLOAT, Peer(side), 0, count, MPI_FLOAT, MPI_SUM,
                             side->win));
}

/* Both words count: the target's, and the origin's copy of it. */
static int64_t known;
static int64_t found;
static void FetchAndAdd(const Side* side) {
  static const int64_t kOne = 1;
  BENCH_CHECK(MPI_Fetch_and_op(&kOne, &found, MPI_INT64_T, Peer(side), 0, MPI_SUM, side->win));
}
static void CompareAndSwap(const Side* side) {
  const int64_t next = known + 1;
  BENCH_CHECK(MPI_Compare_and_swap(&next, &known, &found, MPI_INT64_T, Peer(side), 0, side->win));
}

static void Nothing(const Side* side) { (void)side; }

static void FillBoth(const Side* side) {
  memset(side->in, 0x55, side->size);
  FillBytes(side->out, side->rank, 0, side->size);
}
static void FillTarget(const Side* side) {
  FillBytes(side->in, side->rank, 0, side->size);
  memset(side->out, 0x55, side->size);
}
static void FillFloats(const Side* side) {
  FillAddends(side);
  memcpy(side->in, side->out, side->size);
}
static void FillWord(const Side* side) {
  memset(side->in, 0, side->size);
  known = 0;
}
static void CompareTarget(const Side* side) {
  if (!Leads(side)) {
    CompareBytes(side, side->in, Peer(side), 0, side->size);
  }
}
static void CompareBoth(const Side* side) {
  CompareBytes(side, side->in, Peer(side), 0, side->size);
}
static void CompareOrigin(const Side* side) {
  if (Leads(side)) {
    CompareBytes(side, side->out, Peer(side), 0, side->size);
  }
}
static void CompareFloats(const Side* side) {
  if (!Leads(side)) {
    CompareSums(side);
  }
}
static void CompareWord(const Side* side) {
  int64_t word = 0;
  memcpy(&word, side->in, sizeof(word));
  if (!Leads(side) && word != 1) {
    Mistaken(side, "word", 0);
  }
}

static double MegabytesOfWindow(const Side* side, double round_s) {
  return WindowBytes(side) / round_s * 1e-6;
}

static const OneSided kOperations[] = {
    {"put", Put, FillBoth, CompareTarget, 0, Microseconds},
    {"get", Get, FillTarget, CompareOrigin, 0, Microseconds},
    {"puts", Puts, FillBoth, CompareTarget, 0, MegabytesOfWindow},
    {"gets", Gets, FillTarget, CompareOrigin, 0, MegabytesOfWindow},
    {"accumulate", Accumulate, FillFloats, CompareFloats, 0, Microseconds},
    {"fetch_and_op", FetchAndAdd, FillWord, CompareWord, 0, Microseconds},
    {"compare_and_swap", CompareAndSwap, FillWord, CompareWord, 0, Microseconds},
    {"fence", Nothing, Nothing, Nothing, 1, Microseconds},
    {"put_fence", Put, FillBoth, CompareBoth, 1, Microseconds},
};

static int IsWord(void) {
  return operation->begin == FetchAndAdd || operation->begin == CompareAndSwap;
}

/* One, by the origin, over when it returns. */
static void Operate(const Side* side) {
  operation->begin(side);
  BENCH_CHECK(MPI_Win_flush(kTarget, side->win));
  if (IsWord()) {
    if (found != known) {
      Mistaken(side, "word found", 0);
    }
    ++known;
  }
}

static void OperateAndFence(const Side* side) {
  operation->begin(side);
  BENCH_CHECK(MPI_Win_fence(0, side->win));
}

static void Check(const Side* side) {
  operation->fill(side);
  if (operation->is_fence) {
    BENCH_CHECK(MPI_Win_fence(0, side->win));
    OperateAndFence(side);
  } else {
    BENCH_CHECK(MPI_Win_sync(side->win));
    Barrier();
    if (Leads(side)) {
      Operate(side);
    }
    Barrier();
    BENCH_CHECK(MPI_Win_sync(side->win));
  }
  operation->compare(side);
  Barrier();
}

static double RepeatFences(const Side* side, int rounds) {
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    OperateAndFence(side);
  }
  return MeanOverRanks(Now() - start, side->ranks);
}

static double Later(double one, double other) { return one > other ? one : other; }

/* Of memory that others write meanwhile. */
static char Load(const char* byte) {
  return atomic_load_explicit((const _Atomic char*)byte, memory_order_relaxed);
}

/* When the byte was seen to be `last`; the end if it was not. */
static double Compute(double until, const char* byte, char last) {
  double seen = 0;
  while (Now() < until) {
    if (seen == 0 && Load(byte) == last) {
      seen = Now();
    }
  }
  return seen != 0 ? seen : Now();
}

static double RepeatComputing(const Side* side, int rounds) {
  static char last; /* another one than in the round before */
  double inside_s = 0;
  for (int i = 0; i < rounds; ++i) {
    ++last;
    if (operation->begin == Put) {
      side->out[side->size - 1] = last;
    }
    Barrier();
    const double start = Now();
    if (Leads(side)) {
      Compute(start + kOriginIsLaterSeconds, side->out, 0);
      const double begun = Now();
      Operate(side);
      const double flushed = Now();
      double seen = 0;
      Receive(&seen, sizeof(seen), Peer(side));
      inside_s += (operation->begin == Put ? Later(flushed, seen) : flushed) - begun;
    } else {
      const double seen = Compute(start + kComputesSeconds, side->in + side->size - 1, last);
      Send(&seen, sizeof(seen), Peer(side));
    }
    Barrier();
  }
  return inside_s;
}

/* Rank 0's seconds count. */
static double Repeat(void* context, int rounds) {
  const Side* side = context;
  if (operation->is_fence) {
    return RepeatFences(side, rounds);
  }
  if (target_computes) {
    return RepeatComputing(side, rounds);
  }
  Barrier();
  const double start = Now();
  for (int i = 0; Leads(side) && i < rounds; ++i) {
    Operate(side);
  }
  const double seconds = Now() - start;
  Barrier();
  return seconds;
}

static double Figure(const Side* side, double round_s) { return operation->figure(side, round_s); }

static void Open(Side* side, const char* memory, size_t bytes) {
  side->out = PatternMemory("private", bytes);
  if (strcmp(memory, "allocated") == 0) {
    BENCH_CHECK(
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &side->in, &side->win));
    memset(side->in, 0, bytes);
  } else {
    side->in = PatternMemory(memory, bytes);
    BENCH_CHECK(
        MPI_Win_create(side->in, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &side->win));
  }
  if (operation->is_fence) {
    BENCH_CHECK(MPI_Win_fence(0, side->win));
  } else {
    BENCH_CHECK(MPI_Win_lock_all(0, side->win));
  }
}

static void Close(Side* side) {
  if (operation->is_fence) {
    BENCH_CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, side->win));
  } else {
    BENCH_CHECK(MPI_Win_unlock_all(side->win));
  }
  BENCH_CHECK(MPI_Win_free(&side->win));
}

int main(int argc, char** argv) {
  static const Pattern kPattern = {.name = "window OPERATION [computing]",
                                   .bytes = MessageBytes,
                                   .check = Check,
                                   .repeat = Repeat,
                                   .figure = Figure,
                                   .open = Open,
                                   .close = Close};
  for (size_t i = 0; argc > 1 && i < sizeof(kOperations) / sizeof(kOperations[0]); ++i) {
    operation = strcmp(argv[1], kOperations[i].name) == 0 ? &kOperations[i] : operation;
  }
  if (operation == NULL) {
    fprintf(stderr, "window: the first argument is an operation: put, get, ... (see window.c)\n");
    return 2;
  }
  target_computes = argc > 2 && strcmp(argv[2], "computing") == 0;
  const int taken = 1 + target_computes;
  return RunPattern(argc - taken, argv + taken, &kPattern);
}
