/* Measures the time that the calls themselves take of the rank: to match requests, to enqueue
 * starts and waits, and to start and wait for matched and unmatched requests directly.
 *
 *   calls, on two ranks
 *
 * Prints "call NAME NANOSECONDS" for a request, the median of several times. While calls are timed
 * that enqueue, the stream is held by a kernel that waits: the calls alone are timed.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"
#include "ferry/stream.h"

enum { kRequests = 64, kTimes = 31, kBytes = 8, kWindows = 100 };

static atomic_int gate_is_open;

static void HoldStream(void* argument) {
  (void)argument;
  while (!atomic_load_explicit(&gate_is_open, memory_order_acquire)) {
    sched_yield();
  }
}

typedef struct {
  int rank;
  char* buffers;
  ferry_stream stream;
  ferry_queue queue;
  ferry_request requests[kRequests];
} Bench;

static void MakeRequests(Bench* bench) {
  for (int i = 0; i < kRequests; ++i) {
    char* const place = bench->buffers + 64 * i;
    if (bench->rank == 0) {
      BENCH_CHECK(ferry_send_init(place, kBytes, 1, kTag, &bench->requests[i]));
    } else {
      BENCH_CHECK(ferry_recv_init(place, kBytes, 0, kTag, &bench->requests[i]));
    }
  }
}
static void FreeRequests(Bench* bench) {
  for (int i = 0; i < kRequests; ++i) {
    BENCH_CHECK(ferry_request_free(&bench->requests[i]));
  }
}

static void Report(const Bench* bench, const char* name, double* seconds) {
  if (bench->rank == 0) {
    printf("call %s %.1f\n", name, Median(seconds, kTimes) * 1e9 / kRequests);
    fflush(stdout);
  }
}

static void TimeMatching(Bench* bench) {
  double all[kTimes];
  double single[kTimes];
  for (int time = 0; time < kTimes; ++time) {
    MakeRequests(bench);
    Barrier();
    double start = Now();
    BENCH_CHECK(ferry_matchall(kRequests, bench->requests));
    all[time] = Now() - start;
    Barrier();
    FreeRequests(bench);
    MakeRequests(bench);
    Barrier();
    start = Now();
    for (int i = 0; i < kRequests; ++i) {
      BENCH_CHECK(ferry_match(bench->requests[i]));
    }
    single[time] = Now() - start;
    Barrier();
    FreeRequests(bench);
  }
  Report(bench, "matchall", all);
  Report(bench, "match", single);
}

static void TimeEnqueueing(Bench* bench) {
  double start_all[kTimes];
  double start_each[kTimes];
  double wait_all[kTimes];
  double wait_each[kTimes];
  for (int time = 0; time < 2 * kTimes; ++time) {
    const int all = time % 2;
    const int index = time / 2;
    atomic_store(&gate_is_open, 0);
    BENCH_CHECK(ferry_stream_launch(bench->stream, HoldStream, NULL));
    Barrier();
    const double start = Now();
    for (int i = 0; i < (all ? 1 : kRequests); ++i) {
      BENCH_CHECK(ferry_enqueue_startall(bench->queue, all ? kRequests : 1, &bench->requests[i]));
    }
    const double middle = Now();
    for (int i = 0; i < (all ? 1 : kRequests); ++i) {
      BENCH_CHECK(ferry_enqueue_waitall(bench->queue, all ? kRequests : 1, &bench->requests[i]));
    }
    const double end = Now();
    (all ? start_all : start_each)[index] = middle - start;
    (all ? wait_all : wait_each)[index] = end - middle;
    atomic_store_explicit(&gate_is_open, 1, memory_order_release);
    BENCH_CHECK(ferry_queue_wait(bench->queue));
  }
  Report(bench, "enqueue_start", start_each);
  Report(bench, "enqueue_startall", start_all);
  Report(bench, "enqueue_wait", wait_each);
  Report(bench, "enqueue_waitall", wait_all);
}

static void TimeDirectly(Bench* bench, const char* start_name, const char* wait_name) {
  double starts[kTimes];
  double waits[kTimes];
  for (int time = 0; time < kTimes; ++time) {
    Barrier();
    const double start = Now();
    for (int i = 0; i < kRequests; ++i) {
      BENCH_CHECK(ferry_start(bench->requests[i]));
    }
    const double middle = Now();
    BENCH_CHECK(ferry_waitall(kRequests, bench->requests, NULL));
    starts[time] = middle - start;
    waits[time] = Now() - middle;
  }
  Report(bench, start_name, starts);
  Report(bench, wait_name, waits);
}

/* Both together, window after window without a pause. */
static void TimeWindows(Bench* bench, const char* name) {
  double windows[kTimes];
  for (int time = 0; time < kTimes; ++time) {
    Barrier();
    const double start = Now();
    for (int window = 0; window < kWindows; ++window) {
      for (int i = 0; i < kRequests; ++i) {
        BENCH_CHECK(ferry_start(bench->requests[i]));
      }
      BENCH_CHECK(ferry_waitall(kRequests, bench->requests, NULL));
    }
    windows[time] = (Now() - start) / kWindows;
  }
  Report(bench, name, windows);
}

int main(void) {
  Bench bench = {0};
  int ranks = 0;
  Start(&bench.rank, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "calls: runs on two ranks\n");
    return 2;
  }
  bench.buffers = Allocate("device", 64 * kRequests);
  BENCH_CHECK(ferry_stream_create(0, &bench.stream));
  BENCH_CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &bench.stream, &bench.queue));
  TimeMatching(&bench);
  MakeRequests(&bench);
  TimeDirectly(&bench, "start_unmatched", "wait_unmatched");
  TimeWindows(&bench, "windows_unmatched");
  BENCH_CHECK(ferry_matchall(kRequests, bench.requests));
  TimeDirectly(&bench, "start_matched", "wait_matched");
  TimeWindows(&bench, "windows_matched");
  TimeEnqueueing(&bench);
  FreeRequests(&bench);
  BENCH_CHECK(ferry_queue_free(&bench.queue));
  BENCH_CHECK(ferry_stream_destroy(&bench.stream));
  Barrier();
  Finish();
  return 0;
}
