/* Partitioned requests among plain persistent ones, nonblocking ones and null ones, in every call
 * that starts, tests and waits for several (MPI 5.0, sections 3.7.5 and 4.2.2). Any number of ranks
 * form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 7, partitions = 6, count = 8, first_started = 6 };
enum way {
  wait_each,
  wait_backwards,
  test_each,
  wait_all,
  wait_all_ignored,
  test_all,
  wait_any,
  test_any,
  wait_some,
  test_some,
  look_first,
  look_all,
  look_any,
  look_some,
  way_count
};
static const char* const names[] = {"MPI_Wait",
                                    "MPI_Wait, backwards",
                                    "MPI_Test",
                                    "MPI_Waitall",
                                    "MPI_Waitall without statuses",
                                    "MPI_Testall",
                                    "MPI_Waitany",
                                    "MPI_Testany",
                                    "MPI_Waitsome",
                                    "MPI_Testsome",
                                    "MPI_Request_get_status",
                                    "MPI_Request_get_status_all",
                                    "MPI_Request_get_status_any",
                                    "MPI_Request_get_status_some"};

/* The places of requests: a partitioned pair, a plain persistent pair, another partitioned pair
 * that is larger, a nonblocking receive, and none. */
enum { precv, psend, recv_, send_, large_in, large_out, irecv, none };

static MPI_Request all[count];
static MPI_Status statuses[count];
static struct buffer ins[3], outs[3];
static int word_in, word_out;

static void make_requests(enum kind kind) {
  static const size_t sizes[] = {partitions * 8, 100, partitions * 50000};
  for (int i = 0; i < 3; ++i) {
    ins[i] = make_buffer(kind, sizes[i]);
    outs[i] = make_buffer(kind, sizes[i]);
  }
  init_ring(&all[precv], &outs[0], partitions, &ins[0], partitions / 2, tag);
  OK(MPI_Recv_init(ins[1].at, 100, MPI_BYTE, before, tag, MPI_COMM_WORLD, &all[recv_]));
  OK(MPI_Send_init(outs[1].at, 100, MPI_BYTE, next, tag, MPI_COMM_WORLD, &all[send_]));
  init_ring(&all[large_in], &outs[2], partitions, &ins[2], partitions, tag);
  all[irecv] = all[none] = MPI_REQUEST_NULL;
}

static void free_requests(void) {
  free_all(first_started, all);
  for (int i = 0; i < 3; ++i) {
    drop_buffer(&ins[i]);
    drop_buffer(&outs[i]);
  }
}

static void end_any(int may_wait) {
  int ended[count] = {0};
  for (;;) {
    MPI_Status status;
    int index = -1, flag = 1;
    if (may_wait) OK(MPI_Waitany(count, all, &index, &status));
    if (!may_wait) OK(MPI_Testany(count, all, &index, &flag, &status));
    if (!flag) continue;
    if (index == MPI_UNDEFINED) break;
    CHECK(index >= 0 && index < none && !ended[index]++);
    statuses[index] = status;
  }
  for (int i = 0; i < none; ++i) CHECK(ended[i]);
}

static void end_some(int may_wait) {
  int ended[count] = {0}, done = 0;
  while (done != MPI_UNDEFINED) {
    int indices[count];
    MPI_Status found[count];
    OK(may_wait ? MPI_Waitsome(count, all, &done, indices, found)
                : MPI_Testsome(count, all, &done, indices, found));
    for (int i = 0; done != MPI_UNDEFINED && i < done; ++i) {
      CHECK(indices[i] >= 0 && indices[i] < none && !ended[indices[i]]++);
      statuses[indices[i]] = found[i];
    }
  }
  for (int i = 0; i < none; ++i) CHECK(ended[i]);
}

/* What the calls that only look say; then all are ended. */
static void look(enum way way) {
  int flag = 0, found = -1, outcount = 0, indices[count];
  MPI_Status seen[count];
  while (way == look_all && !flag) OK(MPI_Request_get_status_all(count, all, &flag, seen));
  while (way == look_any && !flag) {
    OK(MPI_Request_get_status_any(count, all, &found, &flag, seen));
    CHECK(!flag || (found >= 0 && found < none));
  }
  while (way == look_some && outcount < none) {
    OK(MPI_Request_get_status_some(count, all, &outcount, indices, seen));
    CHECK(outcount >= 0 && outcount <= none);
  }
  for (int i = 0; way == look_first && i < none; ++i) {
    for (flag = 0; !flag;) OK(MPI_Request_get_status(all[i], &flag, &seen[i]));
  }
  if (way == look_first || way == look_all) {
    CHECK(seen[precv].MPI_SOURCE == before && count_of(&seen[precv], MPI_BYTE) == partitions * 8);
    CHECK(seen[recv_].MPI_SOURCE == before && seen[large_in].MPI_TAG == tag);
  }
  OK(MPI_Waitall(count, all, statuses));
}

