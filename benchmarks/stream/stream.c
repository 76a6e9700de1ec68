/* Ping-pong between two devices, with a kernel that packs before each send and one that unpacks
 * after each receive: the microbenchmark of "Co-designing an API for CPU-free MPI GPU
 * communication", section VI-A2.
 *
 *   stream WAY LAUNCH_MICROSECONDS SYNCHRONIZE_MICROSECONDS BATCH_MICROSECONDS BYTES...
 *
 * WAY, on two ranks:
 *   ready, standard  everything is enqueued on a stream, with ready or standard sends; the CPU
 * waits once, at the end cpu              the CPU launches, waits for the stream, and starts the
 * same requests staged           the same through host memory, to and from which the stream copies;
 * the only one that MPI has, whose device memory and streams are device.h's
 *
 * In all of them a rank starts its next receive before the send that its partner answers, so that
 * ready sends find it started. Rank 0 prints "latency BYTES MICROSECONDS BUSY": one way, the median
 * of several batches of about the given length, and the share of the time in which its thread ran.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"
#include "benchmarks/stream/device.h"

typedef struct {
  int rank;
  int by_stream;
  int is_ready;
  int is_staged;
  size_t size;
  Device device;
  char* field;      /* device memory, from which data are packed and into which they are unpacked */
  char* message[2]; /* device memory: packed; sent, received */
  char* host[2];    /* staged: what travels */
  Kernel pack, unpack, copy_out, copy_in;
  Request send, receive;
  int is_started; /* rank 1: the receive of the next round */
  double busy_s;
  double measured_s;
#if !defined(BENCH_MPI)
  ferry_queue queue;
#endif
} PingPong;

static double ThreadTime(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Requests: persistent, one each way ---- */

#if defined(BENCH_MPI)

static void MakeRequests(PingPong* p) {
  const int peer = 1 - p->rank;
  BENCH_CHECK(
      MPI_Send_init(p->host[0], (int)p->size, MPI_BYTE, peer, kTag + 1, MPI_COMM_WORLD, &p->send));
  BENCH_CHECK(MPI_Recv_init(p->host[1], (int)p->size, MPI_BYTE, peer, kTag + 1, MPI_COMM_WORLD,
                            &p->receive));
}
static void FreeRequests(PingPong* p) {
  BENCH_CHECK(MPI_Request_free(&p->send));
  BENCH_CHECK(MPI_Request_free(&p->receive));
}
static void StartNow(Request* request) { BENCH_CHECK(MPI_Start(request)); }
static void StartOf(PingPong* p, Request* request) {
  (void)p;
  StartNow(request);
}
static void WaitFor(PingPong* p, Request* request) {
  (void)p;
  BENCH_CHECK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

#else

static void MakeRequests(PingPong* p) {
  const int peer = 1 - p->rank;
  char** const places = p->is_staged ? p->host : p->message;
  BENCH_CHECK((p->is_ready ? ferry_rsend_init : ferry_send_init)(places[0], p->size, peer, kTag + 1,
                                                                 &p->send));
  BENCH_CHECK(ferry_recv_init(places[1], p->size, peer, kTag + 1, &p->receive));
  if (p->by_stream) {
    const Request both[2] = {p->send, p->receive};
    BENCH_CHECK(ferry_matchall(2, both));
    BENCH_CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &p->device.stream, &p->queue));
  }
}
static void FreeRequests(PingPong* p) {
  BENCH_CHECK(ferry_request_free(&p->send));
  BENCH_CHECK(ferry_request_free(&p->receive));
  if (p->by_stream) {
    BENCH_CHECK(ferry_queue_free(&p->queue));
  }
}
static void StartOf(PingPong* p, Request* request) {
  if (p->by_stream) {
    BENCH_CHECK(ferry_enqueue_start(p->queue, *request));
  } else {
    BENCH_CHECK(ferry_start(*request));
  }
}
static void WaitFor(PingPong* p, Request* request) {
  if (p->by_stream) {
    BENCH_CHECK(ferry_enqueue_wait(p->queue, *request));
  } else {
    BENCH_CHECK(ferry_wait(request, NULL));
  }
}

#endif

/* ---- Rounds ---- */

static void StartReceiving(PingPong* p) {
  StartOf(p, &p->receive);
  p->is_started = 1;
}
static void PackAndSend(PingPong* p) {
  Launch(&p->device, &p->pack);
  if (p->is_staged) {
    Launch(&p->device, &p->copy_out);
  }
  if (!p->by_stream) {
    Synchronize(&p->device);
  }
  StartOf(p, &p->send);
}
static void ReceiveAndUnpack(PingPong* p) {
  WaitFor(p, &p->receive);
  p->is_started = 0;
  if (p->is_staged) {
    Launch(&p->device, &p->copy_in);
  }
  Launch(&p->device, &p->unpack);
}

