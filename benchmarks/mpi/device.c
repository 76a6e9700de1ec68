/* Messages and collectives of device memory: given to MPI, or copied through host memory by hand,
 * as programs do whose MPI knows host memory only.
 *
 *   device latency|bandwidth|bibw|bcast|reduce|allreduce|allgather straight|pinned|pageable
 *          BATCH_MICROSECONDS BYTES...
 *
 * By hand, a rank copies all that it contributes to pinned or private host memory, calls MPI with
 * that, and copies all it got back: the naive approach of Chen et al. (section V). Of a window of
 * messages it copies one while others travel, through a few buffers in turn. Rank 0 prints "BYTES
 * FIGURE": the microseconds of a collective measured as in collective.h; latency is that of one way
 * of a ping-pong of rank 0 and the rank in the middle; bandwidth and bibw are those of osu_bw and
 * osu_bibw between two ranks, in 10^6 bytes per second.
 */
#include "benchmarks/mpi/pair.h"
#include "benchmarks/mpi/pattern.h"
#include "ferry/ferry.h"

enum { kRoot = 0, kSlots = 4 }; /* kSlots: the buffers that a window is staged through */

#define FERRY_CHECK(call)                                             \
  do {                                                                \
    if ((call) != FERRY_SUCCESS) {                                    \
      fprintf(stderr, "device: %s: %s\n", #call, ferry_last_error()); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

typedef struct Device {
  Side side; /* what MPI is given */
  const struct Collective* collective;
  char* device_out;
  char* device_in;
  int staged;
} Device;

typedef struct Collective {
  const char* name;
  void (*call)(const Side* side);
  size_t (*out_bytes)(const Side* side); /* what this rank contributes */
  size_t (*in_bytes)(const Side* side);  /* what it gets */
  int from_in;                           /* its contribution lies in the buffer for the result */
  int sums;
  int window; /* of messages, in place of a ping-pong: 1, or 2 for both ways at once */
} Collective;

static int IsRoot(const Side* side) { return side->rank == kRoot; }
static size_t Own(const Side* side) { return side->size; }
static size_t All(const Side* side) { return side->size * (size_t)side->ranks; }
static size_t OfRoot(const Side* side) { return IsRoot(side) ? side->size : 0; }
static size_t OfOthers(const Side* side) { return IsRoot(side) ? 0 : side->size; }

static void CallBcast(const Side* side) {
  BENCH_CHECK(MPI_Bcast(side->in, (int)side->size, MPI_BYTE, kRoot, MPI_COMM_WORLD));
}
static void CallReduce(const Side* side) {
  BENCH_CHECK(MPI_Reduce(side->out, side->in, (int)Floats(side), MPI_FLOAT, MPI_SUM, kRoot,
                         MPI_COMM_WORLD));
}
static void CallAllreduce(const Side* side) {
  BENCH_CHECK(
      MPI_Allreduce(side->out, side->in, (int)Floats(side), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}
static void CallAllgather(const Side* side) {
  BENCH_CHECK(MPI_Allgather(side->out, (int)side->size, MPI_BYTE, side->in, (int)side->size,
                            MPI_BYTE, MPI_COMM_WORLD));
}

static void SendStaged(const Device* device, int peer) {
  const Side* side = &device->side;
  if (device->staged) {
    FERRY_CHECK(ferry_memcpy(side->out, device->device_out, side->size));
  }
  Send(side->out, side->size, peer);
}
static void ReceiveStaged(const Device* device, int peer) {
  const Side* side = &device->side;
  Receive(side->in, side->size, peer);
  if (device->staged) {
    FERRY_CHECK(ferry_memcpy(device->device_in, side->in, side->size));
  }
}

/* A ping and a pong, whose bytes do not come back. */
static void PingPong(const Device* device) {
  const int middle = device->side.ranks / 2;
  if (IsRoot(&device->side)) {
    SendStaged(device, middle);
    ReceiveStaged(device, middle);
  } else if (device->side.rank == middle) {
    ReceiveStaged(device, kRoot);
    SendStaged(device, kRoot);
  }
}

/* A window by hand. Messages between two ranks arrive in order, so that they need no tags. */
static void StageWindow(const Device* device, int sends, int receives) {
  const Side* side = &device->side;
  const int peer = Peer(side);
  Request out[kSlots];
  Request in[kSlots];
  for (int slot = 0; receives && slot < kSlots; ++slot) {
    StartReceive(side->in + (size_t)slot * side->size, side->size, peer, &in[slot]);
  }
  for (int i = 0; i < kWindow; ++i) {
    const int slot = i % kSlots;
    const size_t offset = (size_t)slot * side->size;
    if (sends) {
      if (i >= kSlots) {
        WaitAll(1, &out[slot]);
      }
      FERRY_CHECK(ferry_memcpy(side->out + offset, device->device_out, side->size));
      StartSend(side->out + offset, side->size, peer, &out[slot]);
    }
    if (receives) {
      WaitAll(1, &in[slot]);
      FERRY_CHECK(ferry_memcpy(device->device_in, side->in + offset, side->size));
      if (i + kSlots < kWindow) {
        StartReceive(side->in + offset, side->size, peer, &in[slot]);
      }
    }
  }
  if (sends) {
    WaitAll(kSlots, out);
  }
}

static void Window(const Device* device) {
  const Side* side = &device->side;
  const int both = device->collective->window == 2;
  if (!device->staged) {
    ExchangeWindow(side, both);
    return;
  }
  StageWindow(device, both || Leads(side), both || !Leads(side));
  EndWindow(side);
}

/* Patterns without a call are those of pairs. */
static const Collective kCollectives[] = {
    {"latency", NULL, Own, Own, 0, 0, 0},
    {"bandwidth", NULL, Own, Own, 0, 0, 1},
    {"bibw", NULL, Own, Own, 0, 0, 2},
    {"bcast", CallBcast, OfRoot, OfOthers, 1, 0, 0},
    {"reduce", CallReduce, Own, OfRoot, 0, 1, 0},
    {"allreduce", CallAllreduce, Own, Own, 0, 1, 0},
    {"allgather", CallAllgather, Own, All, 0, 0, 0},
};

static void Call(const Device* device) {
  const Side* side = &device->side;
  const Collective* collective = device->collective;
  if (collective->window != 0) {
    Window(device);
    return;
  }
  if (collective->call == NULL) {
    PingPong(device);
    return;
  }
  if (!device->staged) {
    collective->call(side);
    return;
  }
  char* host = collective->from_in ? side->in : side->out;
  char* contribution = collective->from_in ? device->device_in : device->device_out;
  FERRY_CHECK(ferry_memcpy(host, contribution, collective->out_bytes(side)));
  collective->call(side);
  FERRY_CHECK(ferry_memcpy(device->device_in, side->in, collective->in_bytes(side)));
}

static double FromRoot(double value) {
  BENCH_CHECK(MPI_Bcast(&value, 1, MPI_DOUBLE, kRoot, MPI_COMM_WORLD));
  return value;
}

static double Repeat(void* context, int rounds) {
  const Device* device = context;
  double inside_s = 0;
  Barrier();
  if (device->collective->call == NULL) {
    const double start = Now();
    for (int i = 0; i < rounds; ++i) {
      Call(device);
    }
    return FromRoot(Now() - start);
  }
  for (int i = 0; i < rounds; ++i) {
    const double start = Now();
    Call(device);
    inside_s += Now() - start;
    Barrier();
  }
  return MeanOverRanks(inside_s, device->side.ranks);
}

/* Returns the figure to print for the seconds that a round takes. */
static double FigureOf(const Device* device, double round_s) {
  const Side* side = &device->side;
  if (device->collective->window != 0) {
    return 1e-6 * WindowBytes(side) * device->collective->window / round_s;
  }
  /* One way, on the two ranks that take part. */
  return Microseconds(side, device->collective->call == NULL ? round_s / 2 : round_s);
}

/* One call whose result is compared, in host memory. */
static void Check(const Device* device, char* scratch) {
  const Collective* collective = device->collective;
  Side host = device->side;
  host.out = scratch;
  host.in = scratch;
  memset(scratch, 0x55, All(&host));
  FERRY_CHECK(ferry_memcpy(device->device_in, scratch, All(&host)));
  if (collective->sums) {
    FillAddends(&host);
  } else {
    FillBytes(scratch, host.rank, 0, host.size);
  }
  FERRY_CHECK(ferry_memcpy(collective->from_in ? device->device_in : device->device_out, scratch,
                           collective->out_bytes(&host)));
  Call(device);
  FERRY_CHECK(ferry_memcpy(scratch, device->device_in, All(&host)));
  if (collective->sums && collective->in_bytes(&host) > 0) {
    CompareSums(&host);
  } else if (collective->call == NULL) {
    const int middle = host.ranks / 2;
    const int sends_only = collective->window == 1 && host.rank == kRoot;
    if ((host.rank == kRoot || host.rank == middle) && !sends_only) {
      CompareBytes(&host, scratch, middle - host.rank, 0, host.size);
    }
  } else if (collective->call == CallBcast) {
    CompareBytes(&host, scratch, kRoot, 0, host.size);
  } else if (collective->call == CallAllgather) {
    for (int from = 0; from < host.ranks; ++from) {
      CompareBytes(&host, scratch + (size_t)from * host.size, from, 0, host.size);
    }
  }
}

static char* FerryMemory(ferry_memory_kind kind, size_t bytes) {
  void* buffer = NULL;
  FERRY_CHECK(ferry_alloc(bytes, kind, 0, &buffer));
  return buffer;
}

/* MPI's buffers: those of the device, or those that stand in for them. */
static void AllocateAll(Device* device, const char* way, size_t bytes) {
  device->device_out = FerryMemory(FERRY_MEMORY_DEVICE, bytes);
  device->device_in = FerryMemory(FERRY_MEMORY_DEVICE, bytes);
  char** out = &device->side.out;
  char** in = &device->side.in;
  device->staged = strcmp(way, "straight") != 0;
  if (!device->staged) {
    *out = device->device_out;
    *in = device->device_in;
  } else if (strcmp(way, "pinned") == 0) {
    *out = FerryMemory(FERRY_MEMORY_PINNED, bytes);
    *in = FerryMemory(FERRY_MEMORY_PINNED, bytes);
  } else {
    *out = PatternMemory("private", bytes);
    *in = PatternMemory("private", bytes);
  }
}

static const Collective* FindCollective(const char* name) {
  for (size_t i = 0; i < sizeof(kCollectives) / sizeof(kCollectives[0]); ++i) {
    if (strcmp(kCollectives[i].name, name) == 0) {
      return &kCollectives[i];
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  Device device = {0};
  Side* side = &device.side;
  Start(&side->rank, &side->ranks);
  device.collective = argc > 1 ? FindCollective(argv[1]) : NULL;
  const int is_window = device.collective != NULL && device.collective->window != 0;
  if (argc < 5 || device.collective == NULL || (is_window && side->ranks != 2) ||
      (strcmp(argv[2], "straight") != 0 && strcmp(argv[2], "pinned") != 0 &&
       strcmp(argv[2], "pageable") != 0)) {
    fprintf(stderr,
            "usage: device latency|bandwidth|bibw|bcast|reduce|allreduce|allgather "
            "straight|pinned|pageable BATCH_MICROSECONDS BYTES..., windows on two ranks\n");
    return 2;
  }
  size_t largest = 0;
  for (int i = 4; i < argc; ++i) {
    side->size = strtoull(argv[i], NULL, 10);
    if (side->size == 0 || side->size % sizeof(float) != 0) {
      fprintf(stderr, "device: \"%s\" is no size of whole floats\n", argv[i]);
      return 2;
    }
    largest = All(side) > largest ? All(side) : largest;
  }
  AllocateAll(&device, argv[2], is_window ? kSlots * largest : largest);
  char* scratch = PatternMemory("private", largest);
  for (int i = 4; i < argc; ++i) {
    side->size = strtoull(argv[i], NULL, 10);
    Check(&device, scratch);
    const double round_s =
        MeasureTogether(Repeat, &device, strtod(argv[3], NULL) * 1e-6, side->rank, side->ranks);
    Check(&device, scratch);
    if (side->rank == kRoot) {
      printf("%zu %.4f\n", side->size, FigureOf(&device, round_s));
      fflush(stdout);
    }
  }
  Barrier();
  Finish();
  return 0;
}
