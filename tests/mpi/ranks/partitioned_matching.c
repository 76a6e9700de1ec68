/* Which partitioned send meets which receive: in the order of the inits, by communicator, rank and
 * tag, and never anything else; also where a side frees its request early (MPI 5.0, section 4.2.1).
 * Any number of ranks form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 5, partitions = 4 };
typedef int words[partitions];

static void init_send(int* out, int to, int with_tag, MPI_Comm comm, MPI_Request* request) {
  OK(MPI_Psend_init(out, partitions, 1, MPI_INT, to, with_tag, comm, MPI_INFO_NULL, request));
}
static void init_receive(int* in, int from, int with_tag, MPI_Comm comm, MPI_Request* request) {
  OK(MPI_Precv_init(in, partitions, 1, MPI_INT, from, with_tag, comm, MPI_INFO_NULL, request));
}

static void set_words(words out, int mark) {
  for (int p = 0; p < partitions; ++p) out[p] = 100 * mark + p;
}
static int have_words(const words in, int mark) {
  for (int p = 0; p < partitions; ++p) {
    if (in[p] != 100 * mark + p) return 0;
  }
  return 1;
}

/* One round of both requests with these words, which come from rank `from` of all. */
static void check_round_from(int from, MPI_Request both[2], int mark, words out, words in) {
  set_words(out, mark + rank);
  set_words(in, -1);
  OK(MPI_Startall(2, both));
  ready_all(both[kSend], partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK(have_words(in, mark + from));
}
static void check_round(MPI_Request both[2], int mark, words out, words in) {
  check_round_from(before, both, mark, out, in);
}

/* A new pair works: what was before it is not in its way. */
static void check_new_pair(int mark) {
  words out, in;
  MPI_Request both[2];
  init_send(out, next, tag, MPI_COMM_WORLD, &both[kSend]);
  init_receive(in, before, tag, MPI_COMM_WORLD, &both[kReceive]);
  for (int round = 0; round < 2; ++round) check_round(both, 10 * mark + round, out, in);
  free_all(2, both);
}

/* ---- Order ---- */

/* Requests of one tag are started in another order than they were made in. */
static void in_the_order_of_inits(void) {
  enum { pairs = 7 };
  words out[pairs], in[pairs];
  MPI_Request sends[pairs], receives[pairs];
  step = "the order of inits";
  for (int n = 0; n < pairs; ++n) init_send(out[n], next, tag, MPI_COMM_WORLD, &sends[n]);
  for (int n = 0; n < pairs; ++n) init_receive(in[n], before, tag, MPI_COMM_WORLD, &receives[n]);
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < pairs; ++n) {
      set_words(out[n], 1000 * round + 10 * n + rank);
      set_words(in[n], -1);
      OK(MPI_Start(&sends[(3 * n + round) % pairs]));
      OK(MPI_Start(&receives[(5 * n + 1) % pairs]));
    }
    for (int n = 0; n < pairs; ++n) ready_all(sends[(2 * n) % pairs], partitions);
    OK(MPI_Waitall(pairs, receives, MPI_STATUSES_IGNORE));
    for (int n = 0; n < pairs; ++n) CHECK(have_words(in[n], 1000 * round + 10 * n + before));
    OK(MPI_Waitall(pairs, sends, MPI_STATUSES_IGNORE));
  }
  free_all(pairs, sends);
  free_all(pairs, receives);
}

/* Tags and communicators tell requests apart, whatever the order of the inits. */
static void by_tag_and_communicator(void) {
  enum { tags = 3, comm_count = 2, pairs = tags * comm_count };
  words out[pairs], in[pairs];
  MPI_Request all[2 * pairs];
  MPI_Comm comms[comm_count] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  step = "tags and communicators";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  for (int i = 0; i < pairs; ++i) {
    const int s = (5 * i) % pairs, r = pairs - 1 - i;
    set_words(out[s], 10 * s + rank);
    init_send(out[s], next, s % tags, comms[s / tags], &all[s]);
    init_receive(in[r], before, r % tags, comms[r / tags], &all[pairs + r]);
  }
  OK(MPI_Startall(2 * pairs, all));
  for (int i = 0; i < pairs; ++i) ready_all(all[i], partitions);
  OK(MPI_Waitall(2 * pairs, all, MPI_STATUSES_IGNORE));
  for (int i = 0; i < pairs; ++i) CHECK(have_words(in[i], 10 * i + before));
  free_all(2 * pairs, all);
  OK(MPI_Comm_free(&comms[1]));
}

