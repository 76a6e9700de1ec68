/* Rounds of partitioned messages: what is readied arrives partition by partition, and MPI_Parrived,
 * MPI_Test and MPI_Wait say so, no sooner and no later (MPI 5.0, section 4.2). Any number of ranks
 * form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 3 };

/* ---- Arrival ---- */

/* One partition is readied: that one arrives, before any other is readied, and no other. */
static void each_alone(enum kind from, enum kind to, int partitions, size_t each) {
  const int stride = partitions % 3 == 0 ? 5 : 3; /* so all are met, in no order */
  MPI_Request both[2];
  struct buffer out = make_buffer(from, (size_t)partitions * each);
  struct buffer in = make_buffer(to, (size_t)partitions * each);
  step = "each partition alone";
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (int round = 0; round < 3; ++round) {
    const unsigned seed = (unsigned)(10 * round);
    fill_buffer(&out, seed + (unsigned)rank);
    clear(&in);
    OK(MPI_Startall(2, both));
    for (int n = 0; n < partitions; ++n) {
      const int p = (n * stride + round) % partitions;
      OK(MPI_Pready(p, both[kSend]));
      await_arrival(both[kReceive], p);
      CHECK(holds(&in, (size_t)p * each, each, seed + (unsigned)before));
      for (int later = n + 1; later < partitions; ++later) {
        CHECK(!has_arrived(both[kReceive], (later * stride + round) % partitions));
      }
      meet(); /* nobody readies the next one before all have looked */
    }
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, seed + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* Empty partitions, of no buffer, are readied and arrive like others. */
static void empty_alone(void) {
  enum { partitions = 5 };
  MPI_Request both[2];
  MPI_Status statuses[2];
  step = "empty partitions";
  OK(MPI_Precv_init(NULL, partitions, 0, MPI_INT, before, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
  OK(MPI_Psend_init(NULL, partitions, 0, MPI_INT, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kSend]));
  for (int round = 0; round < 3; ++round) {
    OK(MPI_Startall(2, both));
    for (int n = 0; n < partitions; ++n) {
      const int p = (2 * n + round) % partitions;
      OK(MPI_Pready(p, both[kSend]));
      await_arrival(both[kReceive], p);
      for (int later = n + 1; later < partitions; ++later) {
        CHECK(!has_arrived(both[kReceive], (2 * later + round) % partitions));
      }
      CHECK(is_done(both[kSend]) == 0 || n == partitions - 1);
      meet();
    }
    OK(MPI_Waitall(2, both, statuses));
    CHECK(count_of(&statuses[kReceive], MPI_INT) == 0);
    CHECK(statuses[kReceive].MPI_SOURCE == before && statuses[kReceive].MPI_TAG == tag);
  }
  free_all(2, both);
}

/* A receiver that does nothing but ask gets all. */
static void only_asked(enum kind from, enum kind to, int partitions, size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(from, (size_t)partitions * each);
  struct buffer in = make_buffer(to, (size_t)partitions * each);
  step = "MPI_Parrived alone";
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (unsigned round = 0; round < 2; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(2, both));
    ready_all(both[kSend], partitions);
    await_arrivals(both[kReceive], partitions);
    CHECK(holds_all(&in, round + (unsigned)before));
    for (int p = 0; p < partitions; ++p) CHECK(has_arrived(both[kReceive], p)); /* it stays so */
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* What MPI_Parrived says outside of rounds, and that it ends none. */
static void arrival_and_activity(void) {
  enum { partitions = 4, each = 24 };
  MPI_Request both[2];
  MPI_Status status;
  int flag = -1;
  struct buffer out = make_buffer(kOrdinary, partitions * each);
  struct buffer in = make_buffer(kOrdinary, partitions * each);
  step = "MPI_Parrived of no request";
  CHECK(has_arrived(MPI_REQUEST_NULL, 0));
  CHECK(has_arrived(MPI_REQUEST_NULL, 1000));
  step = "MPI_Parrived before the first start";
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (int p = 0; p < partitions; ++p) CHECK(has_arrived(both[kReceive], p));
  for (unsigned round = 0; round < 3; ++round) {
    step = "MPI_Parrived once started";
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Start(&both[kReceive]));
    for (int p = 0; p < partitions; ++p) CHECK(!has_arrived(both[kReceive], p));
    meet();
    OK(MPI_Start(&both[kSend]));
    OK(MPI_Pready_range(0, partitions - 2, both[kSend]));
    for (int p = 0; p < partitions - 1; ++p) await_arrival(both[kReceive], p);
    CHECK(!has_arrived(both[kReceive], partitions - 1));
    meet();
    OK(MPI_Pready(partitions - 1, both[kSend]));
    await_arrivals(both[kReceive], partitions);
    step = "a request whose partitions have all arrived";
    OK(MPI_Request_get_status(both[kReceive], &flag, &status));
    CHECK(flag && status.MPI_SOURCE == before && count_of(&status, MPI_BYTE) == partitions * each);
    expect_error(MPI_Start(&both[kReceive]), MPI_ERR_REQUEST, "active"); /* until it is ended */
    OK(MPI_Wait(&both[kReceive], &status));
    CHECK(both[kReceive] != MPI_REQUEST_NULL && !was_cancelled(&status));
    CHECK(status.MPI_SOURCE == before && status.MPI_TAG == tag);
    CHECK(count_of(&status, MPI_BYTE) == partitions * each);
    step = "MPI_Parrived after the end";
    for (int p = 0; p < partitions; ++p) CHECK(has_arrived(both[kReceive], p));
    OK(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  step = "waits for inactive requests";
  OK(MPI_Wait(&both[kReceive], &status));
  CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
  OK(MPI_Test(&both[kSend], &flag, &status));
  CHECK(flag && both[kSend] != MPI_REQUEST_NULL);
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* ---- Completion ---- */

static int is_over(MPI_Request* request) {
  int flag = -1;
  OK(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
  return flag;
}

/* A send is not over before all its partitions were readied, whatever has arrived. */
static void ends_with_the_last(enum kind from, int partitions, size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(from, (size_t)partitions * each);
  struct buffer in = make_buffer(kHeap, (size_t)partitions * each);
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (unsigned round = 0; round < 3; ++round) {
    const int last = (int)(round * 3) % partitions;
    step = "a send of which nothing was readied";
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(2, both));
    for (int n = 0; n < 50; ++n) CHECK(!is_over(&both[kSend]) && !is_over(&both[kReceive]));
    meet();
    step = "a send of which one partition was not readied";
    for (int p = 0; p < partitions; ++p) {
      if (p != last) OK(MPI_Pready(p, both[kSend]));
    }
    for (int p = 0; p < partitions; ++p) {
      if (p != last) await_arrival(both[kReceive], p);
    }
    for (int n = 0; n < 50; ++n) {
      int flag = -1, index = -1;
      CHECK(!is_over(&both[kSend]) && !is_over(&both[kReceive]));
      CHECK(!is_done(both[kSend]) && !is_done(both[kReceive]));
      OK(MPI_Testany(2, both, &index, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
      OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
      CHECK(!flag);
    }
    meet();
    OK(MPI_Pready(last, both[kSend]));
    while (!is_over(&both[kSend])) {
    }
    while (!is_over(&both[kReceive])) {
    }
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* All is readied before anybody has started to receive: MPI_Pready does not wait for the other
 * side. Once the receive has begun, both end. */
static void readied_before_the_receive(enum kind from, enum kind to, int partitions, size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(from, (size_t)partitions * each);
  struct buffer in = make_buffer(to, (size_t)partitions * each);
  step = "readied before the receive has started";
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (unsigned round = 0; round < 3; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    clear(&in);
    OK(MPI_Start(&both[kSend]));
    ready_all(both[kSend], partitions);
    meet();
    CHECK(is_untouched(&in, 0, in.bytes)); /* the buffer is the program's until it starts */
    OK(MPI_Start(&both[kReceive]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* The sender is a round ahead of the receiver, whose buffer keeps what it has until its own start.
 */
static void a_round_ahead(enum kind from, enum kind to, int partitions, size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(from, (size_t)partitions * each);
  struct buffer in = make_buffer(to, (size_t)partitions * each);
  step = "a sender that is a round ahead";
  init_ring(both, &out, partitions, &in, partitions, tag);
  fill_buffer(&out, (unsigned)rank);
  OK(MPI_Startall(2, both));
  ready_all(both[kSend], partitions);
  for (unsigned round = 0; round < 4; ++round) {
    await_arrivals(both[kReceive], partitions);
    OK(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE));
    fill_buffer(&out, round + 1 + (unsigned)rank);
    OK(MPI_Start(&both[kSend]));
    ready_all(both[kSend], partitions);
    meet();
    for (int p = 0; p < partitions; ++p) CHECK(has_arrived(both[kReceive], p));
    CHECK(holds_all(&in, round + (unsigned)before));
    OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
    meet();
    CHECK(holds_all(&in, round + (unsigned)before));
    clear(&in);
    OK(MPI_Start(&both[kReceive]));
  }
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK(holds_all(&in, 4 + (unsigned)before));
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* ---- Which partitions the calls name ---- */

static void expect_arrived(MPI_Request receive, int partitions, const char* pattern) {
  for (int p = 0; p < partitions; ++p) {
    if (pattern[p] == 'x') await_arrival(receive, p);
  }
  for (int p = 0; p < partitions; ++p) CHECK(has_arrived(receive, p) == (pattern[p] == 'x'));
  meet();
}

static void ranges_and_lists(int partitions, size_t each) {
  static const int some[] = {7, 0}, rest[] = {9, 4, 8};
  MPI_Request both[2];
  struct buffer out = make_buffer(kHeap, (size_t)partitions * each);
  struct buffer in = make_buffer(kHeap, (size_t)partitions * each);
  CHECK(partitions == 10);
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (unsigned round = 0; round < 2; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(2, both));
    step = "MPI_Pready_range, both ends included";
    OK(MPI_Pready_range(1, 3, both[kSend]));
    expect_arrived(both[kReceive], partitions, ".xxx......");
    step = "MPI_Pready_range of one partition";
    OK(MPI_Pready_range(5, 5, both[kSend]));
    expect_arrived(both[kReceive], partitions, ".xxx.x....");
    step = "MPI_Pready_list in any order";
    OK(MPI_Pready_list(2, some, both[kSend]));
    expect_arrived(both[kReceive], partitions, "xxxx.x.x..");
    step = "MPI_Pready_list of nothing";
    OK(MPI_Pready_list(0, NULL, both[kSend]));
    OK(MPI_Pready(6, both[kSend]));
    expect_arrived(both[kReceive], partitions, "xxxx.xxx..");
    OK(MPI_Pready_list(3, rest, both[kSend]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* ---- Many ---- */

/* Rounds one after the other, without anything between them: none takes the data of another. */
static void many_rounds(int rounds, int partitions_out, int partitions_in, size_t bytes) {
  MPI_Request both[2];
  struct buffer out = make_buffer(kHeap, bytes), in = make_buffer(kOrdinary, bytes);
  step = "many rounds";
  init_ring(both, &out, partitions_out, &in, partitions_in, tag);
  for (unsigned round = 0; round < (unsigned)rounds; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(2, both));
    for (int p = 0; p < partitions_out; ++p) {
      OK(MPI_Pready((int)round % 2 == 0 ? p : partitions_out - 1 - p, both[kSend]));
    }
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* Many requests at a time, all with partitions of their own: there are no tags of partitions that
 * could run out. */
static void many_requests(void) {
  enum { requests = 150, partitions = 100, each = 8 };
  static MPI_Request all[2 * requests];
  struct buffer out = make_buffer(kHeap, requests * partitions * each);
  struct buffer in = make_buffer(kHeap, requests * partitions * each);
  step = "many requests";
  for (int turn = 0; turn < 3; ++turn) {
    for (int n = 0; n < requests; ++n) {
      const size_t first = (size_t)n * partitions * each;
      OK(MPI_Psend_init(out.at + first, partitions, each, MPI_BYTE, next, n % 3, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &all[n]));
      OK(MPI_Precv_init(in.at + first, partitions, each, MPI_BYTE, before, n % 3, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &all[requests + n]));
    }
    for (unsigned round = 0; round < 2; ++round) {
      fill_buffer(&out, round + (unsigned)(rank + turn));
      clear(&in);
      OK(MPI_Startall(2 * requests, all));
      for (int n = 0; n < requests; ++n) ready_all(all[n], partitions);
      OK(MPI_Waitall(2 * requests, all, MPI_STATUSES_IGNORE));
      CHECK(holds_all(&in, round + (unsigned)(before + turn)));
    }
    free_all(2 * requests, all);
  }
  drop_buffer(&out);
  drop_buffer(&in);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  for (int from = 0; from < kKinds; ++from) {
    for (int to = 0; to < kKinds; ++to) {
      each_alone((enum kind)from, (enum kind)to, 7, 1000);
      only_asked((enum kind)from, (enum kind)to, 6, 100000);
      readied_before_the_receive((enum kind)from, (enum kind)to, 4, 30000);
      a_round_ahead((enum kind)from, (enum kind)to, 3, 5000);
    }
    ends_with_the_last((enum kind)from, 4, 200);
    ends_with_the_last((enum kind)from, 5, 40000);
  }
  each_alone(kHeap, kHeap, 1, 8);
  each_alone(kOrdinary, kOrdinary, 70, 8);
  each_alone(kHeap, kHeap, 5, 70000);
  a_round_ahead(kHeap, kHeap, 3, 200000);
  a_round_ahead(kOrdinary, kOrdinary, 8, 8);
  empty_alone();
  arrival_and_activity();
  ranges_and_lists(10, 16);
  ranges_and_lists(10, 50000);
  many_rounds(300, 8, 8, 64);
  many_rounds(100, 70, 3, 6300);
  many_rounds(20, 4, 4, 400000);
  many_rounds(20, 200, 200, 200000);
  many_rounds(10, 16, 16, 2 << 20);
  many_requests();
  return end_well("all rounds were right");
}
