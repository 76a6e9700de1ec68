/* circles WHAT: ranks that can never go on, each waiting for another one, for `ferryctl why`. Each
 * first prints "rank R: under way". A rank that has nothing to do sleeps outside MPI.
 *
 *   mismatch  the last rank is in a scatter from rank 0, the others are in a broadcast from the last
 *   half      the last rank never comes to a barrier of the odd ranks; the others compute
 *   ssend     rank 0 sends to the last rank synchronously, which is in a barrier with the others
 *   probes    each probes for a message of the next
 *   anybody   each receives from any rank
 *   all_but   each receives from any rank, but the last one computes
 *   waitany   each waits for any of its receives from the others
 *   locks     ranks 0 and 1 each hold the lock of the window that the other one wants
 *   posts     ranks 0 and 1 each open an epoch to the other, which has not posted
 */
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

static const char* what;
static int last;

static int is(const char* name) { return strcmp(what, name) == 0; }

static void collectives(void) {
  int word = 0, words[64];
  MPI_Comm half;
  if (is("mismatch")) {
    if (rank != last) OK(MPI_Bcast(&word, 1, MPI_INT, last, MPI_COMM_WORLD));
    OK(MPI_Scatter(words, 1, MPI_INT, &word, 1, MPI_INT, 0, MPI_COMM_WORLD));
  }
  if (is("half")) {
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Comm_set_name(half, "half"));
    if (rank % 2 == last % 2 && rank != last) OK(MPI_Barrier(half));
  }
}

static void messages(void) {
  int words[8];
  MPI_Request requests[8];
  int index;
  if (is("ssend")) {
    if (rank == 0) OK(MPI_Ssend(words, 1, MPI_INT, last, 5, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  if (is("probes")) OK(MPI_Probe((rank + 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (is("anybody") || (is("all_but") && rank != last)) {
    OK(MPI_Recv(words, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  if (is("waitany")) {
    int count = 0;
    for (int from = 0; from < size; ++from) {
      if (from == rank) continue;
      OK(MPI_Irecv(words + count, 1, MPI_INT, from, 5, MPI_COMM_WORLD, requests + count));
      ++count;
    }
    OK(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE));
  }
}

static void windows(void) {
  MPI_Win wins[2];
  MPI_Group all, one;
  long* base;
  const int other = 1 - rank;
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Win_allocate(sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[i]));
  }
  if (is("locks")) {
    if (rank < 2) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, wins[rank]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank < 2) {
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, wins[other]));
      OK(MPI_Win_flush(0, wins[other]));
    }
  }
  if (is("posts") && rank < 2) {
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &other, &one));
    OK(MPI_Win_start(one, 0, wins[0]));
    OK(MPI_Win_complete(wins[0]));
  }
}

int main(int argc, char** argv) {
  what = argc > 1 ? argv[1] : "";
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  last = size - 1;
  printf("rank %d: under way\n", rank);
  fflush(stdout);
  collectives();
  messages();
  if (is("locks") || is("posts")) windows();
  for (;;) pause();
}
