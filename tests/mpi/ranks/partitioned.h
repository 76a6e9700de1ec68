/* What the programs that test partitioned messages share. In most of them the ranks form a ring:
 * every rank sends to the next one and receives from the one before it. A program that includes
 * this defines _POSIX_C_SOURCE first.
 */
#ifndef FERRY_TESTS_MPI_RANKS_PARTITIONED_H_
#define FERRY_TESTS_MPI_RANKS_PARTITIONED_H_

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/ranks/on_queue.h"

/* ---- Hangs say where ---- */

static inline void say_step(int signal) {
  static const char words[] = "the time is over, in ";
  (void)signal;
  (void)!write(2, words, sizeof(words) - 1);
  (void)!write(2, step, strlen(step));
  (void)!write(2, "\n", 1);
  _exit(99);
}

/* From now on, and until `seconds` have passed or somebody ends it, the program may run. */
static inline void bound_time(unsigned seconds) {
  CHECK(signal(SIGALRM, say_step) != SIG_ERR && signal(SIGTERM, say_step) != SIG_ERR);
  alarm(seconds);
}

/* ---- Buffers in memory of all kinds ---- */

enum kind { kOrdinary, kHeap, kDevice, kKinds };
enum { kGuard = 64, kUntouched = 0xcc };

struct buffer {
  enum kind kind;
  size_t bytes;
  unsigned char* at;    /* between two guards */
  unsigned char* image; /* memory of the host, for looking at it */
};

static inline void put(const struct buffer* buffer, ptrdiff_t first, size_t bytes) {
  if (buffer->kind == kDevice) {
    CHECK(ferry_memcpy(buffer->at + first, buffer->image + first, bytes) == FERRY_SUCCESS);
  } else {
    memcpy(buffer->at + first, buffer->image + first, bytes);
  }
}

static inline void get(const struct buffer* buffer, ptrdiff_t first, size_t bytes) {
  if (buffer->kind == kDevice) {
    CHECK(ferry_memcpy(buffer->image + first, buffer->at + first, bytes) == FERRY_SUCCESS);
  } else {
    memcpy(buffer->image + first, buffer->at + first, bytes);
  }
}

/* Makes the buffer, and its guards, untouched. */
static inline void clear(const struct buffer* buffer) {
  memset(buffer->image - kGuard, kUntouched, buffer->bytes + 2 * kGuard);
  put(buffer, -kGuard, buffer->bytes + 2 * kGuard);
}

static inline struct buffer make_buffer(enum kind kind, size_t bytes) {
  struct buffer made = {kind, bytes, NULL, malloc(bytes + 2 * kGuard)};
  void* memory = NULL;
  if (kind == kOrdinary) memory = malloc(bytes + 2 * kGuard);
  if (kind == kHeap) OK(MPI_Alloc_mem((MPI_Aint)bytes + 2 * kGuard, MPI_INFO_NULL, &memory));
  if (kind == kDevice) memory = on_device(bytes + 2 * kGuard);
  CHECK(memory != NULL && made.image != NULL);
  made.at = (unsigned char*)memory + kGuard;
  made.image += kGuard;
  clear(&made);
  return made;
}

static inline void drop_buffer(struct buffer* buffer) {
  void* const memory = buffer->at - kGuard;
  if (buffer->kind == kOrdinary) free(memory);
  if (buffer->kind == kHeap) OK(MPI_Free_mem(memory));
  if (buffer->kind == kDevice) CHECK(ferry_free(memory) == FERRY_SUCCESS);
  free(buffer->image - kGuard);
  buffer->at = buffer->image = NULL;
}

static inline void fill_buffer(const struct buffer* buffer, unsigned seed) {
  fill(buffer->image, buffer->bytes, seed);
  put(buffer, 0, buffer->bytes);
}

/* Whether these bytes are what fill_buffer put there. */
static inline int holds(const struct buffer* buffer, size_t first, size_t bytes, unsigned seed) {
  get(buffer, (ptrdiff_t)first, bytes);
  for (size_t i = first; i < first + bytes; ++i) {
    if (buffer->image[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8))) return 0;
  }
  return 1;
}

