/* The device streams of stream.c: Ferry's emulated ones, or, for other libraries, which have none,
 * the same costs without a thread. Include benchmarks/common/shim.h and timing.h first. */
#ifndef BENCHMARKS_STREAM_DEVICE_H_
#define BENCHMARKS_STREAM_DEVICE_H_

#include <stddef.h>

/* A copy of `size` bytes, as a kernel: packing and unpacking. */
typedef struct {
  char* to;
  const char* from;
  size_t size;
} Kernel;

static inline void RunKernel(void* argument) {
  const Kernel* kernel = (const Kernel*)argument;
  memcpy(kernel->to, kernel->from, kernel->size);
}

#if defined(BENCH_MPI)

enum { kMaxLaunched = 16 };

/* A launched operation begins `launch_s` later, as with Ferry's host_launch_us, and is carried
 * out when the program synchronises, which the critical path of a ping-pong always does next:
 * nothing is lost, and there is no thread to wake. */
typedef struct {
  double launch_s;
  double synchronize_s;
  int count;
  Kernel* launched[kMaxLaunched];
  double begins[kMaxLaunched];
} Device;

static inline void SpinUntil(double when) {
  while (Now() < when) {
  }
}
static inline void OpenDevice(Device* device, double launch_s, double synchronize_s) {
  device->launch_s = launch_s;
  device->synchronize_s = synchronize_s;
  device->count = 0;
}
static inline void CloseDevice(Device* device) { device->count = 0; }
static inline void Launch(Device* device, Kernel* kernel) {
  device->begins[device->count] = device->launch_s > 0 ? Now() + device->launch_s : 0;
  device->launched[device->count++] = kernel;
}
static inline void Synchronize(Device* device) {
  for (int i = 0; i < device->count; ++i) {
    if (device->begins[i] > 0) {
      SpinUntil(device->begins[i]);
    }
    RunKernel(device->launched[i]);
  }
  device->count = 0;
  if (device->synchronize_s > 0) {
    SpinUntil(Now() + device->synchronize_s);
  }
}

#else

#include "ferry/stream.h"

/* The costs are those of the environment (FERRY_HOST_LAUNCH_US, FERRY_HOST_SYNCHRONIZE_US). */
typedef struct {
  ferry_stream stream;
} Device;

static inline void OpenDevice(Device* device, double launch_s, double synchronize_s) {
  (void)launch_s;
  (void)synchronize_s;
  BENCH_CHECK(ferry_stream_create(0, &device->stream));
}
static inline void CloseDevice(Device* device) {
  BENCH_CHECK(ferry_stream_destroy(&device->stream));
}
static inline void Launch(Device* device, Kernel* kernel) {
  BENCH_CHECK(ferry_stream_launch(device->stream, RunKernel, kernel));
}
static inline void Synchronize(Device* device) {
  BENCH_CHECK(ferry_stream_synchronize(device->stream));
}

#endif

#endif /* BENCHMARKS_STREAM_DEVICE_H_ */
