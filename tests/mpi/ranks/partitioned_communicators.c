/* Partitioned messages on communicators of all kinds, also on those that are freed while requests
 * are alive. Any number of ranks.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 6, partitions = 5 };

/* What one member sends to another, and the requests of both. */
struct pair {
  int out[partitions], in[partitions];
  MPI_Request both[2];
};

static void init_pair(struct pair* pair, MPI_Comm comm, int to, int from) {
  OK(MPI_Psend_init(pair->out, partitions, 1, MPI_INT, to, tag, comm, MPI_INFO_NULL,
                    &pair->both[kSend]));
  OK(MPI_Precv_init(pair->in, partitions, 1, MPI_INT, from, tag, comm, MPI_INFO_NULL,
                    &pair->both[kReceive]));
}

static void init_ring_of(struct pair* pair, MPI_Comm comm) {
  const int own = rank_in(comm), members = size_of(comm);
  init_pair(pair, comm, (own + 1) % members, (own + members - 1) % members);
}

static void start_pair(struct pair* pair, int mark, int to) {
  for (int p = 0; p < partitions; ++p) {
    pair->out[p] = 10000 * mark + 100 * rank + 10 * to + p;
    pair->in[p] = -1;
  }
  OK(MPI_Startall(2, pair->both));
  ready_all(pair->both[kSend], partitions);
}

/* `from` of the world has sent it to `to`, which this rank is by that numbering. */
static void end_pair(struct pair* pair, int mark, int from, int to, int source) {
  MPI_Status statuses[2];
  OK(MPI_Waitall(2, pair->both, statuses));
  CHECK(statuses[kReceive].MPI_SOURCE == source && statuses[kReceive].MPI_TAG == tag);
  for (int p = 0; p < partitions; ++p) {
    CHECK(pair->in[p] == 10000 * mark + 100 * from + 10 * to + p);
  }
}

/* A round in the ring of a communicator whose members are the world's, in its order. */
static void check_ring_of(struct pair* pair, int mark) {
  start_pair(pair, mark, 0);
  end_pair(pair, mark, before, 0, before);
}

static void in_another_order(void) {
  MPI_Comm reversed;
  struct pair pair;
  step = "a communicator in another order";
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
  const int own = rank_in(reversed);
  init_ring_of(&pair, reversed);
  for (int round = 0; round < 3; ++round) {
    start_pair(&pair, round, 0);
    end_pair(&pair, round, next, 0, (own + size - 1) % size); /* the other way round */
  }
  free_all(2, pair.both);
  OK(MPI_Comm_free(&reversed));
}

/* Freed with requests that are not started, active, and done. */
static void freed_early(void) {
  MPI_Comm comm, another;
  struct pair pairs[3], later;
  step = "communicators that are freed early";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  for (int i = 0; i < 3; ++i) init_ring_of(&pairs[i], comm);
  check_ring_of(&pairs[2], 1);
  start_pair(&pairs[1], 2, 0);
  OK(MPI_Comm_free(&comm));
  CHECK(comm == MPI_COMM_NULL);
  step = "a new communicator beside requests of a freed one";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &another));
  init_ring_of(&later, another);
  for (int round = 0; round < 3; ++round) {
    start_pair(&pairs[0], 10 + round, 0);
    start_pair(&later, 20 + round, 0);
    end_pair(&later, 20 + round, before, 0, before);
    end_pair(&pairs[0], 10 + round, before, 0, before);
    check_ring_of(&pairs[2], 30 + round);
  }
  end_pair(&pairs[1], 2, before, 0, before);
  for (int i = 0; i < 3; ++i) free_all(2, pairs[i].both);
  for (int round = 0; round < 3; ++round) check_ring_of(&later, round);
  free_all(2, later.both);
  OK(MPI_Comm_free(&another));
}

/* The communicator of a request that nobody has matched yet is freed, and made anew many times:
 * what is left of the old ones meets nothing of the new ones. */
static void freed_before_the_match(void) {
  struct pair pair, left;
  MPI_Comm comm;
  step = "communicators that are freed before the match";
  for (int n = 0; n < 20; ++n) {
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    init_ring_of(&pair, comm);
    check_ring_of(&pair, n);
    if (n % 2 == 0) {
      OK(MPI_Psend_init(left.out, partitions, 1, MPI_INT, next, tag, comm, MPI_INFO_NULL,
                        &left.both[kSend]));
      OK(MPI_Request_free(&left.both[kSend]));
    }
    if (n % 3 == 0) {
      OK(MPI_Precv_init(left.in, partitions, 1, MPI_INT, before, tag, comm, MPI_INFO_NULL,
                        &left.both[kReceive]));
      OK(MPI_Request_free(&left.both[kReceive]));
    }
    OK(MPI_Comm_free(&comm));
    check_ring_of(&pair, 50 + n);
    free_all(2, pair.both);
  }
}

/* Every member sends to every one of the other side. Ranks are those of the remote group. */
static void between_groups(void) {
  const int is_odd = rank % 2;
  MPI_Comm half, inter;
  struct pair pairs[64];
  step = "an intercommunicator";
  if (size < 2) return;
  OK(MPI_Comm_split(MPI_COMM_WORLD, is_odd, rank, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - is_odd, 3, &inter));
  const int own = rank_in(inter), others = remote_size_of(inter);
  CHECK(others <= 64);
  for (int i = 0; i < others; ++i) init_pair(&pairs[i], inter, i, i);
  expect_error(
      MPI_Psend_init(NULL, 1, 0, MPI_INT, others, tag, inter, MPI_INFO_NULL, &(MPI_Request){0}),
      MPI_ERR_RANK, "remote group");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < others; ++i) start_pair(&pairs[i], round, i);
    for (int i = 0; i < others; ++i) end_pair(&pairs[i], round, 2 * i + 1 - is_odd, own, i);
    if (round == 1) OK(MPI_Comm_free(&inter));
  }
  for (int i = 0; i < others; ++i) free_all(2, pairs[i].both);
  OK(MPI_Comm_free(&half));
}

/* Errors go to the error handler of the request's communicator. */
static MPI_Comm seen;
static int times;
static void note(MPI_Comm* comm, int* code, ...) {
  seen = *comm;
  times += *code == MPI_ERR_REQUEST;
}

static void error_handlers(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  struct pair pair;
  step = "the error handler of a communicator";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_create_errhandler(note, &handler));
  OK(MPI_Comm_set_errhandler(comm, handler));
  init_ring_of(&pair, comm);
  start_pair(&pair, 1, 0);
  CHECK(times == 0);
  expect_error(MPI_Pready(1, pair.both[kSend]), MPI_ERR_REQUEST, "MPI_Pready: ");
  CHECK(times == 1 && seen == comm);
  end_pair(&pair, 1, before, 0, before);
  CHECK(times == 1);
  free_all(2, pair.both);
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(120);
  in_another_order();
  freed_early();
  freed_before_the_match();
  between_groups();
  error_handlers();
  return end_well("all communicators were right");
}
