/* What Ferry adds to partitioned messages (ferry_mpi/mpix_partitioned.h): which partitions have
 * arrived, waits for the other side's start, and queues. Any number of ranks form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "tests/mpi/ranks/partitioned.h"

enum { tag = 11 };

/* ---- Which partitions have arrived ---- */

enum { partitions = 7 };

/* Takes what has arrived until there is nothing more, one by one or several at a time. Returns how
 * many there were, or -1: all have been named. */
static int take_arrivals(MPI_Request request, int several, int named[partitions]) {
  int taken = 0;
  for (;;) {
    int found[3] = {-7, -7, -7}, outcount = 0, flag = -1;
    if (several > 0) {
      OK(MPIX_Parrived_some(request, several, &outcount, found));
      if (outcount == 0) return taken;
      if (outcount == MPI_UNDEFINED) return -1;
    } else {
      OK(MPIX_Parrived_any(request, &found[0], &flag));
      if (!flag) CHECK(found[0] == MPI_UNDEFINED);
      if (!flag) return taken;
      if (found[0] == MPI_UNDEFINED) return -1;
      outcount = 1;
    }
    CHECK(outcount <= (several > 0 ? several : 1));
    for (int i = 0; i < outcount; ++i) {
      CHECK(found[i] >= 0 && found[i] < partitions);
      CHECK(named[found[i]]++ == 0); /* each once */
      CHECK(has_arrived(request, found[i]));
      ++taken;
    }
  }
}

static void who_has_arrived(int several) {
  enum { each = 300 };
  MPI_Request both[2];
  int flag = -1, partition = 0, outcount = 0;
  struct buffer out = make_buffer(kHeap, partitions * each);
  struct buffer in = make_buffer(kOrdinary, partitions * each);
  step = several ? "MPIX_Parrived_some" : "MPIX_Parrived_any";
  init_ring(both, &out, partitions, &in, partitions, tag);
  for (unsigned round = 0; round < 3; ++round) {
    int named[partitions] = {0}, sum = 0;
    OK(MPIX_Parrived_any(both[kReceive], &partition, &flag));
    CHECK(flag && partition == MPI_UNDEFINED); /* it is inactive */
    OK(MPIX_Parrived_some(both[kReceive], 1, &outcount, &partition));
    CHECK(outcount == MPI_UNDEFINED);
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(2, both));
    CHECK(take_arrivals(both[kReceive], several, named) == 0);
    meet();
    OK(MPI_Pready_range(2, 4, both[kSend]));
    while (sum < 3) {
      const int more = take_arrivals(both[kReceive], several, named);
      CHECK(more >= 0);
      sum += more;
    }
    CHECK(named[2] && named[3] && named[4]);
    CHECK(take_arrivals(both[kReceive], several, named) == 0);
    meet();
    OK(MPI_Pready_range(0, 1, both[kSend]));
    OK(MPI_Pready_range(5, 6, both[kSend]));
    await_arrivals(both[kReceive], partitions);
    /* Both calls know what the other one has named. */
    OK(MPIX_Parrived_some(both[kReceive], 1, &outcount, &partition));
    CHECK(outcount == 1 && named[partition]++ == 0);
    CHECK(take_arrivals(both[kReceive], several, named) == -1);
    CHECK(take_arrivals(both[kReceive], several ? 0 : 2, named) == -1); /* it stays so */
    for (int p = 0; p < partitions; ++p) CHECK(named[p] == 1);
    CHECK(holds_all(&in, round + (unsigned)before));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
  MPI_Request null = MPI_REQUEST_NULL;
  OK(MPIX_Parrived_any(null, &partition, &flag));
  CHECK(flag && partition == MPI_UNDEFINED);
  OK(MPIX_Parrived_some(null, 1, &outcount, &partition));
  CHECK(outcount == MPI_UNDEFINED);
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* ---- Waits until data may be moved ---- */

/* Ferry's memory is received into directly: so the receiver has started its round when the sender
 * is told that data may be moved, also if it is late. */
static void prepared(atomic_int* words, int together) {
  enum { rounds = 20 };
  const struct timespec a_while = {0, 300000};
  MPI_Request both[2];
  struct buffer out = make_buffer(kOrdinary, 4000), in = make_buffer(kHeap, 4000);
  static int base = 0;
  step = together ? "MPIX_Pbuf_prepare_all" : "MPIX_Pbuf_prepare";
  init_ring(both, &out, 4, &in, 4, tag);
  for (int round = 1; round <= rounds; ++round) {
    if (round % size == rank) nanosleep(&a_while, NULL); /* one of them is late */
    fill_buffer(&out, (unsigned)(round + rank));
    raise_word(&words[16 * rank], base + round);
    OK(MPI_Startall(2, both));
    if (together) {
      OK(MPIX_Pbuf_prepare_all(2, both));
    } else {
      OK(MPIX_Pbuf_prepare(both[kSend]));
      OK(MPIX_Pbuf_prepare(both[kReceive]));
    }
    CHECK(atomic_load_explicit(&words[16 * next], memory_order_acquire) >= base + round);
    ready_all(both[kSend], 4);
    OK(MPIX_Pbuf_prepare(both[kSend])); /* again: nothing to wait for */
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, (unsigned)(round + before)));
  }
  base += rounds;
  OK(MPIX_Pbuf_prepare_all(0, NULL));
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