/* The CPU must not receive into what a copy or a kernel still reads; it gets there when it has
 * waited for the pack that follows. */
static void Round(PingPong* p) {
  if (p->rank == 0) {
    StartReceiving(p);
    PackAndSend(p);
    WaitFor(p, &p->send);
    ReceiveAndUnpack(p);
    return;
  }
  ReceiveAndUnpack(p);
  Launch(&p->device, &p->pack);
  if (p->is_staged) {
    Launch(&p->device, &p->copy_out);
  }
  if (!p->by_stream) {
    Synchronize(&p->device);
  }
  StartReceiving(p);
  StartOf(p, &p->send);
  WaitFor(p, &p->send);
}

static double Repeat(void* context, int rounds) {
  PingPong* const p = context;
  const double busy = ThreadTime();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    Round(p);
  }
  Synchronize(&p->device);
  const double seconds = Now() - start;
  p->busy_s += ThreadTime() - busy;
  p->measured_s += seconds;
  return seconds;
}

/* ---- One size ---- */

static void MakeBuffers(PingPong* p, size_t largest) {
#if defined(BENCH_MPI)
  const char* const device = "private";
  const char* const host = "private";
#else
  const char* const device = "device";
  const char* const host = "pinned";
#endif
  p->field = Filled(device, largest, 0);
  for (int i = 0; i < 2; ++i) {
    p->message[i] = Filled(device, largest, 0);
    p->host[i] = p->is_staged ? Filled(host, largest, 0) : NULL;
  }
}

static char ByteAt(size_t index, size_t size) { return (char)(index * 31 + size % 251 + 1); }

/* Rank 0 has the bytes; rank 1 gets them, and sends them back. */
static void Prepare(PingPong* p) {
  for (size_t i = 0; i < p->size; ++i) {
    p->field[i] = p->rank == 0 ? ByteAt(i, p->size) : 0;
  }
  memset(p->message[0], 0, p->size);
  memset(p->message[1], 0, p->size);
  p->pack = (Kernel){p->message[0], p->field, p->size};
  p->unpack = (Kernel){p->field, p->message[1], p->size};
  p->copy_out = (Kernel){p->host[0], p->message[0], p->size};
  p->copy_in = (Kernel){p->message[1], p->host[1], p->size};
  p->busy_s = p->measured_s = 0;
  MakeRequests(p);
  if (p->rank == 1) {
    StartReceiving(p);
    if (p->by_stream) {
      Synchronize(&p->device);
    }
  }
  Barrier();
}

/* Rank 1's last receive gets a message, too. */
static void Close(PingPong* p) {
  if (p->rank == 0) {
    StartOf(p, &p->send);
    WaitFor(p, &p->send);
  } else {
    WaitFor(p, &p->receive);
  }
  Synchronize(&p->device);
  FreeRequests(p);
  for (size_t i = 0; i < p->size; ++i) {
    if (p->field[i] != ByteAt(i, p->size)) {
      fprintf(stderr, "stream: wrong data in a message of %zu bytes\n", p->size);
      exit(1);
    }
  }
}

int main(int argc, char** argv) {
  int ranks = 0;
  PingPong p = {0};
  Start(&p.rank, &ranks);
  const char* const way = argc > 1 ? argv[1] : "";
  p.is_ready = strcmp(way, "ready") == 0;
  p.by_stream = p.is_ready || strcmp(way, "standard") == 0;
  p.is_staged = strcmp(way, "staged") == 0;
#if defined(BENCH_MPI)
  const int known = p.is_staged;
#else
  const int known = p.by_stream || p.is_staged || strcmp(way, "cpu") == 0;
#endif
  if (argc < 6 || !known || ranks != 2) {
    fprintf(stderr, "usage: stream WAY LAUNCH_US SYNCHRONIZE_US BATCH_US BYTES..., on two ranks\n");
    return 2;
  }
  const size_t largest = LargestSize(argc, argv, 5, 1);
  OpenDevice(&p.device, strtod(argv[2], NULL) * 1e-6, strtod(argv[3], NULL) * 1e-6);
  MakeBuffers(&p, largest);
  for (int i = 5; i < argc; ++i) {
    p.size = strtoull(argv[i], NULL, 10);
    Prepare(&p);
    const double seconds =
        MeasureTogether(Repeat, &p, strtod(argv[4], NULL) * 1e-6, p.rank, ranks) / 2;
    Close(&p);
    if (p.rank == 0) {
      printf("latency %zu %.4f %.4f\n", p.size, seconds * 1e6, p.busy_s / p.measured_s);
      fflush(stdout);
    }
  }
  CloseDevice(&p.device);
  Barrier();
  Finish();
  return 0;
}
