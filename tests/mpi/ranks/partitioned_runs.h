/* Partitioned collectives with their buffers, what is to come of them, and ways to make their
 * partitions ready.
 */
#ifndef FERRY_TESTS_MPI_RANKS_PARTITIONED_RUNS_H_
#define FERRY_TESTS_MPI_RANKS_PARTITIONED_RUNS_H_

#include <pthread.h>
#include <sched.h>

#include "tests/mpi/ranks/on_queue.h"

enum { MOST_RANKS = 8, THREADS = 3 };

enum collective {
  BCAST,
  REDUCE,
  ALLREDUCE,
  SCAN,
  EXSCAN,
  REDUCE_SCATTER,
  ALLGATHER,
  ALLTOALL,
  GATHER,
  SCATTER,
  KINDS
};
static const char* const names[KINDS] = {"MPIX_Pbcast_init",     "MPIX_Preduce_init",
                                         "MPIX_Pallreduce_init", "MPIX_Pscan_init",
                                         "MPIX_Pexscan_init",    "MPIX_Preduce_scatter_block_init",
                                         "MPIX_Pallgather_init", "MPIX_Palltoall_init",
                                         "MPIX_Pgather_init",    "MPIX_Pscatter_init"};

/* A collective with its buffers: blocks of partitions x count elements, one for each rank. */
struct run {
  enum collective kind;
  int partitions, count, root, in_place;
  MPI_Datatype type;
  MPI_Op op;
  int words; /* ints between the beginnings of two elements; the first `used` are data */
  int used;
  unsigned *in, *out, *expected;
  MPI_Request request;
};

static inline int block_of(const struct run* run) { return run->partitions * run->count; }
static inline int words_of(const struct run* run) { return block_of(run) * run->words; }
static inline int is_root(const struct run* run) { return rank == run->root; }
static inline int readies(const struct run* run) {
  return (run->kind != BCAST && run->kind != SCATTER) || is_root(run);
}
static inline int arrives(const struct run* run) {
  switch (run->kind) {
    case BCAST:
      return !is_root(run);
    case REDUCE:
    case GATHER:
      return is_root(run);
    default:
      return 1;
  }
}
static inline int gathers(const struct run* run) {
  return run->kind == ALLGATHER || run->kind == ALLTOALL || run->kind == GATHER;
}

static inline void* memory(size_t bytes) {
  void* const made = malloc(bytes + 1);
  CHECK(made != NULL);
  return made;
}

static inline MPI_Info hints(const char* least_bytes, const char* most_units) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  if (least_bytes != NULL) OK(MPI_Info_set(info, "ferry_partitioned_min_bytes", least_bytes));
  if (most_units != NULL) OK(MPI_Info_set(info, "ferry_partitioned_max_units", most_units));
  return info;
}

/* Makes the request, whose buffers are there. */
static inline int init(struct run* run, MPI_Info info) {
  const int p = run->partitions, n = run->count, root = run->root, own = run->in_place;
  const MPI_Comm comm = MPI_COMM_WORLD;
  const void* const in = own && run->kind != SCATTER ? MPI_IN_PLACE : run->in;
  void* const out = own && run->kind == SCATTER ? MPI_IN_PLACE : run->out;
  switch (run->kind) {
    case BCAST:
      return MPIX_Pbcast_init(run->out, p, n, run->type, root, comm, info, &run->request);
    case REDUCE:
      return MPIX_Preduce_init(in, out, p, n, run->type, run->op, root, comm, info, &run->request);
    case ALLREDUCE:
      return MPIX_Pallreduce_init(in, out, p, n, run->type, run->op, comm, info, &run->request);
    case SCAN:
      return MPIX_Pscan_init(in, out, p, n, run->type, run->op, comm, info, &run->request);
    case EXSCAN:
      return MPIX_Pexscan_init(in, out, p, n, run->type, run->op, comm, info, &run->request);
    case REDUCE_SCATTER:
      return MPIX_Preduce_scatter_block_init(in, out, p, n, run->type, run->op, comm, info,
                                             &run->request);
    case ALLGATHER:
      return MPIX_Pallgather_init(in, out, p, n, run->type, comm, info, &run->request);
    case ALLTOALL:
      return MPIX_Palltoall_init(in, out, p, n, run->type, comm, info, &run->request);
    case GATHER:
      return MPIX_Pgather_init(in, out, p, n, run->type, root, comm, info, &run->request);
    default:
      return MPIX_Pscatter_init(in, out, p, n, run->type, root, comm, info, &run->request);
  }
}

/* The plain collective from `in` to `expected`. */
static inline void compute(const struct run* run) {
  const int n = block_of(run), root = run->root;
  const MPI_Comm comm = MPI_COMM_WORLD;
  const MPI_Datatype type = run->type;
  unsigned *const in = run->in, *const to = run->expected;
  switch (run->kind) {
    case BCAST:
      if (is_root(run)) memcpy(to, in, sizeof *in * words_of(run));
      OK(MPI_Bcast(to, n, type, root, comm));
      break;
    case REDUCE:
      OK(MPI_Reduce(in, to, n, type, run->op, root, comm));
      break;
    case ALLREDUCE:
      OK(MPI_Allreduce(in, to, n, type, run->op, comm));
      break;
    case SCAN:
      OK(MPI_Scan(in, to, n, type, run->op, comm));
      break;
    case EXSCAN:
      OK(MPI_Exscan(in, to, n, type, run->op, comm));
      break;
    case REDUCE_SCATTER:
      OK(MPI_Reduce_scatter_block(in, to, n, type, run->op, comm));
      break;
    case ALLGATHER:
      OK(MPI_Allgather(in, n, type, to, n, type, comm));
      break;
    case ALLTOALL:
      OK(MPI_Alltoall(in, n, type, to, n, type, comm));
      break;
    case GATHER:
      OK(MPI_Gather(in, n, type, to, n, type, root, comm));
      break;
    default:
      OK(MPI_Scatter(in, n, type, to, n, type, root, comm));
  }
}