/* All send to all with one tag. */
static void by_rank(void) {
  words* const out = malloc((size_t)size * sizeof(words));
  words* const in = malloc((size_t)size * sizeof(words));
  MPI_Request* const all = malloc(2 * (size_t)size * sizeof(MPI_Request));
  step = "all send to all";
  for (int i = 0; i < size; ++i) {
    init_receive(in[i], i, tag, MPI_COMM_WORLD, &all[i]);
    init_send(out[i], i, tag, MPI_COMM_WORLD, &all[size + i]);
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < size; ++i) set_words(out[i], 1000 * round + 10 * rank + i);
    OK(MPI_Startall(2 * size, all));
    for (int i = 0; i < size; ++i) ready_all(all[size + i], partitions);
    OK(MPI_Waitall(2 * size, all, MPI_STATUSES_IGNORE));
    for (int i = 0; i < size; ++i) CHECK(have_words(in[i], 1000 * round + 10 * i + rank));
  }
  free_all(2 * size, all);
  free(all);
  free(in);
  free(out);
}

/* The first start of several sends and receives at a time, in a row of ranks: each has neighbours
 * on both sides, the first and the last only one. */
static void first_startall_in_a_row(void) {
  enum { sides = 2, fields = 3, most = 2 * sides * fields };
  words out[sides * fields], in[sides * fields];
  MPI_Request sends[most], all[most];
  int count = 0, send_count = 0;
  step = "the first MPI_Startall of a row of ranks";
  for (int side = 0; side < sides; ++side) {
    const int peer = side == 0 ? rank - 1 : rank + 1;
    if (peer < 0 || peer >= size) continue;
    for (int f = 0; f < fields; ++f) {
      const int n = side * fields + f;
      set_words(out[n], 10 * rank + f);
      init_send(out[n], peer, f, MPI_COMM_WORLD, &all[count++]);
      sends[send_count++] = all[count - 1];
      init_receive(in[n], peer, f, MPI_COMM_WORLD, &all[count++]);
    }
  }
  OK(MPI_Startall(count, all));
  for (int n = 0; n < send_count; ++n) ready_all(sends[n], partitions);
  OK(MPI_Waitall(count, all, MPI_STATUSES_IGNORE));
  for (int f = 0; f < fields; ++f) {
    if (rank > 0) CHECK(have_words(in[f], 10 * (rank - 1) + f));
    if (rank < size - 1) CHECK(have_words(in[fields + f], 10 * (rank + 1) + f));
  }
  free_all(count, all);
}

static void with_itself(void) {
  words out, in;
  MPI_Request both[2];
  step = "a rank with itself";
  init_receive(in, 0, tag, MPI_COMM_SELF, &both[kReceive]);
  init_send(out, 0, tag, MPI_COMM_SELF, &both[kSend]);
  for (int round = 0; round < 3; ++round) check_round_from(rank, both, round, out, in);
  free_all(2, both);
}

/* ---- A matching space of its own ---- */

static void expect_no_message(void) {
  int flag = -1;
  MPI_Message message;
  OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
  CHECK(!flag);
}

static void apart_from_messages(void) {
  words out, in, plain_out, plain_in;
  MPI_Request both[2], wild, plain[2];
  MPI_Status status;
  step = "nothing for probes";
  meet();
  init_send(out, next, tag, MPI_COMM_WORLD, &both[kSend]);
  OK(MPI_Start(&both[kSend]));
  set_words(out, rank);
  ready_all(both[kSend], partitions);
  meet();
  for (int n = 0; n < 20; ++n) expect_no_message();
  step = "nothing for wildcards";
  OK(MPI_Irecv(plain_in, partitions, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &wild));
  init_receive(in, before, tag, MPI_COMM_WORLD, &both[kReceive]);
  OK(MPI_Start(&both[kReceive]));
  await_arrivals(both[kReceive], partitions);
  CHECK(!is_done(wild));
  meet(); /* all have looked before the message for it */
  set_words(plain_out, 50 + rank);
  OK(MPI_Send(plain_out, partitions, MPI_INT, next, 77, MPI_COMM_WORLD));
  OK(MPI_Wait(&wild, &status));
  CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 77 && have_words(plain_in, 50 + before));
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK(have_words(in, before));

  step = "plain persistent requests of the same tag";
  OK(MPI_Recv_init(plain_in, partitions, MPI_INT, before, tag, MPI_COMM_WORLD, &plain[kReceive]));
  OK(MPI_Send_init(plain_out, partitions, MPI_INT, next, tag, MPI_COMM_WORLD, &plain[kSend]));
  for (int round = 0; round < 3; ++round) {
    MPI_Request all[4] = {plain[kReceive], both[kReceive], both[kSend], plain[kSend]};
    set_words(out, 10 * round + rank);
    set_words(plain_out, 500 + 10 * round + rank);
    OK(MPI_Startall(4, all));
    ready_all(both[kSend], partitions);
    OK(MPI_Waitall(4, all, MPI_STATUSES_IGNORE));
    CHECK(have_words(in, 10 * round + before));
    CHECK(have_words(plain_in, 500 + 10 * round + before));
  }
  free_all(2, plain);
  free_all(2, both);
}

