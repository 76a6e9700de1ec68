/* The calls of OpenSHMEM 1.5 that the benchmark measures, and the calls of 1.4 in their place:
 * signals are a put, a fence and a put of the word; collectives have active sets. Two PEs. */
#ifndef BENCHMARKS_SHMEM_CALLS_H_
#define BENCHMARKS_SHMEM_CALLS_H_

#include <shmem.h>
#include <stddef.h>
#include <stdint.h>

enum { kPes = 2, kRoot = 0, kMostFloats = 1 << 18 };

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5

static inline void PutSignal(void* dest, const void* source, size_t size, uint64_t* signal,
                             uint64_t value, int pe) {
  shmem_putmem_signal(dest, source, size, signal, value, SHMEM_SIGNAL_SET, pe);
}
static inline void WaitForSignal(uint64_t* signal, uint64_t value) {
  shmem_signal_wait_until(signal, SHMEM_CMP_GE, value);
}

static inline void Broadcast(void* dest, const void* source, size_t size) {
  shmem_broadcastmem(SHMEM_TEAM_WORLD, dest, source, size, kRoot);
}
static inline void Fcollect(void* dest, const void* source, size_t size) {
  shmem_fcollectmem(SHMEM_TEAM_WORLD, dest, source, size);
}
static inline void SumReduce(float* dest, const float* source, size_t count) {
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, dest, source, count);
}
static inline void PrepareCollectives(void) {}

#else

static inline void PutSignal(void* dest, const void* source, size_t size, uint64_t* signal,
                             uint64_t value, int pe) {
  shmem_putmem(dest, source, size, pe);
  shmem_fence();
  shmem_uint64_p(signal, value, pe);
}
static inline void WaitForSignal(uint64_t* signal, uint64_t value) {
  shmem_uint64_wait_until(signal, SHMEM_CMP_GE, value);
}

/* Calls with barriers between them may share these. */
static long sync_words[SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE];
static float work_floats[kMostFloats / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static inline void Broadcast(void* dest, const void* source, size_t size) {
  shmem_broadcast32(dest, source, size / sizeof(float), kRoot, 0, 0, kPes, sync_words);
}
static inline void Fcollect(void* dest, const void* source, size_t size) {
  shmem_fcollect32(dest, source, size / sizeof(float), 0, 0, kPes, sync_words);
}
static inline void SumReduce(float* dest, const float* source, size_t count) {
  shmem_float_sum_to_all(dest, source, (int)count, 0, 0, kPes, work_floats, sync_words);
}
static inline void PrepareCollectives(void) {
  for (size_t i = 0; i < sizeof(sync_words) / sizeof(sync_words[0]); ++i) {
    sync_words[i] = SHMEM_SYNC_VALUE;
  }
  shmem_barrier_all();
}

#endif

#endif /* BENCHMARKS_SHMEM_CALLS_H_ */