/* New data for a round, and what comes of them. */
static inline void set(struct run* run, int round) {
  const int all = size * words_of(run), own = words_of(run);
  for (int i = 0; i < all; ++i) run->in[i] = (unsigned)(1 + rank * 7919 + round * 104729 + i * 3);
  memset(run->out, 0xee, sizeof *run->out * all);
  memset(run->expected, 0xee, sizeof *run->expected * all);
  compute(run);
  if (run->kind == BCAST && is_root(run)) memcpy(run->out, run->in, sizeof *run->in * own);
  if (!run->in_place) return;
  if (run->kind >= REDUCE && run->kind <= EXSCAN) {
    memcpy(run->out, run->in, sizeof *run->in * own);
  } else if (run->kind == ALLGATHER || run->kind == GATHER) {
    memcpy(run->out + rank * own, run->in, sizeof *run->in * own);
  } else if (run->kind == ALLTOALL || run->kind == REDUCE_SCATTER) {
    memcpy(run->out, run->in, sizeof *run->in * all);
  }
}

/* Compares partition p of the result. */
static inline void compare(const struct run* run, int p) {
  if (!arrives(run) || (run->kind == SCATTER && run->in_place)) return;
  if (run->kind == EXSCAN && run->in_place && rank == 0) return;
  for (int block = 0; block < (gathers(run) ? size : 1); ++block) {
    for (int i = 0; i < run->count; ++i) {
      const int at = (block * block_of(run) + p * run->count + i) * run->words;
      for (int word = 0; word < run->used; ++word) {
        if (run->out[at + word] != run->expected[at + word]) {
          fprintf(stderr, "%s: partition %d of %d, element %d of %d, of block %d: %u, not %u\n",
                  names[run->kind], p, run->partitions, i, run->count, block, run->out[at + word],
                  run->expected[at + word]);
          CHECK(!"the result is the plain collective's");
        }
      }
    }
  }
}
static inline void compare_all(const struct run* run) {
  for (int p = 0; p < run->partitions; ++p) compare(run, p);
}

/* Words outside the datatype stay as they were. */
static inline void check_gaps(const struct run* run) {
  if (run->in_place || run->kind == BCAST) return;
  for (int i = 0; i < size * block_of(run); ++i) {
    for (int word = run->used; word < run->words; ++word) {
      CHECK(run->out[i * run->words + word] == 0xeeeeeeee);
    }
  }
}

static inline struct run make(enum collective kind, int partitions, int count, MPI_Datatype type,
                              MPI_Op op, int words, int used) {
  struct run run = {kind, partitions, count,           0, 0, type, op, words, used, NULL,
                    NULL, NULL,       MPI_REQUEST_NULL};
  const size_t bytes = sizeof(int) * (size_t)size * words_of(&run);
  run.in = memory(bytes);
  run.out = memory(bytes);
  run.expected = memory(bytes);
  return run;
}

static inline void drop(struct run* run) {
  if (run->request != MPI_REQUEST_NULL) OK(MPI_Request_free(&run->request));
  free(run->in);
  free(run->out);
  free(run->expected);
}

static inline int has_arrived(const struct run* run, int p) {
  int flag = -1;
  OK(MPI_Parrived(run->request, p, &flag));
  return flag;
}

/* ---- Ways to make a partition ready ---- */

struct worker {
  const struct run* run;
  int index;
};

/* Every third partition, from behind. */
static inline void* ready_some(void* argument) {
  const struct worker* const worker = argument;
  const struct run* const run = worker->run;
  for (int p = run->partitions - 1; p >= 0; --p) {
    if (p % THREADS == worker->index) OK(MPI_Pready(p, run->request));
  }
  return NULL;
}

static inline void ready_by_threads(const struct run* run) {
  pthread_t threads[THREADS];
  struct worker workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (struct worker){run, i};
    CHECK(pthread_create(&threads[i], NULL, ready_some, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* In an order that depends on the rank, all but one, which comes when the request was seen not to
 * be done. */
static inline void ready_alone(struct run* run) {
  const int p = run->partitions;
  for (int i = 1; i < p; ++i) OK(MPI_Pready((i + rank) % p, run->request));
  int flag = -1;
  OK(MPI_Test(&run->request, &flag, MPI_STATUS_IGNORE));
  CHECK(flag == 0);
  OK(MPI_Pready(rank % p, run->request));
}

static inline void ready_ranges(const struct run* run) {
  const int middle = run->partitions / 2;
  OK(MPI_Pready_range(middle, run->partitions - 1, run->request));
  if (middle > 0) OK(MPI_Pready_range(0, middle - 1, run->request));
}

#endif /* FERRY_TESTS_MPI_RANKS_PARTITIONED_RUNS_H_ */
