/* Windows of nonblocking small messages: receives that start before their messages come and after,
 * end in every way that MPI has, and have the right statuses. Any number of ranks form a ring.
 */
#include "tests/mpi/ranks/check.h"

enum { window = 300, room = 8200, first_tag = 100 };
enum way {
  all,
  all_ignored,
  test_all,
  some,
  test_some,
  any,
  each,
  each_backwards,
  tests,
  way_count
};
static const char* const names[] = {
    "Waitall", "Waitall without statuses", "Testall", "Waitsome", "Testsome", "Waitany",
    "Wait",    "Wait, backwards",          "Test"};
static const int lengths[] = {8, 0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 4096, 8192, 5, 64};
enum { length_count = sizeof(lengths) / sizeof(lengths[0]) };

static unsigned char *out, *in;
static MPI_Request requests[2 * window];
static MPI_Status statuses[2 * window];

static int length_of(int n) { return lengths[n % length_count]; }

static void check_status(int n) {
  CHECK(statuses[n].MPI_SOURCE == before && statuses[n].MPI_TAG == first_tag + n);
  CHECK(count_of(&statuses[n], MPI_BYTE) == length_of(n) && !was_cancelled(&statuses[n]));
}

static void send_all(unsigned seed, MPI_Comm comm) {
  for (int n = 0; n < window; ++n) {
    fill(out + n * room, (size_t)length_of(n), seed + (unsigned)(n + rank));
    OK(MPI_Isend(out + n * room, length_of(n), MPI_BYTE, next, first_tag + n, comm,
                 &requests[window + n]));
  }
}

/* Every third receive takes any source, every fifth any tag: messages of one rank come in order,
 * and so do these receives. */
static void receive_all(MPI_Comm comm) {
  memset(in, 0xcc, (size_t)window * room);
  for (int n = 0; n < window; ++n) {
    OK(MPI_Irecv(in + n * room, length_of(n), MPI_BYTE, n % 3 == 0 ? MPI_ANY_SOURCE : before,
                 n % 5 == 0 ? MPI_ANY_TAG : first_tag + n, comm, &requests[n]));
  }
}

static void end_some(int may_wait) {
  int indices[2 * window], done = 0, ended = 0;
  static MPI_Status found[2 * window];
  while (done != MPI_UNDEFINED) {
    OK(may_wait ? MPI_Waitsome(2 * window, requests, &done, indices, found)
                : MPI_Testsome(2 * window, requests, &done, indices, found));
    for (int i = 0; done != MPI_UNDEFINED && i < done; ++i) {
      statuses[indices[i]] = found[i];
      ++ended;
    }
  }
  CHECK(ended == 2 * window);
}

static void end_any(void) {
  for (int ended = 0; ended < 2 * window; ++ended) {
    MPI_Status status;
    int index = -1;
    OK(MPI_Waitany(2 * window, requests, &index, &status));
    CHECK(index >= 0 && index < 2 * window);
    statuses[index] = status;
  }
}

static void end_each(enum way way) {
  for (int i = 0; i < 2 * window; ++i) {
    const int n = way == each_backwards ? 2 * window - 1 - i : i;
    int done = way != tests;
    if (done) OK(MPI_Wait(&requests[n], &statuses[n]));
    while (!done) OK(MPI_Test(&requests[n], &done, &statuses[n]));
  }
}

static void end(enum way way) {
  int done = 0;
  switch (way) {
    case all:
      OK(MPI_Waitall(2 * window, requests, statuses));
      break;
    case all_ignored:
      OK(MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE));
      break;
    case test_all:
      while (!done) OK(MPI_Testall(2 * window, requests, &done, statuses));
      break;
    case some:
    case test_some:
      end_some(way == some);
      break;
    case any:
      end_any();
      break;
    default:
      end_each(way);
  }
}

