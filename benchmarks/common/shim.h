/* The few calls that a benchmark needs, by Ferry, or by MPI when BENCH_MPI is defined. Nothing else
 * differs between the two programs. Every failure ends the process with a message. */
#ifndef BENCHMARKS_COMMON_SHIM_H_
#define BENCHMARKS_COMMON_SHIM_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTag = 7 };

#if defined(BENCH_MPI)

#include <mpi.h>

#define BENCH_CHECK(call)                               \
  do {                                                  \
    if ((call) != MPI_SUCCESS) {                        \
      fprintf(stderr, "benchmark: %s failed\n", #call); \
      exit(1);                                          \
    }                                                   \
  } while (0)

enum { kAnySource = MPI_ANY_SOURCE };
typedef MPI_Request Request;

static inline void Start(int* rank, int* size) {
  BENCH_CHECK(MPI_Init(NULL, NULL));
  BENCH_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, rank));
  BENCH_CHECK(MPI_Comm_size(MPI_COMM_WORLD, size));
}
static inline void Finish(void) { BENCH_CHECK(MPI_Finalize()); }
static inline void Barrier(void) { BENCH_CHECK(MPI_Barrier(MPI_COMM_WORLD)); }

static inline void Send(const void* buffer, size_t size, int peer) {
  BENCH_CHECK(MPI_Send(buffer, (int)size, MPI_BYTE, peer, kTag, MPI_COMM_WORLD));
}
static inline void Receive(void* buffer, size_t size, int peer) {
  BENCH_CHECK(MPI_Recv(buffer, (int)size, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
static inline void StartSendTagged(const void* buffer, size_t size, int peer, int tag,
                                   Request* request) {
  BENCH_CHECK(MPI_Isend(buffer, (int)size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request));
}
static inline void StartReceiveTagged(void* buffer, size_t size, int peer, int tag,
                                      Request* request) {
  BENCH_CHECK(MPI_Irecv(buffer, (int)size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request));
}
static inline void WaitAll(int count, Request* requests) {
  BENCH_CHECK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}
/* MPI knows host memory only: what a benchmark calls its device is private memory too. */
static inline void Copy(void* to, const void* from, size_t size) { memcpy(to, from, size); }
static inline void* Allocate(const char* memory, size_t size) {
  if (strcmp(memory, "private") != 0) {
    fprintf(stderr, "benchmark: MPI has no %s memory\n", memory);
    exit(2);
  }
  return aligned_alloc(4096, size);
}

#else

#include "ferry/ferry.h"

#define BENCH_CHECK(call)                                                \
  do {                                                                   \
    if ((call) != FERRY_SUCCESS) {                                       \
      fprintf(stderr, "benchmark: %s: %s\n", #call, ferry_last_error()); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

enum { kAnySource = FERRY_ANY_SOURCE };
typedef ferry_request Request;

static inline void Start(int* rank, int* size) {
  BENCH_CHECK(ferry_init(FERRY_THREAD_SINGLE, NULL));
  *rank = ferry_rank();
  *size = ferry_size();
}
static inline void Finish(void) { BENCH_CHECK(ferry_finalize()); }
static inline void Barrier(void) { BENCH_CHECK(ferry_barrier()); }

static inline void Send(const void* buffer, size_t size, int peer) {
  BENCH_CHECK(ferry_send(buffer, size, peer, kTag));
}
static inline void Receive(void* buffer, size_t size, int peer) {
  BENCH_CHECK(ferry_recv(buffer, size, peer, kTag, NULL));
}
static inline void StartSendTagged(const void* buffer, size_t size, int peer, int tag,
                                   Request* request) {
  BENCH_CHECK(ferry_isend(buffer, size, peer, tag, request));
}
static inline void StartReceiveTagged(void* buffer, size_t size, int peer, int tag,
                                      Request* request) {
  BENCH_CHECK(ferry_irecv(buffer, size, peer, tag, request));
}
static inline void WaitAll(int count, Request* requests) {
  BENCH_CHECK(ferry_waitall((size_t)count, requests, NULL));
}
static inline void Copy(void* to, const void* from, size_t size) {
  BENCH_CHECK(ferry_memcpy(to, from, size));
}
static inline void* Allocate(const char* memory, size_t size) {
  void* buffer = NULL;
  if (strcmp(memory, "private") == 0) {
    return aligned_alloc(4096, size);
  }
  const ferry_memory_kind kind = strcmp(memory, "device") == 0   ? FERRY_MEMORY_DEVICE
                                 : strcmp(memory, "pinned") == 0 ? FERRY_MEMORY_PINNED
                                                                 : FERRY_MEMORY_HOST;
  if (kind == FERRY_MEMORY_HOST && strcmp(memory, "heap") != 0) {
    fprintf(stderr, "benchmark: %s is no memory: private, heap, pinned or device\n", memory);
    exit(2);
  }
  BENCH_CHECK(ferry_alloc(size, kind, 0, &buffer));
  return buffer;
}

#endif

/* Whole pages of memory of `size` bytes, each `value`. */
static inline char* Filled(const char* memory, size_t size, int value) {
  enum { kPage = 4096 };
  char* const buffer = (char*)Allocate(memory, (size + kPage - 1) / kPage * kPage);
  char* const bytes = (char*)malloc(size);
  if (buffer == NULL || bytes == NULL) {
    fprintf(stderr, "benchmark: no memory\n");
    exit(1);
  }
  memset(bytes, value, size);
  Copy(buffer, bytes, size); /* the device may be out of the CPU's reach */
  free(bytes);
  return buffer;
}

/* The largest of the sizes that the arguments from `first` on are; each a multiple of `unit`. */
static inline size_t LargestSize(int argc, char** argv, int first, size_t unit) {
  size_t largest = 0;
  for (int i = first; i < argc; ++i) {
    const size_t size = (size_t)strtoull(argv[i], NULL, 10);
    if (size == 0 || size % unit != 0) {
      fprintf(stderr, "benchmark: \"%s\" is no size, or no multiple of %zu\n", argv[i], unit);
      exit(2);
    }
    largest = size > largest ? size : largest;
  }
  return largest;
}

static inline void StartSend(const void* buffer, size_t size, int peer, Request* request) {
  StartSendTagged(buffer, size, peer, kTag, request);
}
static inline void StartReceive(void* buffer, size_t size, int peer, Request* request) {
  StartReceiveTagged(buffer, size, peer, kTag, request);
}

#endif /* BENCHMARKS_COMMON_SHIM_H_ */
