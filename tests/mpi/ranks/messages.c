/* Messages of all modes and forms, of sizes that take each of Ferry's paths, in a ring: every rank
 * sends to the next and receives from the one before it.
 */
#define _POSIX_C_SOURCE 200112L
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { max_bytes = 3 << 20, tag = 7 };
static unsigned char *out, *in, freed[4];

typedef int (*sender)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*starter)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
struct mode {
  const char* name;
  sender blocking;
  starter nonblocking, persistent;
};
static const struct mode modes[] = {{"standard", MPI_Send, MPI_Isend, MPI_Send_init},
                                    {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init},
                                    {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init},
                                    {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init}};
static const int sizes[] = {0, 1, 8, 32, 33, 4096, 8192, 8193, 65536, 100001, 524289, max_bytes};
enum {
  mode_count = sizeof(modes) / sizeof(modes[0]),
  size_count = sizeof(sizes) / sizeof(sizes[0])
};

static void check_status(const MPI_Status* status, int bytes) {
  CHECK(status->MPI_SOURCE == before && status->MPI_TAG == tag);
  CHECK(count_of(status, MPI_BYTE) == bytes && !was_cancelled(status));
}

/* The receive is posted first, so that ready sends are right, and synchronous ones end. */
static void blocking(const struct mode* mode, int bytes, unsigned seed) {
  MPI_Request request;
  MPI_Status status;
  step = mode->name;
  fill(out, bytes, seed + rank);
  memset(in, 0, bytes);
  OK(MPI_Irecv(in, bytes, MPI_BYTE, before, tag, MPI_COMM_WORLD, &request));
  OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, before, 1, NULL, 0, MPI_BYTE, next, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE)); /* the next rank has posted its receive */
  OK(mode->blocking(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD));
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL);
  check_status(&status, bytes);
  CHECK(is_filled(in, bytes, seed + before));
}