static void exchange(enum way way, int are_there, unsigned seed) {
  step = names[way];
  memset(statuses, 0x7f, sizeof(statuses));
  if (!are_there) {
    receive_all(MPI_COMM_WORLD);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  send_all(seed, MPI_COMM_WORLD);
  if (are_there) {
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* all messages have left, or wait for room */
    receive_all(MPI_COMM_WORLD);
  }
  end(way);
  for (int n = 0; n < window; ++n) {
    const size_t length = (size_t)length_of(n);
    CHECK(requests[n] == MPI_REQUEST_NULL && requests[window + n] == MPI_REQUEST_NULL);
    CHECK(is_filled(in + n * room, length, seed + (unsigned)(n + before)));
    CHECK(in[n * room + (int)length] == 0xcc);
    if (way != all_ignored) check_status(n);
  }
}

/* In a window of arrived messages, one is longer than its receive. */
static void truncated(int ignored) {
  enum { count = 9, wrong = 4 };
  int result;
  step = "a window with a truncated message";
  for (int n = 0; n < count; ++n) {
    fill(out + n * room, 24, (unsigned)n);
    OK(MPI_Isend(out + n * room, 24, MPI_BYTE, next, n, MPI_COMM_WORLD, &requests[count + n]));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int n = 0; n < count; ++n) {
    OK(MPI_Irecv(in + n * room, n == wrong ? 8 : 24, MPI_BYTE, before, n, MPI_COMM_WORLD,
                 &requests[n]));
  }
  result = MPI_Waitall(2 * count, requests, ignored ? MPI_STATUSES_IGNORE : statuses);
  CHECK(result == (ignored ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS));
  for (int n = 0; n < 2 * count; ++n) {
    CHECK(requests[n] == MPI_REQUEST_NULL);
    CHECK(ignored || statuses[n].MPI_ERROR == (n == wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    CHECK(n == wrong || n >= count || is_filled(in + n * room, 24, (unsigned)n));
  }
}

/* A receive whose message has come is a request like any other. */
static void single(void) {
  MPI_Request request, copy;
  MPI_Status status, seen;
  MPI_Comm other;
  int flag = 0, value;
  step = "single requests";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  for (int n = 0; n < 5; ++n) {
    const int sent = rank * 10 + n;
    OK(MPI_Send(&sent, 1, MPI_INT, next, n, other));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));

  OK(MPI_Irecv(&value, 1, MPI_INT, before, 0, other, &request));
  for (int i = 0; i < 2; ++i) {
    flag = 0;
    while (!flag) OK(MPI_Request_get_status(request, &flag, &seen));
    CHECK(seen.MPI_SOURCE == before && seen.MPI_TAG == 0);
  }
  CHECK(value == before * 10);
  copy = request;
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == before && status.MPI_TAG == 0);
  expect_error(MPI_Test(&copy, &flag, &status), MPI_ERR_REQUEST, "does not exist");
  expect_error(MPI_Waitall(1, &copy, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "does not exist");

  OK(MPI_Irecv(&value, 1, MPI_INT, before, 1, other, &request));
  expect_error(MPI_Start(&request), MPI_ERR_REQUEST, "persistent");
  copy = request;
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  expect_error(MPI_Wait(&copy, &status), MPI_ERR_REQUEST, "does not exist");

  OK(MPI_Irecv(&value, 1, MPI_INT, before, 2, other, &request));
  OK(MPI_Probe(before, 3, other, &status)); /* so that the one before has come, too */
  OK(MPI_Cancel(&request));                 /* the cancel may be too late */
  OK(MPI_Wait(&request, &status));
  if (!was_cancelled(&status)) {
    CHECK(value == before * 10 + 2 && count_of(&status, MPI_INT) == 1);
  } else {
    OK(MPI_Recv(&value, 1, MPI_INT, before, 2, other, &status));
  }

  OK(MPI_Recv(&value, 1, MPI_INT, before, 3, other, &status));
  OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &request));
  OK(MPI_Comm_free(&other)); /* it lives on in the request */
  OK(MPI_Wait(&request, &status));
  CHECK(value == before * 10 + 4 && status.MPI_SOURCE == before && status.MPI_TAG == 4);
}