static void end(enum way way) {
  int flag = 0;
  switch (way) {
    case wait_all:
      OK(MPI_Waitall(count, all, statuses));
      break;
    case wait_all_ignored:
      OK(MPI_Waitall(count, all, MPI_STATUSES_IGNORE));
      break;
    case test_all:
      while (!flag) OK(MPI_Testall(count, all, &flag, statuses));
      break;
    case wait_any:
    case test_any:
      end_any(way == wait_any);
      break;
    case wait_some:
    case test_some:
      end_some(way == wait_some);
      break;
    case wait_each:
    case wait_backwards:
    case test_each:
      for (int n = 0; n < count; ++n) {
        const int i = way == wait_backwards ? count - 1 - n : n;
        flag = way != test_each;
        if (flag) OK(MPI_Wait(&all[i], &statuses[i]));
        while (!flag) OK(MPI_Test(&all[i], &flag, &statuses[i]));
      }
      break;
    default:
      look(way);
  }
}

/* As long as a wait needs to fall asleep, and longer. No call of MPI is made meanwhile. */
static void compute(double seconds) {
  const double start = MPI_Wtime();
  while (MPI_Wtime() < start + seconds) {
  }
}

/* Every other rank readies its partitions late: the others wait for it. */
static void check_way(enum way way, int is_late) {
  const unsigned seed = (unsigned)way * 10;
  step = names[way];
  memset(statuses, 0x7f, sizeof(statuses));
  for (int i = 0; i < 3; ++i) {
    fill_buffer(&outs[i], seed + (unsigned)(i + rank));
    clear(&ins[i]);
  }
  word_out = (int)seed + rank;
  OK(MPI_Irecv(&word_in, 1, MPI_INT, before, 8, MPI_COMM_WORLD, &all[irecv]));
  OK(MPI_Startall(first_started, all));
  if (is_late && rank % 2 == 1) compute(0.003);
  OK(MPI_Send(&word_out, 1, MPI_INT, next, 8, MPI_COMM_WORLD));
  for (int p = 0; p < partitions; ++p) {
    OK(MPI_Pready(p, all[large_out]));
    OK(MPI_Pready(partitions - 1 - p, all[psend]));
  }
  end(way);
  for (int i = 0; i < first_started; ++i) CHECK(all[i] != MPI_REQUEST_NULL);
  CHECK(all[irecv] == MPI_REQUEST_NULL && word_in == (int)seed + before);
  for (int i = 0; i < 3; ++i) CHECK(holds_all(&ins[i], seed + (unsigned)(i + before)));
  if (way == wait_all_ignored) return;
  CHECK(statuses[precv].MPI_SOURCE == before && statuses[precv].MPI_TAG == tag);
  CHECK(count_of(&statuses[precv], MPI_BYTE) == partitions * 8);
  CHECK(count_of(&statuses[large_in], MPI_BYTE) == partitions * 50000);
  CHECK(count_of(&statuses[recv_], MPI_BYTE) == 100 && !was_cancelled(&statuses[psend]));
}

/* When nothing is active, nothing is waited for. */
static void nothing_active(void) {
  int index = -1, flag = -1, outcount = -1, indices[count];
  step = "no active request";
  OK(MPI_Waitany(count, all, &index, MPI_STATUS_IGNORE));
  CHECK(index == MPI_UNDEFINED);
  OK(MPI_Testany(count, all, &index, &flag, MPI_STATUS_IGNORE));
  CHECK(index == MPI_UNDEFINED && flag);
  OK(MPI_Waitsome(count, all, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == MPI_UNDEFINED);
  OK(MPI_Testsome(count, all, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == MPI_UNDEFINED);
  OK(MPI_Testall(count, all, &flag, MPI_STATUSES_IGNORE));
  CHECK(flag);
  OK(MPI_Waitall(count, all, MPI_STATUSES_IGNORE));
}

/* One of several ends; the others are waited for without being disturbed. */
static void one_of_several(void) {
  int index = -1;
  MPI_Request two[2];
  step = "one request of several";
  fill_buffer(&outs[0], 3);
  fill_buffer(&outs[2], 4);
  OK(MPI_Startall(2, &all[precv]));
  OK(MPI_Startall(2, &all[large_in]));
  meet();
  ready_all(all[psend], partitions);
  two[0] = all[large_in];
  two[1] = all[precv];
  OK(MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE));
  CHECK(index == 1 && !is_done(all[large_in]));
  meet();
  ready_all(all[large_out], partitions);
  OK(MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE));
  CHECK(index == 0 && two[0] == all[large_in]);
  OK(MPI_Wait(&all[psend], MPI_STATUS_IGNORE));
  OK(MPI_Wait(&all[large_out], MPI_STATUS_IGNORE));
  CHECK(holds_all(&ins[0], 3) && holds_all(&ins[2], 4));
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  for (int kind = 0; kind < kKinds; ++kind) {
    make_requests((enum kind)kind);
    nothing_active();
    for (int way = 0; way < way_count; ++way) {
      check_way((enum way)way, 0);
      check_way((enum way)way, 1);
    }
    one_of_several();
    nothing_active();
    free_requests();
  }
  return end_well("all requests ended");
}