static inline int is_untouched(const struct buffer* buffer, ptrdiff_t first, size_t bytes) {
  get(buffer, first, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    if (buffer->image[first + (ptrdiff_t)i] != kUntouched) return 0;
  }
  return 1;
}

/* The same of all bytes, and nothing beside them has changed. */
static inline int holds_all(const struct buffer* buffer, unsigned seed) {
  return holds(buffer, 0, buffer->bytes, seed) && is_untouched(buffer, -kGuard, kGuard) &&
         is_untouched(buffer, (ptrdiff_t)buffer->bytes, kGuard);
}

/* ---- Requests ---- */

enum { kReceive, kSend }; /* the places in an array of both requests of a rank in the ring */

/* Cuts both buffers into so many partitions of bytes. */
static inline void init_ring(MPI_Request both[2], const struct buffer* out, int partitions_out,
                             const struct buffer* in, int partitions_in, int tag) {
  OK(MPI_Precv_init(in->at, partitions_in, (MPI_Count)in->bytes / partitions_in, MPI_BYTE, before,
                    tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kReceive]));
  OK(MPI_Psend_init(out->at, partitions_out, (MPI_Count)out->bytes / partitions_out, MPI_BYTE, next,
                    tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kSend]));
}

static inline void free_all(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; ++i) {
    OK(MPI_Request_free(&requests[i]));
    CHECK(requests[i] == MPI_REQUEST_NULL);
  }
}

static inline int has_arrived(MPI_Request request, int partition) {
  int flag = -1;
  OK(MPI_Parrived(request, partition, &flag));
  CHECK(flag == 0 || flag == 1);
  return flag;
}

static inline void await_arrival(MPI_Request request, int partition) {
  while (!has_arrived(request, partition)) {
  }
}

static inline void await_arrivals(MPI_Request request, int partitions) {
  for (int p = 0; p < partitions; ++p) await_arrival(request, p);
}

static inline void ready_all(MPI_Request request, int partitions) {
  OK(MPI_Pready_range(0, partitions - 1, request));
}

static inline int is_done(MPI_Request request) {
  int flag = -1;
  OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
  return flag;
}

/* Two ranks tell each other that they have come so far, or all do. */
static inline void meet(void) { OK(MPI_Barrier(MPI_COMM_WORLD)); }

/* A byte goes from one rank to another: what the sender did before is before what the other does
 * after. */
static inline void tell(int to) { OK(MPI_Send(NULL, 0, MPI_BYTE, to, 999, MPI_COMM_WORLD)); }
static inline void hear(int from) {
  OK(MPI_Recv(NULL, 0, MPI_BYTE, from, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* ---- Words that all ranks see without MPI: they are processes of one machine ---- */

enum { kSharedWords = 1024 };

static inline atomic_int* share_words(void) {
  int where[2] = {0, 0}, file = -1;
  char path[64];
  if (rank == 0) {
    FILE* const made = tmpfile();
    CHECK(made != NULL && ftruncate(fileno(made), kSharedWords * sizeof(atomic_int)) == 0);
    where[0] = (int)getpid();
    where[1] = file = fileno(made);
  }
  OK(MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD));
  if (rank != 0) {
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", where[0], where[1]);
    file = open(path, O_RDWR);
    CHECK(file >= 0);
  }
  atomic_int* const words = (atomic_int*)mmap(NULL, kSharedWords * sizeof(atomic_int),
                                              PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(words != MAP_FAILED);
  meet(); /* rank 0 is there until all have opened it */
  return words;
}

static inline void raise_word(atomic_int* word, int value) {
  atomic_store_explicit(word, value, memory_order_release);
}

/* As a program computes: without calls of MPI. */
static inline void compute_until(const atomic_int* word, int value) {
  while (atomic_load_explicit(word, memory_order_acquire) < value) {
  }
}

#endif /* FERRY_TESTS_MPI_RANKS_PARTITIONED_H_ */