static void nonblocking(const struct mode* mode, int bytes, unsigned seed) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  step = mode->name;
  fill(out, bytes, seed + rank);
  OK(MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(mode->nonblocking(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Waitall(2, requests, statuses));
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  check_status(&statuses[0], bytes);
  CHECK(is_filled(in, bytes, seed + before));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void persistent(const struct mode* mode, int bytes, unsigned seed) {
  MPI_Request requests[2];
  MPI_Status status;
  step = mode->name;
  OK(MPI_Recv_init(in, bytes, MPI_BYTE, before, tag, MPI_COMM_WORLD, &requests[0]));
  OK(mode->persistent(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]));
  for (unsigned round = 0; round < 3; ++round) {
    int index, done = 0;
    fill(out, bytes, seed + round + rank);
    OK(MPI_Start(&requests[0]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Start(&requests[1]));
    for (int n = 0; n < 2; ++n) {
      OK(MPI_Waitany(2, requests, &index, &status));
      CHECK(index == 0 || index == 1);
      if (index == 0) check_status(&status, bytes);
      CHECK(requests[index] != MPI_REQUEST_NULL);
    }
    OK(MPI_Waitany(2, requests, &index, &status));
    CHECK(index == MPI_UNDEFINED); /* no request is active */
    OK(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE));
    CHECK(done);
    CHECK(is_filled(in, bytes, seed + round + before));
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  CHECK(requests[0] == MPI_REQUEST_NULL);
}

static void probed(int bytes, unsigned seed) {
  MPI_Message message, none;
  MPI_Status status;
  MPI_Request request;
  int found;
  step = "probes";
  fill(out, bytes, seed + rank);
  OK(MPI_Isend(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
  OK(MPI_Probe(before, tag, MPI_COMM_WORLD, &status));
  check_status(&status, bytes);
  OK(MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, &status));
  check_status(&status, bytes);
  OK(MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &none, &status));
  CHECK(!found); /* the message is out of the queue */
  if (seed % 2 == 0) {
    OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
  } else {
    MPI_Request receive;
    OK(MPI_Imrecv(in, bytes, MPI_BYTE, &message, &receive));
    OK(MPI_Wait(&receive, &status));
  }
  CHECK(message == MPI_MESSAGE_NULL);
  check_status(&status, bytes);
  CHECK(is_filled(in, bytes, seed + before));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void exchanged(int bytes, unsigned seed) {
  MPI_Status status;
  MPI_Request request;
  step = "exchanges";
  fill(out, bytes, seed + rank);
  OK(MPI_Sendrecv(out, bytes, MPI_BYTE, next, tag, in, bytes, MPI_BYTE, before, tag, MPI_COMM_WORLD,
                  &status));
  check_status(&status, bytes);
  CHECK(is_filled(in, bytes, seed + before));
  OK(MPI_Sendrecv_replace(out, bytes, MPI_BYTE, next, tag, before, tag, MPI_COMM_WORLD, &status));
  CHECK(is_filled(out, bytes, seed + before));
  fill(out, bytes, seed + rank);
  OK(MPI_Isendrecv(out, bytes, MPI_BYTE, next, tag, in, bytes, MPI_BYTE, before, tag,
                   MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, &status));
  check_status(&status, bytes);
  OK(MPI_Isendrecv_replace(in, bytes, MPI_BYTE, next, tag, before, tag, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(is_filled(in, bytes, seed + (before + size - 1) % size));
}

/* A call with a wrong argument sends nothing, though what it sends is right. */
static void refused_exchange(void) {
  MPI_Comm comm;
  int flag = 1;
  step = "a refused exchange";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  CHECK(MPI_Sendrecv(out, 8, MPI_BYTE, next, tag, in, -1, MPI_BYTE, before, tag, comm,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS);
  CHECK(MPI_Sendrecv(out, 8, MPI_BYTE, next, tag, in, 8, MPI_BYTE, size, tag, comm,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS);
  OK(MPI_Barrier(comm)); /* what was sent would have come */
  OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Comm_free(&comm));
}

/* With oneself, with one side only, and a message that is longer than its buffer. */
static void small_exchanges(void) {
  MPI_Status status;
  int mine = rank + 1, got = 0, error = MPI_SUCCESS, class = 0;
  MPI_Comm comm;
  step = "small exchanges";
  OK(MPI_Sendrecv(&mine, 1, MPI_INT, rank, tag, &got, 1, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &status));
  CHECK(got == mine && status.MPI_SOURCE == rank && status.MPI_TAG == tag);
  got = 0;
  OK(MPI_Sendrecv(&mine, 1, MPI_INT, rank == 0 ? MPI_PROC_NULL : before, tag, &got, 1, MPI_INT,
                  rank == size - 1 ? MPI_PROC_NULL : next, tag, MPI_COMM_WORLD, &status));
  CHECK(got == (rank == size - 1 ? 0 : next + 1));
  CHECK(status.MPI_SOURCE == (rank == size - 1 ? MPI_PROC_NULL : next));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  error = MPI_Sendrecv(out, 16, MPI_BYTE, next, tag, in, 8, MPI_BYTE, before, tag, comm, &status);
  OK(MPI_Error_class(error, &class));
  CHECK(class == MPI_ERR_TRUNCATE);
  OK(MPI_Comm_free(&comm));
}

/* Every second number leaves, and comes to every third place. Up to 8 KiB need no request. */
static void check_gaps(int numbers, int came) {
  const int* const got = (const int*)in;
  for (int i = 0; i < 3 * numbers; ++i) {
    CHECK(got[i] == (i % 3 == 0 && i / 3 < came ? 1000 * before + i / 3 : -1));
  }
  memset(in, 0xff, 3 * numbers * sizeof(int));
}

static void with_gaps(int numbers) {
  const int bytes = numbers * (int)sizeof(int);
  int* const sent = (int*)out;
  MPI_Datatype every_second, every_third;
  MPI_Request request;
  MPI_Status status;
  MPI_Comm comm;
  int class = 0;
  step = "data with gaps";
  OK(MPI_Type_vector(numbers, 1, 2, MPI_INT, &every_second));
  OK(MPI_Type_vector(numbers, 1, 3, MPI_INT, &every_third));
  OK(MPI_Type_commit(&every_second));
  OK(MPI_Type_commit(&every_third));
  for (int i = 0; i < numbers; ++i) sent[2 * i] = 1000 * rank + i;
  memset(in, 0xff, 3 * numbers * sizeof(int));
  OK(MPI_Sendrecv(sent, 1, every_second, next, tag, in, 1, every_third, before, tag, MPI_COMM_WORLD,
                  &status));
  check_status(&status, bytes);
  check_gaps(numbers, numbers);
  for (int m = 0; m < mode_count; ++m) {
    OK(MPI_Irecv(in, 1, every_third, before, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(modes[m].blocking(sent, 1, every_second, next, tag, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    check_status(&status, bytes);
    check_gaps(numbers, numbers);
  }
  /* A receive that waits; the types that the program has freed live on. */
  OK(MPI_Isend(sent, 1, every_second, next, tag, MPI_COMM_WORLD, &request));
  OK(MPI_Type_free(&every_second));
  OK(MPI_Recv(in, 1, every_third, before, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  check_status(&status, bytes);
  check_gaps(numbers, numbers);
  /* One side alone has gaps. A shorter message fills the first places. */
  for (int i = 0; i < numbers; ++i) sent[i] = 1000 * rank + i;
  OK(MPI_Sendrecv(sent, numbers - 1, MPI_INT, next, tag, in, 1, every_third, before, tag,
                  MPI_COMM_WORLD, &status));
  check_status(&status, bytes - 4);
  check_gaps(numbers, numbers - 1);
  OK(MPI_Sendrecv(sent, 0, MPI_INT, MPI_PROC_NULL, tag, in, 1, every_third, MPI_PROC_NULL, tag,
                  MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  check_gaps(numbers, 0);
  /* Of one that is too long the beginning comes. */
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  OK(MPI_Isend(sent, numbers + 1, MPI_INT, next, tag, comm, &request));
  OK(MPI_Error_class(MPI_Recv(in, 1, every_third, before, tag, comm, &status), &class));
  CHECK(class == MPI_ERR_TRUNCATE);
  OK(MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class));
  CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
  OK(MPI_Comm_free(&comm));
  memset(in, 0xff, 3 * numbers * sizeof(int));
  OK(MPI_Type_free(&every_third));
}

/* A synchronous send ends only once its receive has begun. */
static void synchronous_waits(int bytes) {
  MPI_Request request;
  int done = 1;
  step = "a synchronous send without a receive";
  if (rank == 0) {
    OK(MPI_Issend(out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request));
    for (int n = 0; n < 1000; ++n) {
      OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      CHECK(!done);
    }
    OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 2,
                MPI_COMM_WORLD)); /* sent after those tests: the other one may receive now */
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(in, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Nobody receives the message: MPI_Wait returns all the same. Earlier messages can still be
 * received. */
static void cancelled_send(const struct mode* mode, int bytes, int persistently) {
  MPI_Request request;
  MPI_Status status;
  int was_gone = -1, flag = -1;
  step = "cancelled sends";
  fill(out, bytes, 5);
  if (persistently) {
    OK(mode->persistent(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
  } else {
    OK(mode->nonblocking(out, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
  }
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  const int is_gone = was_cancelled(&status);
  CHECK(is_gone || mode->nonblocking != MPI_Issend);
  CHECK(is_gone || bytes < max_bytes || mode->nonblocking == MPI_Ibsend);
  memset(out, 0, bytes); /* the buffer is the program's again */
  OK(MPI_Sendrecv(&is_gone, 1, MPI_INT, next, 3, &was_gone, 1, MPI_INT, before, 3, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  if (!was_gone) {
    OK(MPI_Recv(in, bytes, MPI_BYTE, before, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, bytes, 5));
  }
  OK(MPI_Iprobe(before, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Barrier(MPI_COMM_WORLD)); /* all have looked before the next message */
  if (persistently) {              /* the request may be started again, and is received then */
    fill(out, bytes, 6);
    OK(MPI_Start(&request));
    OK(MPI_Recv(in, bytes, MPI_BYTE, before, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, bytes, 6));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
  }
}

static void cancelled_sends(void) {
  for (int m = 0; m < mode_count; ++m) {
    for (int s = 0; s < size_count; ++s) {
      if (modes[m].nonblocking == MPI_Irsend) continue; /* nobody has posted a receive */
      cancelled_send(&modes[m], sizes[s], 0);
      cancelled_send(&modes[m], sizes[s], 1);
    }
  }
}

/* Rank 1 makes no MPI call while rank 0 cancels, until it gets a signal. */
static void cancelled_without_the_receiver(int bytes) {
  MPI_Request request;
  MPI_Status status;
  sigset_t signals;
  int flag = -1, received = 0, receiver = (int)getpid();
  step = "a cancelled send to a rank that does not help";
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  if (rank == 1) {
    OK(MPI_Send(&receiver, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    CHECK(sigwait(&signals, &received) == 0 && received == SIGUSR1);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  } else if (rank == 0) {
    OK(MPI_Recv(&receiver, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Issend(out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    CHECK(was_cancelled(&status));
    CHECK(kill((pid_t)receiver, SIGUSR1) == 0);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The receiver has seen the message, and does not receive it before MPI_Wait has returned. A
 * matched probe has taken it. */
static void cancelled_after_a_probe(int bytes, int is_synchronous, int is_matched) {
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  int is_gone = -1, flag = -1;
  step = is_matched ? "a send that is cancelled after a matched probe"
                    : "a send that is cancelled after a probe";
  if (rank == 0) {
    fill(out, bytes, 7);
    OK((is_synchronous ? MPI_Issend : MPI_Isend)(out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
                                                 &request));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    is_gone = was_cancelled(&status);
    memset(out, 0, bytes);
    OK(MPI_Send(&is_gone, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
  } else if (rank == 1) {
    if (is_matched) {
      OK(MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, &status));
    } else {
      OK(MPI_Probe(0, tag, MPI_COMM_WORLD, &status));
    }
    CHECK(count_of(&status, MPI_BYTE) == bytes);
    OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD));
    OK(MPI_Recv(&is_gone, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_matched ? !is_gone : is_gone || !is_synchronous);
    if (is_matched) OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
    if (!is_matched && !is_gone) OK(MPI_Recv(in, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status));
    CHECK(is_gone || is_filled(in, bytes, 7));
    OK(MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void odds_and_ends(void) {
  MPI_Status status;
  MPI_Request request, requests[3];
  MPI_Message message;
  int outcount, indices[3];
  step = "MPI_PROC_NULL";
  OK(MPI_Send(out, 5, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD));
  OK(MPI_Recv(in, 5, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  CHECK(count_of(&status, MPI_BYTE) == 0);
  OK(MPI_Irecv(in, 5, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);

  step = "MPI_PROC_NULL and no datatype";
  OK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD));
  OK(MPI_Bsend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD));
  OK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  OK(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, NULL, 0, MPI_DATATYPE_NULL,
                  MPI_PROC_NULL, tag, MPI_COMM_WORLD, &status));
  OK(MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Send_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Start(&requests[2]));
  OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Request_free(&requests[2]));
  OK(MPI_Mprobe(MPI_PROC_NULL, tag, MPI_COMM_WORLD, &message, &status));
  OK(MPI_Mrecv(NULL, 0, MPI_DATATYPE_NULL, &message, &status));
  CHECK(message == MPI_MESSAGE_NULL);

  step = "cancel";
  OK(MPI_Irecv(in, 5, MPI_BYTE, before, tag + 1, MPI_COMM_WORLD, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(was_cancelled(&status));

  step = "some";
  OK(MPI_Irecv(in, 1, MPI_BYTE, before, 20, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Irecv(in + 1, 1, MPI_BYTE, before, 21, MPI_COMM_WORLD, &requests[1]));
  requests[2] = MPI_REQUEST_NULL;
  fill(out, 2, 3);
  OK(MPI_Send(out + 1, 1, MPI_BYTE, next, 21, MPI_COMM_WORLD));
  OK(MPI_Waitsome(3, requests, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == 1 && indices[0] == 1 && requests[1] == MPI_REQUEST_NULL);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Testsome(3, requests, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Send(out, 1, MPI_BYTE, next, 20, MPI_COMM_WORLD));
  OK(MPI_Waitsome(3, requests, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == 1 && indices[0] == 0 && is_filled(in, 2, 3));
  OK(MPI_Waitsome(3, requests, &outcount, indices, MPI_STATUSES_IGNORE));
  CHECK(outcount == MPI_UNDEFINED);

  step = "a freed request";
  OK(MPI_Irecv(freed, 4, MPI_BYTE, before, 30, MPI_COMM_WORLD, &request));
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  fill(out, 4, 9);
  OK(MPI_Send(out, 4, MPI_BYTE, next, 30, MPI_COMM_WORLD));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  void* attached = malloc(max_bytes + MPI_BSEND_OVERHEAD);
  int attached_bytes = 0;
  sigset_t signals; /* all threads inherit the mask that sigwait needs */
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &signals, NULL) == 0);
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  OK(MPI_Alloc_mem(max_bytes, MPI_INFO_NULL, &out));
  in = malloc(max_bytes);
  OK(MPI_Buffer_attach(attached, max_bytes + MPI_BSEND_OVERHEAD));
  for (int s = 0; s < size_count; ++s) {
    for (int m = 0; m < mode_count; ++m) {
      blocking(&modes[m], sizes[s], (unsigned)(s * 10 + m));
      nonblocking(&modes[m], sizes[s], (unsigned)(s * 11 + m));
      persistent(&modes[m], sizes[s], (unsigned)(s * 12 + m));
    }
    probed(sizes[s], (unsigned)s);
    exchanged(sizes[s], (unsigned)s);
    if (size > 1) synchronous_waits(sizes[s]);
  }
  small_exchanges();
  with_gaps(2);
  with_gaps(256);
  with_gaps(2048);
  with_gaps(2049);
  with_gaps(20000);
  refused_exchange();
  cancelled_sends();
  for (int s = 0; size > 1 && s < size_count; ++s) cancelled_without_the_receiver(sizes[s]);
  for (int way = 0; size > 1 && way < 4; ++way) {
    for (int s = 0; s < size_count; ++s) cancelled_after_a_probe(sizes[s], way / 2, way % 2);
  }
  odds_and_ends();
  OK(MPI_Buffer_detach(&attached, &attached_bytes));
  CHECK(attached_bytes == max_bytes + MPI_BSEND_OVERHEAD);
  free(attached);
  free(in);
  OK(MPI_Free_mem(out));
  const int result = end_well("all messages were right");
  CHECK(is_filled(freed, 4, 9)); /* it was completed all the same */
  return result;
}
