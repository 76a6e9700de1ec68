/* One side of a partitioned message does not call MPI: it computes, and answers by memory that both
 * see. What was readied arrives all the same, partition by partition; programs that ready one and
 * wait for the answer to it do not stand still. Pairs of ranks: an even one sends to the odd one
 * behind it.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 8, partitions = 4 };

static int peer = -1; /* the other rank of the pair */
static int is_sender;
static atomic_int *asked, *answered; /* words of the pair, raised by its sender and its receiver */
static int questions = 0;            /* how often both were raised */

static MPI_Request make(const struct buffer* buffer, int in_partitions, int is_send) {
  MPI_Request request;
  if (is_send) {
    OK(MPI_Psend_init(buffer->at, in_partitions, (MPI_Count)buffer->bytes / in_partitions, MPI_BYTE,
                      peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  } else {
    OK(MPI_Precv_init(buffer->at, in_partitions, (MPI_Count)buffer->bytes / in_partitions, MPI_BYTE,
                      peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  }
  return request;
}

/* The sender readies a partition, and computes until the receiver has it. */
static void send_and_compute(enum kind kind, size_t each, int rounds) {
  struct buffer buffer = make_buffer(kind, partitions * each);
  MPI_Request request = make(&buffer, partitions, is_sender);
  step = is_sender ? "a sender that computes" : "a receiver whose sender computes";
  for (int round = 0; round < rounds; ++round) {
    if (is_sender) fill_buffer(&buffer, (unsigned)(round + rank));
    OK(MPI_Start(&request));
    for (int n = 0; n < partitions; ++n) {
      const int p = (3 * n + round) % partitions;
      ++questions;
      if (is_sender) {
        OK(MPI_Pready(p, request));
        compute_until(answered, questions);
      } else {
        await_arrival(request, p);
        CHECK(holds(&buffer, (size_t)p * each, each, (unsigned)(round + peer)));
        raise_word(answered, questions);
      }
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
}

/* The receiver sleeps in MPI_Wait; the sender never calls MPI once it has readied all. */
static void wait_while_it_computes(enum kind kind, size_t each) {
  struct buffer buffer = make_buffer(kind, partitions * each);
  MPI_Request request = make(&buffer, is_sender ? partitions : 1, is_sender);
  step = is_sender ? "a sender that computes" : "a wait for a sender that computes";
  for (int round = 0; round < 3; ++round) {
    ++questions;
    if (is_sender) fill_buffer(&buffer, (unsigned)(round + rank));
    OK(MPI_Start(&request));
    if (is_sender) {
      for (int p = 0; p < partitions; ++p) OK(MPI_Pready(p, request));
      compute_until(answered, questions);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(holds_all(&buffer, (unsigned)(round + peer)));
      raise_word(answered, questions);
    }
  }
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
}

/* The receiver has started, and computes until the send is over. */
static void receive_and_compute(enum kind kind, size_t each) {
  struct buffer buffer = make_buffer(kind, partitions * each);
  MPI_Request request = make(&buffer, partitions, is_sender);
  for (int round = 0; round < 3; ++round) {
    step = is_sender ? "a send to a rank that computes" : "a receiver that computes";
    if (is_sender) fill_buffer(&buffer, (unsigned)(round + rank));
    OK(MPI_Start(&request));
    if (is_sender) {
      ready_all(request, partitions);
      /* In the first round they are matched. */
      if (round > 0) compute_until(answered, ++questions);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      if (round > 0) raise_word(asked, questions);
    } else {
      if (round > 0) {
        raise_word(answered, ++questions);
        compute_until(asked, questions);
      }
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(holds_all(&buffer, (unsigned)(round + peer)));
    }
  }
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
}

/* The sender readies a partition, and waits for a message in answer to it. */
static void ready_and_wait_for_the_answer(enum kind kind, size_t each) {
  struct buffer buffer = make_buffer(kind, partitions * each);
  MPI_Request request = make(&buffer, partitions, is_sender);
  step = "a partition and the answer to it";
  for (int round = 0; round < 3; ++round) {
    if (is_sender) fill_buffer(&buffer, (unsigned)(round + rank));
    OK(MPI_Start(&request));
    for (int n = 0; n < partitions; ++n) {
      const int p = (n + round) % partitions;
      if (is_sender) {
        OK(MPI_Pready(p, request));
        hear(peer);
      } else {
        await_arrival(request, p);
        CHECK(holds(&buffer, (size_t)p * each, each, (unsigned)(round + peer)));
        tell(peer);
      }
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
}

static void check_pair(void) {
  static const size_t sizes[] = {1, 8, 5000, 100000};
  for (int kind = 0; kind < kKinds; ++kind) {
    /* The kinds of both sides: all of them meet. */
    for (int other = 0; other < kKinds; ++other) {
      const enum kind own = (enum kind)(is_sender ? kind : other);
      send_and_compute(own, 8, 2);
      send_and_compute(own, 40000, 1);
      ready_and_wait_for_the_answer(own, 16);
      wait_while_it_computes(own, 100);
      wait_while_it_computes(own, 60000);
      receive_and_compute(own, 3000);
    }
    for (int s = 0; s < 4; ++s) {
      ready_and_wait_for_the_answer((enum kind)kind, sizes[s]);
      receive_and_compute((enum kind)kind, sizes[s]);
    }
  }
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  atomic_int* const words = share_words();
  is_sender = rank % 2 == 0;
  peer = is_sender ? rank + 1 : rank - 1;
  asked = &words[64 * (rank / 2)]; /* apart from those of other pairs */
  answered = asked + 32;
  CHECK(64 * (rank / 2) + 64 <= kSharedWords);
  if (peer < size) check_pair();
  return end_well("nobody waited in vain");
}
