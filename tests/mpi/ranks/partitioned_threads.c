/* MPI_THREAD_MULTIPLE: threads ready partitions of one request while others ask for arrivals, and
 * while one waits for the request (MPI 5.0, section 4.3). Any number of ranks form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "tests/mpi/ranks/partitioned.h"

enum { tag = 9, writers = 4, readers = 2 };

/* ---- One request of several threads ---- */

struct round {
  MPI_Request both[2];
  struct buffer out, in;
  int partitions_out, partitions_in, rounds;
  pthread_barrier_t begins, ends;
};
struct worker {
  struct round* round;
  int number;
  pthread_t thread;
};

/* Readies every writers-th partition, in an order that changes. */
static void* write_partitions(void* argument) {
  const struct worker* const self = argument;
  struct round* const round = self->round;
  const int count = round->partitions_out;
  for (int n = 0; n < round->rounds; ++n) {
    pthread_barrier_wait(&round->begins);
    for (int i = self->number; i < count; i += writers) {
      OK(MPI_Pready(n % 2 == 0 ? i : count - 1 - i, round->both[kSend]));
    }
    pthread_barrier_wait(&round->ends);
  }
  return NULL;
}

/* Asks for partitions, each reader in its own order, and looks at each that has arrived. */
static void* read_partitions(void* argument) {
  const struct worker* const self = argument;
  struct round* const round = self->round;
  const int count = round->partitions_in;
  const size_t each = round->in.bytes / (size_t)count;
  for (int n = 0; n < round->rounds; ++n) {
    pthread_barrier_wait(&round->begins);
    for (int i = 0; i < count; ++i) {
      const int p = self->number == 0 ? i : count - 1 - i;
      await_arrival(round->both[kReceive], p);
      const unsigned char* const bytes = round->in.at + (size_t)p * each;
      for (size_t k = 0; k < each; ++k) {
        const size_t at = (size_t)p * each + k;
        CHECK(bytes[k] == (unsigned char)((unsigned)(n + before) * 31 + at * 7 + (at >> 8)));
      }
    }
    pthread_barrier_wait(&round->ends);
  }
  return NULL;
}

/* `waits_early`: one more thread already waits for the send while others ready its partitions. */
static void together(enum kind from, enum kind to, int partitions_out, int partitions_in,
                     size_t bytes, int rounds, int waits_early) {
  static struct round round;
  struct worker workers[writers + readers];
  step = waits_early ? "a wait while threads ready" : "threads of one request";
  round.out = make_buffer(from, bytes);
  round.in = make_buffer(to, bytes);
  round.partitions_out = partitions_out;
  round.partitions_in = partitions_in;
  round.rounds = rounds;
  init_ring(round.both, &round.out, partitions_out, &round.in, partitions_in, tag);
  CHECK(pthread_barrier_init(&round.begins, NULL, writers + readers + 1) == 0);
  CHECK(pthread_barrier_init(&round.ends, NULL, writers + readers + 1) == 0);
  for (int i = 0; i < writers + readers; ++i) {
    workers[i].round = &round;
    workers[i].number = i < writers ? i : i - writers;
    CHECK(pthread_create(&workers[i].thread, NULL, i < writers ? write_partitions : read_partitions,
                         &workers[i]) == 0);
  }
  for (int n = 0; n < rounds; ++n) {
    fill_buffer(&round.out, (unsigned)(n + rank));
    OK(MPI_Startall(2, round.both));
    pthread_barrier_wait(&round.begins);
    if (waits_early) OK(MPI_Wait(&round.both[kSend], MPI_STATUS_IGNORE));
    pthread_barrier_wait(&round.ends);
    OK(MPI_Waitall(2, round.both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&round.in, (unsigned)(n + before)));
  }
  for (int i = 0; i < writers + readers; ++i) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&round.begins);
  pthread_barrier_destroy(&round.ends);
  free_all(2, round.both);
  drop_buffer(&round.out);
  drop_buffer(&round.in);
}

/* ---- Requests of each thread's own ---- */

/* They are made, used and freed while other threads do the same, by other tags. */
static void* live_alone(void* argument) {
  enum { partitions = 5, each = 720, lives = 30 };
  const int own = (int)(size_t)argument;
  struct buffer out = make_buffer(own % 2 == 0 ? kHeap : kOrdinary, partitions * each);
  struct buffer in = make_buffer(own % 3 == 0 ? kOrdinary : kHeap, partitions * each);
  for (unsigned life = 0; life < lives; ++life) {
    MPI_Request both[2];
    init_ring(both, &out, partitions, &in, 1 + own, tag + 1 + own);
    for (unsigned n = 0; n < 3; ++n) {
      const unsigned seed = life * 3 + n + (unsigned)own;
      fill_buffer(&out, seed + (unsigned)rank);
      OK(MPI_Startall(2, both));
      ready_all(both[kSend], partitions);
      if (n % 2 == 0) await_arrivals(both[kReceive], 1 + own);
      OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      CHECK(holds_all(&in, seed + (unsigned)before));
    }
    free_all(2, both);
  }
  drop_buffer(&out);
  drop_buffer(&in);
  return NULL;
}

static void side_by_side(void) {
  pthread_t threads[writers];
  step = "requests of each thread's own";
  for (size_t i = 0; i < writers; ++i) {
    CHECK(pthread_create(&threads[i], NULL, live_alone, (void*)i) == 0);
  }
  for (int i = 0; i < writers; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  const int rounds = argc > 1 ? atoi(argv[1]) : 10;
  bound_time(200);
  for (int early = 0; early < 2; ++early) {
    together(kHeap, kHeap, 8, 8, 64, rounds, early);
    together(kOrdinary, kOrdinary, 64, 64, 64 * 500, rounds, early);
    together(kHeap, kOrdinary, 150, 20, 150 * 1000, rounds, early);
    together(kOrdinary, kHeap, 12, 30, 60 * 10000, rounds, early);
  }
  together(kDevice, kHeap, 16, 8, 16 * 3000, rounds, 0);
  side_by_side();
  return end_well("all threads were right");
}
