/* Two ranks that share one core wait for each other in loops of calls that only look (MPI_Iprobe,
 * MPI_Test and its kin). Such a loop must now and then leave the core to the other rank: else it looks
 * until its time slice is over, some tens of thousands of times, for each message.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "tests/mpi/ranks/check.h"

enum { kRounds = 40, kMostLooks = 1200 };

static long looks;

/* Rank 0's first core, for both. */
static void share_a_core(void) {
  cpu_set_t all, one;
  int core = 0;
  CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
  while (!CPU_ISSET(core, &all)) ++core;
  OK(MPI_Bcast(&core, 1, MPI_INT, 0, MPI_COMM_WORLD));
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void by_iprobe(void) {
  int flag = 0;
  for (; !flag; ++looks) OK(MPI_Iprobe(1 - rank, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
}

static void by_improbe(void) {
  int flag = 0, data;
  MPI_Message message;
  for (; !flag; ++looks) {
    OK(MPI_Improbe(1 - rank, 0, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
  }
  OK(MPI_Mrecv(&data, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
}

static void by_test(MPI_Request* request) {
  int flag = 0;
  for (; !flag; ++looks) OK(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
}

static void by_testall(MPI_Request* request) {
  int flag = 0;
  for (; !flag; ++looks) OK(MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE));
}

static void by_testany(MPI_Request* request) {
  int flag = 0, index;
  for (; !flag; ++looks) OK(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE));
}

static void by_testsome(MPI_Request* request) {
  int count = 0, index;
  for (; count == 0; ++looks) OK(MPI_Testsome(1, request, &count, &index, MPI_STATUSES_IGNORE));
}

static void by_get_status(MPI_Request* request) {
  int flag = 0;
  for (; !flag; ++looks) OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
  OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void await(int way) {
  static void (*const ways[])(MPI_Request*) = {by_test, by_testall, by_testany, by_testsome,
                                               by_get_status};
  MPI_Request request;
  int data = -1;
  if (way == 0) {
    by_iprobe();
    OK(MPI_Recv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (way == 1) {
    by_improbe();
  } else {
    OK(MPI_Irecv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request));
    ways[way - 2](&request);
    CHECK(data == way);
  }
}

int main(int argc, char** argv) {
  static const char* const names[] = {"MPI_Iprobe",  "MPI_Improbe",  "MPI_Test",
                                      "MPI_Testall", "MPI_Testany",  "MPI_Testsome",
                                      "MPI_Request_get_status"};
  begin(&argc, &argv);
  CHECK(size == 2);
  share_a_core();
  for (int way = 0; way < 7; ++way) {
    step = names[way];
    looks = 0;
    for (int round = 0; round < kRounds; ++round) {
      if (rank == 1) await(way);
      OK(MPI_Send(&way, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD));
      if (rank == 0) await(way);
    }
    if (looks > (long)kRounds * kMostLooks) {
      fprintf(stderr, "%s: rank %d looked %ld times for each message\n", step, rank,
              looks / kRounds);
    }
    CHECK(looks <= (long)kRounds * kMostLooks);
  }
  OK(MPI_Finalize());
  puts("loops of looks leave the core to others");
  return 0;
}