/* A receive comes before everything behind it, and nothing waits for ever. */
static void in_order(void) {
  enum { large = 100000 };
  MPI_Request posted[4];
  MPI_Status status;
  int small[4] = {-1, -1, -1, -1}, value, flag = 0;
  step = "small and large receives in turns";
  OK(MPI_Irecv(&small[0], 1, MPI_INT, before, 1, MPI_COMM_WORLD, &posted[0]));
  OK(MPI_Irecv(in, large, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &posted[1]));
  OK(MPI_Irecv(&small[1], 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &posted[2]));
  fill(out, large, (unsigned)rank);
  for (int n = 0; n < 2; ++n) {
    value = rank * 10 + n;
    if (n == 1) OK(MPI_Isend(out, large, MPI_BYTE, next, 1, MPI_COMM_WORLD, &posted[3]));
    OK(MPI_Send(&value, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
  }
  OK(MPI_Waitall(4, posted, MPI_STATUSES_IGNORE));
  CHECK(small[0] == before * 10 && small[1] == before * 10 + 1);
  CHECK(is_filled(in, large, (unsigned)before));

  step = "a probe after a receive";
  OK(MPI_Irecv(&small[0], 1, MPI_INT, before, 2, MPI_COMM_WORLD, &posted[0]));
  value = rank + 1000;
  OK(MPI_Send(&value, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < 10; ++i) {
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag); /* its message belongs to the receive */
  }
  OK(MPI_Wait(&posted[0], MPI_STATUS_IGNORE));
  CHECK(small[0] == before + 1000);

  step = "a blocking receive after one that does not block";
  OK(MPI_Irecv(&small[0], 1, MPI_INT, before, 3, MPI_COMM_WORLD, &posted[0]));
  for (int n = 0; n < 2; ++n) {
    value = rank * 10 + n;
    OK(MPI_Send(&value, 1, MPI_INT, next, 3, MPI_COMM_WORLD));
  }
  OK(MPI_Recv(&small[1], 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&posted[0], MPI_STATUS_IGNORE));
  CHECK(small[0] == before * 10 && small[1] == before * 10 + 1);

  step = "a receive that is cancelled";
  OK(MPI_Irecv(&small[0], 1, MPI_INT, before, 4, MPI_COMM_WORLD, &posted[0]));
  OK(MPI_Cancel(&posted[0]));
  OK(MPI_Wait(&posted[0], &status));
  CHECK(was_cancelled(&status));
}

/* Only receivers end these sends, and their receives are not the first ones that are waited for. */
static void synchronous(void) {
  MPI_Request posted[2];
  int received[2] = {-1, -1}, value = rank;
  const int peer = rank ^ 1;
  if (peer >= size) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return;
  }
  step = "synchronous sends, the last first";
  for (int turn = 0; turn < 2; ++turn) {
    if (rank % 2 == turn) {
      OK(MPI_Irecv(&received[0], 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &posted[0]));
      OK(MPI_Irecv(&received[1], 1, MPI_INT, peer, 6, MPI_COMM_WORLD, &posted[1]));
      OK(MPI_Waitall(2, posted, MPI_STATUSES_IGNORE));
      CHECK(received[0] == peer && received[1] == peer);
    } else {
      OK(MPI_Ssend(&value, 1, MPI_INT, peer, 6, MPI_COMM_WORLD));
      OK(MPI_Send(&value, 1, MPI_INT, peer, 5, MPI_COMM_WORLD));
    }
  }
  step = "a synchronous send to a rank in a barrier";
  OK(MPI_Irecv(&received[0], 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &posted[0]));
  if (rank % 2 == 0) OK(MPI_Ssend(&value, 1, MPI_INT, peer, 7, MPI_COMM_WORLD));
  if (rank % 2 == 1) OK(MPI_Isend(&value, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &posted[1]));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Wait(&posted[0], MPI_STATUS_IGNORE));
  if (rank % 2 == 1) OK(MPI_Wait(&posted[1], MPI_STATUS_IGNORE));
  CHECK(received[0] == peer);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  out = malloc((size_t)window * room);
  in = malloc((size_t)window * room);
  for (int way = 0; way < way_count; ++way) {
    exchange((enum way)way, 0, (unsigned)way);
    exchange((enum way)way, 1, (unsigned)way + 50);
  }
  truncated(0);
  truncated(1);
  single();
  for (int i = 0; i < 20; ++i) {
    in_order();
    synchronous();
  }
  free(in);
  free(out);
  return end_well("all windows were right");
}
