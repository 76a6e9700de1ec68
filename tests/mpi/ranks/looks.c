/* Two ranks that share one core wait for each other in loops of calls that only look (MPI_Iprobe,
 * MPI_Test and its kin, MPI_Parrived, MPI_Win_test). Such a loop must now and then leave the core
 * to the other rank: else it looks until its time slice is over, some tens of thousands of times,
 * for each message.
 */
#define _GNU_SOURCE
#include "tests/mpi/ranks/check.h"
#include "tests/support/first_core.h"

enum { kRounds = 40, kMostLooks = 1200 };

static long looks;

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

enum { kIprobe, kImprobe, kRequests, kParrived = kRequests + 5, kWinTest, kWays };

static MPI_Request to, from; /* of one partition each */
static int parts[2];
static MPI_Win window;
static MPI_Group other;

static void open_all(void) {
  MPI_Group all;
  const int peer = 1 - rank;
  OK(MPI_Psend_init(&parts[0], 1, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &to));
  OK(MPI_Precv_init(&parts[1], 1, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &from));
  OK(MPI_Win_create(parts, sizeof(parts), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  OK(MPI_Group_incl(all, 1, &peer, &other));
  OK(MPI_Group_free(&all));
}

static void close_all(void) {
  OK(MPI_Request_free(&to));
  OK(MPI_Request_free(&from));
  OK(MPI_Win_free(&window));
  OK(MPI_Group_free(&other));
}

static void tell(int way) {
  if (way == kParrived) {
    parts[0] = way;
    OK(MPI_Start(&to));
    OK(MPI_Pready(0, to));
    OK(MPI_Wait(&to, MPI_STATUS_IGNORE));
  } else if (way == kWinTest) {
    OK(MPI_Win_start(other, 0, window));
    OK(MPI_Win_complete(window));
  } else {
    OK(MPI_Send(&way, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD));
  }
}

static void by_parrived(void) {
  int flag = 0;
  OK(MPI_Start(&from));
  for (; !flag; ++looks) OK(MPI_Parrived(from, 0, &flag));
  OK(MPI_Wait(&from, MPI_STATUS_IGNORE));
  CHECK(parts[1] == kParrived);
}

static void by_win_test(void) {
  int flag = 0;
  OK(MPI_Win_post(other, 0, window));
  for (; !flag; ++looks) OK(MPI_Win_test(window, &flag));
}

static void await(int way) {
  static void (*const ways[])(MPI_Request*) = {by_test, by_testall, by_testany, by_testsome,
                                               by_get_status};
  MPI_Request request;
  int data = -1;
  if (way == kIprobe) {
    by_iprobe();
    OK(MPI_Recv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (way == kImprobe) {
    by_improbe();
  } else if (way == kParrived) {
    by_parrived();
  } else if (way == kWinTest) {
    by_win_test();
  } else {
    OK(MPI_Irecv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request));
    ways[way - kRequests](&request);
    CHECK(data == way);
  }
}

int main(int argc, char** argv) {
  static const char* const names[kWays] = {"MPI_Iprobe",
                                           "MPI_Improbe",
                                           "MPI_Test",
                                           "MPI_Testall",
                                           "MPI_Testany",
                                           "MPI_Testsome",
                                           "MPI_Request_get_status",
                                           "MPI_Parrived",
                                           "MPI_Win_test"};
  begin(&argc, &argv);
  CHECK(size == 2);
  open_all();
  CHECK(keep_to_first_core() == 0);
  for (int way = 0; way < kWays; ++way) {
    step = names[way];
    looks = 0;
    for (int round = 0; round < kRounds; ++round) {
      if (rank == 1) await(way);
      tell(way);
      if (rank == 0) await(way);
    }
    if (looks > (long)kRounds * kMostLooks) {
      fprintf(stderr, "%s: rank %d looked %ld times for each message\n", step, rank,
              looks / kRounds);
    }
    CHECK(looks <= (long)kRounds * kMostLooks);
  }
  close_all();
  OK(MPI_Finalize());
  puts("loops of looks leave the core to others");
  return 0;
}
