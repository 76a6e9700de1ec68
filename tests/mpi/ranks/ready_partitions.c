/* Partitioned messages between the ranks of a ring, first things first: rounds of partitions that
 * are readied in any order, each of which arrives by itself, in memory of all kinds of places.
 */
#include "tests/mpi/ranks/check.h"

enum { kRounds = 20, kTag = 5 };

struct pair {
  unsigned char* sent;
  unsigned char* got;
  size_t bytes; /* of a partition */
  int partitions;
  MPI_Request requests[2];
};

static void await_arrival(MPI_Request request, int partition) {
  for (int flag = 0; !flag;) OK(MPI_Parrived(request, partition, &flag));
}

static void make(struct pair* pair, int partitions, size_t bytes, int is_allocated) {
  const size_t total = bytes * (size_t)partitions;
  pair->bytes = bytes;
  pair->partitions = partitions;
  if (is_allocated) {
    OK(MPI_Alloc_mem((MPI_Aint)(total + 1), MPI_INFO_NULL, &pair->sent));
    OK(MPI_Alloc_mem((MPI_Aint)(total + 1), MPI_INFO_NULL, &pair->got));
  } else {
    pair->sent = malloc(total + 1);
    pair->got = malloc(total + 1);
  }
  OK(MPI_Psend_init(pair->sent, partitions, (MPI_Count)bytes, MPI_BYTE, next, kTag, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &pair->requests[0]));
  OK(MPI_Precv_init(pair->got, partitions, (MPI_Count)bytes, MPI_BYTE, before, kTag, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &pair->requests[1]));
}

static void drop(struct pair* pair, int is_allocated) {
  OK(MPI_Request_free(&pair->requests[0]));
  OK(MPI_Request_free(&pair->requests[1]));
  if (is_allocated) {
    OK(MPI_Free_mem(pair->sent));
    OK(MPI_Free_mem(pair->got));
  } else {
    free(pair->sent);
    free(pair->got);
  }
}

/* All partitions, in an order of the round's. */
static void go_round(struct pair* pair, int round) {
  const size_t total = pair->bytes * (size_t)pair->partitions;
  MPI_Status statuses[2];
  fill(pair->sent, total, (unsigned)(rank * 100 + round));
  memset(pair->got, 0, total);
  OK(MPI_Startall(2, pair->requests));
  for (int i = 0; i < pair->partitions; ++i) {
    const int partition = round % 2 == 0 ? i : pair->partitions - 1 - i;
    OK(MPI_Pready(partition, pair->requests[0]));
  }
  OK(MPI_Waitall(2, pair->requests, statuses));
  CHECK(is_filled(pair->got, total, (unsigned)(before * 100 + round)));
  CHECK(statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == kTag);
  CHECK(count_of(&statuses[1], MPI_BYTE) == (int)total);
}

/* One after the other arrives before the next one is readied. */
static void go_one_by_one(struct pair* pair) {
  const size_t total = pair->bytes * (size_t)pair->partitions;
  fill(pair->sent, total, (unsigned)rank);
  OK(MPI_Startall(2, pair->requests));
  for (int i = 0; i < pair->partitions; ++i) {
    int flag = -1;
    if (i + 1 < pair->partitions) {
      OK(MPI_Parrived(pair->requests[1], i + 1, &flag));
      CHECK(flag == 0);
    }
    OK(MPI_Pready(i, pair->requests[0]));
    await_arrival(pair->requests[1], i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Waitall(2, pair->requests, MPI_STATUSES_IGNORE));
  CHECK(is_filled(pair->got, total, (unsigned)before));
}

int main(int argc, char** argv) {
  static const struct {
    int partitions;
    size_t bytes;
  } shapes[] = {{1, 8}, {8, 8}, {3, 0}, {70, 100}, {8, 20000}, {200, 1000}, {16, 131072}};
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    for (int is_allocated = 0; is_allocated < 2; ++is_allocated) {
      struct pair pair;
      char name[100];
      snprintf(name, sizeof(name), "%d partitions of %d bytes%s", shapes[i].partitions,
               (int)shapes[i].bytes, is_allocated ? " that MPI has allocated" : "");
      step = name;
      make(&pair, shapes[i].partitions, shapes[i].bytes, is_allocated);
      for (int round = 0; round < kRounds; ++round) go_round(&pair, round);
      if (shapes[i].partitions <= 16) go_one_by_one(&pair);
      OK(MPI_Barrier(MPI_COMM_WORLD));
      drop(&pair, is_allocated);
    }
  }
  return end_well("all pairs were right");
}
