/* healthy WHAT: programs without a fault that wait for each other all the time, until they are
 * killed, for `ferryctl why`. Each rank first prints "rank R: under way". Now and then a rank takes
 * longer than the others.
 *
 *   collectives  of several kinds and sizes, from changing roots
 *   workers      rank 0 takes words of any rank, and answers
 *   probes       a ring in which each probes for what it then receives, and sends synchronously
 *   windows      locks of two windows, one after the other, and all that synchronises them
 *   parts        partitioned messages in a ring
 *   threads      each receives in one thread what another one's second thread sends after a while
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/mpi/ranks/check.h"

enum { kWords = 1 << 14 };
static int in[kWords], out[kWords];

/* A rank that has something else to do. */
static void take_time(long turn) {
  const struct timespec time = {0, 2000000};
  if (turn % 7 == rank) nanosleep(&time, NULL);
}

static void collectives(long turn) {
  const int count = 1 << turn / 4 % 15;
  const int root = (int)(turn % size);
  take_time(turn);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Bcast(out, count, MPI_INT, root, MPI_COMM_WORLD));
  OK(MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
  OK(MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

static void workers(long turn) {
  MPI_Status status;
  if (rank == 0) {
    OK(MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status));
    OK(MPI_Send(out, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD));
  } else {
    take_time(turn);
    OK(MPI_Send(out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status));
  }
}

static void receive_probed(int from, int count) {
  OK(MPI_Probe(from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Recv(in, count, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void probes(long turn) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const int count = 1 << turn / 4 % 15;
  take_time(turn);
  if (rank == 0) {
    OK(MPI_Ssend(out, count, MPI_INT, next, 3, MPI_COMM_WORLD));
    receive_probed(before, count);
  } else {
    receive_probed(before, count);
    OK(MPI_Ssend(out, count, MPI_INT, next, 3, MPI_COMM_WORLD));
  }
}

static void windows(long turn) {
  static MPI_Win wins[2];
  static MPI_Group next, before;
  static int* base;
  if (turn == 0) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &to, &next));
    OK(MPI_Group_incl(all, 1, &from, &before));
    for (int i = 0; i < 2; ++i) {
      OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[i]));
    }
  }
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (int)(turn % size), 0, wins[i]));
    OK(MPI_Put(out, 4, MPI_INT, (int)(turn % size), 0, 4, MPI_INT, wins[i]));
    take_time(turn);
    OK(MPI_Win_unlock((int)(turn % size), wins[i]));
  }
  OK(MPI_Win_post(before, 0, wins[0]));
  OK(MPI_Win_start(next, 0, wins[0]));
  OK(MPI_Put(out, 4, MPI_INT, (rank + 1) % size, 0, 4, MPI_INT, wins[0]));
  OK(MPI_Win_complete(wins[0]));
  OK(MPI_Win_wait(wins[0]));
  OK(MPI_Win_fence(0, wins[1]));
  OK(MPI_Put(out, 4, MPI_INT, (rank + 1) % size, 0, 4, MPI_INT, wins[1]));
  OK(MPI_Win_fence(0, wins[1]));
}

static void parts(long turn) {
  static MPI_Request requests[2];
  if (turn == 0) {
    OK(MPI_Precv_init(in, 4, kWords / 4, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(out, 4, kWords / 4, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[1]));
  }
  OK(MPI_Startall(2, requests));
  for (int i = 0; i < 4; ++i) {
    take_time(turn + i);
    OK(MPI_Pready(i, requests[1]));
  }
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void* send_late(void* argument) {
  (void)argument;
  for (;;) {
    for (long i = 0; i < 300000000; ++i) { /* computes */
      __asm volatile("");
    }
    OK(MPI_Send(out, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD));
  }
  return NULL;
}

static void threads(long turn) {
  pthread_t thread;
  if (turn == 0 && pthread_create(&thread, NULL, send_late, NULL) != 0) abort();
  OK(MPI_Recv(in, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  int level;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  printf("rank %d: under way\n", rank);
  fflush(stdout);
  for (long turn = 0;; ++turn) {
    if (!strcmp(what, "collectives")) collectives(turn);
    if (!strcmp(what, "workers")) workers(turn);
    if (!strcmp(what, "probes")) probes(turn);
    if (!strcmp(what, "windows")) windows(turn);
    if (!strcmp(what, "parts")) parts(turn);
    if (!strcmp(what, "threads")) threads(turn);
  }
}