/* ---- Inits are local ---- */

/* Each rank inits, starts and readies a send, and only then hears that the others have. */
static void sent_before_the_other_init(void) {
  words out, in;
  MPI_Request both[2];
  step = "a send that is readied before the receive is made";
  set_words(out, rank);
  init_send(out, next, tag, MPI_COMM_WORLD, &both[kSend]);
  OK(MPI_Start(&both[kSend]));
  ready_all(both[kSend], partitions);
  meet();
  init_receive(in, before, tag, MPI_COMM_WORLD, &both[kReceive]);
  OK(MPI_Start(&both[kReceive]));
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK(have_words(in, before));
  check_round(both, 7, out, in);
  free_all(2, both);
}

static void started_before_the_other_init(void) {
  words out, in;
  MPI_Request both[2];
  int flag = -1;
  step = "a receive that is started before the send is made";
  init_receive(in, before, tag, MPI_COMM_WORLD, &both[kReceive]);
  OK(MPI_Start(&both[kReceive]));
  for (int n = 0; n < 50; ++n) {
    CHECK(!has_arrived(both[kReceive], n % partitions));
    OK(MPI_Test(&both[kReceive], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  }
  meet();
  set_words(out, rank);
  init_send(out, next, tag, MPI_COMM_WORLD, &both[kSend]);
  OK(MPI_Start(&both[kSend]));
  OK(MPI_Pready(2, both[kSend]));
  await_arrival(both[kReceive], 2);
  CHECK(in[2] == 100 * before + 2);
  OK(MPI_Pready_range(0, 1, both[kSend]));
  OK(MPI_Pready(3, both[kSend]));
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK(have_words(in, before));
  check_round(both, 7, out, in);
  free_all(2, both);
}

/* Only two ranks of all use partitions: no other has to help. */
static void without_the_others(MPI_Comm comm) {
  const int first = size - 2, last = size - 1;
  words out, in;
  MPI_Request request;
  step = "two ranks without the others";
  if (size < 2) return;
  if (rank == first) {
    init_send(out, last, tag, comm, &request);
    for (int round = 0; round < 3; ++round) {
      set_words(out, round);
      OK(MPI_Start(&request));
      ready_all(request, partitions);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
  } else if (rank == last) {
    init_receive(in, first, tag, comm, &request);
    for (int round = 0; round < 3; ++round) {
      OK(MPI_Start(&request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(have_words(in, round));
    }
    OK(MPI_Request_free(&request));
    for (int r = 0; r < first; ++r) tell(r);
  } else {
    hear(last); /* in no call of partitioned communication, until the two are done */
  }
  meet();
}

/* ---- Requests that are freed ---- */

/* Both sides free pairs that nobody has started. */
static void freed_without_a_start(int receiver_first) {
  words out[3], in[3];
  MPI_Request sends[3], receives[3];
  step = receiver_first ? "freed without a start, receivers first" : "freed without a start";
  for (int n = 0; n < 3; ++n) {
    if (receiver_first) init_receive(in[n], before, tag, MPI_COMM_WORLD, &receives[n]);
    init_send(out[n], next, tag, MPI_COMM_WORLD, &sends[n]);
    if (!receiver_first) init_receive(in[n], before, tag, MPI_COMM_WORLD, &receives[n]);
    if (n == 1) continue; /* the one in the middle is kept */
    OK(MPI_Request_free(&sends[n]));
    OK(MPI_Request_free(&receives[n]));
  }
  MPI_Request both[2];
  both[kSend] = sends[1];
  both[kReceive] = receives[1];
  check_round(both, 30, out[1], in[1]);
  free_all(2, both);
  check_new_pair(4);
}

/* Each side frees its request before the other one makes its own. The next pair is a new one. */
static void freed_before_the_other_init(int sender_first) {
  words out, in;
  MPI_Request request;
  step = sender_first ? "a send, freed before the receive is made"
                      : "a receive, freed before the send is made";
  for (int n = 0; n < 3; ++n) {
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == sender_first) {
        init_send(out, next, tag, MPI_COMM_WORLD, &request);
      } else {
        init_receive(in, before, tag, MPI_COMM_WORLD, &request);
      }
      OK(MPI_Request_free(&request));
      meet();
    }
  }
  check_new_pair(5);
}

/* A request whose partner was freed fails, in the start or in the wait for it, and says so. A send
 * that `may_be_buffered` may be over before it hears of that: a receive whose data land in memory of
 * the library clears its next round ahead, and news of its end from another node may come later
 * than what its program said afterwards. Nothing clears the round after that one. */
static void expect_forsaken(MPI_Request* request, int is_send, int may_be_buffered) {
  int error = MPI_Start(request);
  if (error == MPI_SUCCESS) {
    if (is_send) OK(MPI_Pready_range(0, partitions - 1, *request));
    if (!is_send) await_arrivals(*request, partitions); /* a failed one waits for nothing */
    error = MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  if (error == MPI_SUCCESS && may_be_buffered) {
    expect_forsaken(request, is_send, 0);
    return;
  }
  expect_error(error, MPI_ERR_REQUEST, "freed");
}

/* One side has freed its request, the other one starts its own: before they were matched, or after
 * `rounds` rounds. */
static void forsaken(int is_sender_left, int rounds) {
  words out, in;
  MPI_Request both[2], left;
  step = is_sender_left ? "a send whose receive was freed" : "a receive whose send was freed";
  if (rounds > 0) {
    init_send(out, next, tag, MPI_COMM_WORLD, &both[kSend]);
    init_receive(in, before, tag, MPI_COMM_WORLD, &both[kReceive]);
    for (int round = 0; round < rounds; ++round) check_round(both, round, out, in);
    OK(MPI_Request_free(&both[is_sender_left ? kReceive : kSend]));
    left = both[is_sender_left ? kSend : kReceive];
    meet();
  } else {
    if (is_sender_left) init_receive(in, before, tag, MPI_COMM_WORLD, &left);
    if (!is_sender_left) init_send(out, next, tag, MPI_COMM_WORLD, &left);
    OK(MPI_Request_free(&left));
    meet();
    if (is_sender_left) init_send(out, next, tag, MPI_COMM_WORLD, &left);
    if (!is_sender_left) init_receive(in, before, tag, MPI_COMM_WORLD, &left);
  }
  for (int n = 0; n < 2; ++n) {
    expect_forsaken(&left, is_sender_left, is_sender_left && rounds > 0 && n == 0);
  }
  OK(MPI_Request_free(&left));
  check_new_pair(6);
}

/* A side frees its request right behind its own wait, however far the other one is. */
static void freed_behind_the_wait(size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(kHeap, partitions * each);
  struct buffer in = make_buffer(kOrdinary, partitions * each);
  step = "freed right behind the wait";
  for (unsigned n = 0; n < 100; ++n) {
    fill_buffer(&out, n + (unsigned)rank);
    init_ring(both, &out, partitions, &in, partitions, tag);
    OK(MPI_Startall(2, both));
    ready_all(both[kSend], partitions);
    for (int i = 0; i < 2; ++i) {
      const int which = (int)(n + (unsigned)i) % 2;
      OK(MPI_Wait(&both[which], MPI_STATUS_IGNORE));
      OK(MPI_Request_free(&both[which]));
    }
    CHECK(holds_all(&in, n + (unsigned)before));
  }
  drop_buffer(&out);
  drop_buffer(&in);
}

/* The sender is done and has freed its request before the receiver looks for the first time. */
static void freed_before_the_receiver_looks(size_t each) {
  MPI_Request both[2];
  struct buffer out = make_buffer(kHeap, partitions * each);
  struct buffer in = make_buffer(kHeap, partitions * each);
  step = "a send that is freed before its receiver looks";
  fill_buffer(&out, (unsigned)rank);
  init_ring(both, &out, partitions, &in, partitions, tag);
  OK(MPI_Startall(2, both));
  ready_all(both[kSend], partitions);
  OK(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&both[kSend]));
  clear(&out); /* the program's again */
  meet();
  await_arrivals(both[kReceive], partitions);
  OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
  CHECK(holds_all(&in, (unsigned)before));
  OK(MPI_Request_free(&both[kReceive]));
  drop_buffer(&out);
  drop_buffer(&in);
}

/* Requests come and go by thousands. */
static void many_lives(void) {
  words out, in;
  MPI_Request both[2];
  step = "thousands of requests, one after the other";
  for (int n = 0; n < 2000; ++n) {
    init_send(out, next, n % 5, MPI_COMM_WORLD, &both[kSend]);
    init_receive(in, before, n % 5, MPI_COMM_WORLD, &both[kReceive]);
    if (n % 100 == 0) check_round(both, n, out, in);
    free_all(2, both);
  }
  check_new_pair(8);
}

/* ---- Nobody on the other side ---- */

static void nobody(void) {
  words out, in;
  MPI_Request both[2];
  MPI_Status status;
  step = "MPI_PROC_NULL";
  set_words(in, 3);
  init_send(out, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &both[kSend]);
  OK(MPI_Precv_init(in, partitions, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
  for (int round = 0; round < 3; ++round) {
    OK(MPI_Startall(2, both));
    for (int p = 0; p < partitions; ++p) CHECK(has_arrived(both[kReceive], p));
    for (int p = 0; p < partitions; ++p) OK(MPI_Pready(p, both[kSend]));
    OK(MPI_Wait(&both[kReceive], &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    CHECK(count_of(&status, MPI_INT) == 0);
    OK(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE));
    CHECK(have_words(in, 3));
  }
  free_all(2, both);
}

/* Requests that the program leaves behind: never matched, matched, used, and freed but not matched;
 * of both that are not matched more than a rank keeps for another one. */
static void leave_requests(void) {
  enum { many = 150 };
  static words out[4], in[4];
  MPI_Request both[2], lonely;
  step = "requests that are left to MPI_Finalize";
  init_send(out[0], next, 90, MPI_COMM_WORLD, &lonely);
  init_receive(in[0], before, 91, MPI_COMM_WORLD, &lonely);
  init_send(out[1], next, 92, MPI_COMM_WORLD, &lonely);
  OK(MPI_Request_free(&lonely));
  init_receive(in[1], before, 93, MPI_COMM_WORLD, &lonely);
  OK(MPI_Request_free(&lonely));
  init_send(out[2], next, 94, MPI_COMM_WORLD, &both[kSend]);
  init_receive(in[2], before, 94, MPI_COMM_WORLD, &both[kReceive]);
  init_send(out[3], next, 95, MPI_COMM_WORLD, &both[kSend]);
  init_receive(in[3], before, 95, MPI_COMM_WORLD, &both[kReceive]);
  check_round(both, 3, out[3], in[3]);
  for (int n = 0; n < many; ++n) {
    init_send(out[0], next, 96, MPI_COMM_WORLD, &lonely);
    init_send(out[1], next, 97, MPI_COMM_WORLD, &lonely);
    OK(MPI_Request_free(&lonely));
  }
}

int main(int argc, char** argv) {
  MPI_Comm other;
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  without_the_others(MPI_COMM_WORLD); /* before anybody has used partitions */
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  without_the_others(other);
  first_startall_in_a_row();
  in_the_order_of_inits();
  by_tag_and_communicator();
  by_rank();
  with_itself();
  apart_from_messages();
  sent_before_the_other_init();
  started_before_the_other_init();
  for (int side = 0; side < 2; ++side) {
    freed_without_a_start(side);
    freed_before_the_other_init(side);
    forsaken(side, 0);
    forsaken(side, 1);
    forsaken(side, 5);
  }
  freed_behind_the_wait(1);
  freed_behind_the_wait(30000);
  freed_before_the_receiver_looks(8);
  freed_before_the_receiver_looks(100000);
  many_lives();
  nobody();
  OK(MPI_Comm_free(&other));
  leave_requests();
  return end_well("all pairs were right");
}