static void prepared_for_nobody(void) {
  int word = 0;
  MPI_Request both[2];
  step = "MPIX_Pbuf_prepare for MPI_PROC_NULL";
  OK(MPI_Psend_init(&word, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kSend]));
  OK(MPI_Precv_init(&word, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
  OK(MPI_Startall(2, both));
  OK(MPIX_Pbuf_prepare_all(2, both));
  OK(MPI_Pready(0, both[kSend]));
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  free_all(2, both);
}

/* ---- Queues ---- */

enum { queue_partitions = 6, queue_words = 600, queue_rounds = 25 };

/* What the kernels work on. */
struct rounds {
  int *out, *in; /* in the device's memory */
  int written, read, wrong;
};
static struct rounds rounds;

static void write_round(void* unused) {
  (void)unused;
  for (int i = 0; i < queue_words; ++i) rounds.out[i] = 100000 * rounds.written + 1000 * rank + i;
  ++rounds.written;
}
static void read_round(void* unused) {
  (void)unused;
  for (int i = 0; i < queue_words; ++i) {
    rounds.wrong += rounds.in[i] != 100000 * rounds.read + 1000 * before + i;
  }
  ++rounds.read;
}

static void expect_on_queue(MPI_Request both[2]) {
  int flag = 0;
  expect_error(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "queue");
  expect_error(MPI_Test(&both[kReceive], &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "queue");
  expect_error(MPI_Start(&both[kSend]), MPI_ERR_REQUEST, "queue");
  expect_error(MPI_Request_free(&both[kReceive]), MPI_ERR_REQUEST, "queue");
  expect_error(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "queue");
}

/* Loops of kernels whose rounds are all enqueued before the first one is waited for. */
static void on_queues(int prepares) {
  ferry_stream stream;
  MPIX_Queue queue;
  MPI_Request both[2];
  step = prepares ? "queues with MPIX_Enqueue_pbuf_prepare_all" : "queues";
  open_queue(&stream, &queue);
  rounds = (struct rounds){on_device(queue_words * sizeof(int)),
                           on_device(queue_words * sizeof(int)), 0, 0, 0};
  OK(MPI_Precv_init(rounds.in, queue_partitions, queue_words / queue_partitions, MPI_INT, before,
                    tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kReceive]));
  OK(MPI_Psend_init(rounds.out, queue_partitions, queue_words / queue_partitions, MPI_INT, next,
                    tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kSend]));
  for (int round = 0; round < queue_rounds; ++round) {
    if (round % 2 == 0) OK(MPIX_Enqueue_startall(queue, 2, both));
    if (round % 2 == 1) OK(MPIX_Enqueue_start(queue, &both[kReceive]));
    if (round % 2 == 1) OK(MPIX_Enqueue_start(queue, &both[kSend]));
    if (prepares && round % 2 == 0) OK(MPIX_Enqueue_pbuf_prepare_all(queue, 2, both));
    if (prepares && round % 2 == 1) OK(MPIX_Enqueue_pbuf_prepare(queue, &both[kSend]));
    CHECK(ferry_stream_launch(stream, write_round, NULL) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_pready(queue, 0, 3, both[kSend]));
    OK(MPIX_Enqueue_pready(queue, 4, queue_partitions - 1, both[kSend]));
    if (round == 3) expect_on_queue(both);
    if (round % 2 == 0) OK(MPIX_Enqueue_waitall(queue, 2, both));
    if (round % 2 == 1) OK(MPIX_Enqueue_wait(queue, &both[kSend]));
    if (round % 2 == 1) OK(MPIX_Enqueue_wait(queue, &both[kReceive]));
    CHECK(ferry_stream_launch(stream, read_round, NULL) == FERRY_SUCCESS);
  }
  OK(MPIX_Queue_wait(queue));
  CHECK(rounds.written == queue_rounds && rounds.read == queue_rounds && rounds.wrong == 0);

  step = "requests of a queue that the rank uses again";
  write_round(NULL);
  OK(MPI_Startall(2, both));
  ready_all(both[kSend], queue_partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  read_round(NULL);
  CHECK(rounds.wrong == 0);
  free_all(2, both);
  close_queue(&stream, &queue);
  CHECK(ferry_free(rounds.out) == FERRY_SUCCESS && ferry_free(rounds.in) == FERRY_SUCCESS);
}

/* The queue starts and ends the send; threads of the host ready it, and the other side is a host.
 */
static void mixed_with_the_host(void) {
  ferry_stream stream;
  MPIX_Queue queue;
  MPI_Request both[2];
  struct buffer out = make_buffer(kOrdinary, 5000), in = make_buffer(kHeap, 5000);
  step = "a send on a queue to a host";
  open_queue(&stream, &queue);
  init_ring(both, &out, 5, &in, 2, tag);
  for (unsigned round = 0; round < 10; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Start(&both[kReceive]));
    OK(MPIX_Enqueue_start(queue, &both[kSend]));
    OK(MPIX_Enqueue_pready(queue, 0, 4, both[kSend]));
    OK(MPIX_Enqueue_wait(queue, &both[kSend]));
    OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
    OK(MPIX_Queue_wait(queue));
  }
  free_all(2, both);
  close_queue(&stream, &queue);
  drop_buffer(&out);
  drop_buffer(&in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(120);
  atomic_int* const words = share_words();
  for (int several = 0; several < 4; ++several) who_has_arrived(several);
  prepared(words, 0);
  prepared(words, 1);
  prepared_for_nobody();
  on_queues(0);
  on_queues(1);
  mixed_with_the_host();
  return end_well("all extensions were right");
}
