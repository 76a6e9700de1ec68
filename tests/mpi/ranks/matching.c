/* Matched persistent requests and queues under MPI's names. Two ranks: the next one is the other.
 */
#include "tests/mpi/ranks/on_queue.h"

static MPI_Request make(long* word, int tag, MPI_Comm comm) {
  MPI_Request request;
  if (rank == 0) {
    OK(MPI_Send_init(word, 1, MPI_LONG, next, tag, comm, &request));
  } else {
    OK(MPI_Recv_init(word, 1, MPI_LONG, next, tag, comm, &request));
  }
  return request;
}

/* Three communicators with the same ranks, and one tag, are matched crosswise: each request finds
 * the one of its own communicator that was made in the same position. */
static void check_crosswise(void) {
  step = "communicators matched crosswise";
  enum { kComms = 3, kEach = 2 };
  MPI_Comm comms[kComms];
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]));
  long words[kComms][kEach];
  MPI_Request requests[kComms][kEach];
  /* The sender makes them communicator by communicator, the receiver the other way round. */
  for (int i = 0; i < kComms; ++i) {
    const int c = rank == 0 ? i : kComms - 1 - i;
    for (int k = 0; k < kEach; ++k) {
      words[c][k] = rank == 0 ? 10 * c + k : -1;
      requests[c][k] = make(&words[c][k], 5, comms[c]);
    }
  }
  /* They offer them in different orders, too. */
  MPI_Request matches[kComms * kEach];
  int count = 0;
  for (int i = 0; i < kComms * kEach; ++i) {
    const int n = rank == 0 ? (i * 5) % 6 : 5 - i;
    OK(MPIX_Imatch(&requests[n / kEach][n % kEach], &matches[count++]));
  }
  OK(MPI_Waitall(count, matches, MPI_STATUSES_IGNORE));
  for (int c = 0; c < kComms; ++c) {
    OK(MPI_Startall(kEach, requests[c]));
  }
  for (int c = 0; c < kComms; ++c) {
    MPI_Status statuses[kEach];
    OK(MPI_Waitall(kEach, requests[c], statuses));
    for (int k = 0; k < kEach; ++k) {
      CHECK(words[c][k] == 10 * c + k);
      CHECK(rank == 0 || (statuses[k].MPI_SOURCE == next && statuses[k].MPI_TAG == 5));
      OK(MPI_Request_free(&requests[c][k]));
    }
    OK(MPI_Comm_free(&comms[c]));
  }
}

static void check_stream(void) {
  step = "queues";
  ferry_stream stream;
  MPIX_Queue queue;
  open_queue(&stream, &queue);
  long going = 0, coming = -1;
  MPI_Request both[3];
  int flag = 1;
  OK(MPI_Recv_init(&coming, 1, MPI_LONG, next, 1, MPI_COMM_WORLD, &both[0]));
  OK(MPI_Send_init(&going, 1, MPI_LONG, next, 1, MPI_COMM_WORLD, &both[1]));
  OK(MPI_Send_init(&going, 1, MPI_LONG, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &both[2]));
  OK(MPIX_Is_matched(both[0], &flag));
  CHECK(flag == 0);
  OK(MPIX_Is_matched(both[2], &flag));
  CHECK(flag == 1);
  expect_error(MPIX_Enqueue_start(queue, &both[0]), MPI_ERR_REQUEST, "is not matched");
  OK(MPIX_Matchall(3, both));
  OK(MPIX_Is_matched(both[0], &flag));
  CHECK(flag == 1);
  for (long round = 0; round < 50; ++round) {
    going = 100 * round + rank;
    OK(MPIX_Enqueue_startall(queue, 3, both));
    expect_error(MPI_Wait(&both[0], MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "belongs to a queue");
    expect_error(MPI_Start(&both[0]), MPI_ERR_REQUEST, "belongs to a queue");
    expect_error(MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "to a queue");
    expect_error(MPI_Cancel(&both[0]), MPI_ERR_REQUEST, "belongs to a queue");
    expect_error(MPI_Request_free(&both[0]), MPI_ERR_REQUEST, "belongs to a queue");
    expect_error(MPI_Waitall(3, both, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "belongs to a queue");
    expect_error(MPIX_Queue_free(&queue), MPI_ERR_REQUEST, "no wait yet");
    OK(MPIX_Enqueue_waitall(queue, 3, both));
    OK(MPIX_Queue_wait(queue));
    CHECK(coming == 100 * round + next);
  }
  /* The rank itself starts the same requests. */
  going = 77 + rank;
  OK(MPI_Startall(3, both));
  OK(MPI_Waitall(3, both, MPI_STATUSES_IGNORE));
  CHECK(coming == 77 + next);
  for (int i = 0; i < 3; ++i) OK(MPI_Request_free(&both[i]));
  close_queue(&stream, &queue);
  CHECK(queue == MPIX_QUEUE_NULL);
}

/* All modes that can be matched, started by the ranks. */
static void check_modes(void) {
  step = "modes";
  long going[4], coming[4];
  for (int mode = 0; mode < 3; ++mode) {
    MPI_Request both[2];
    OK(MPI_Recv_init(coming, 4, MPI_LONG, next, 2, MPI_COMM_WORLD, &both[0]));
    if (mode == 0) OK(MPI_Ssend_init(going, 4, MPI_LONG, next, 2, MPI_COMM_WORLD, &both[1]));
    if (mode == 1) OK(MPI_Rsend_init(going, 4, MPI_LONG, next, 2, MPI_COMM_WORLD, &both[1]));
    if (mode == 2) OK(MPI_Send_init(going, 4, MPI_LONG, next, 2, MPI_COMM_WORLD, &both[1]));
    OK(MPIX_Matchall(2, both));
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 4; ++i) {
        going[i] = 1000 * round + 10 * rank + i;
        coming[i] = -1;
      }
      OK(MPI_Start(&both[0]));
      OK(MPI_Barrier(MPI_COMM_WORLD)); /* a ready send needs the receive to be there */
      OK(MPI_Start(&both[1]));
      OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      for (int i = 0; i < 4; ++i) CHECK(coming[i] == 1000 * round + 10 * next + i);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
  }
}

/* How the first start of a request ends, by the rank or on a queue, whose match may have found the
 * other side before that refused. */
static int start_refused(MPI_Request* request, int on_queue) {
  if (!on_queue) {
    const int error = MPI_Start(request);
    return error != MPI_SUCCESS ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  ferry_stream stream;
  MPIX_Queue queue;
  open_queue(&stream, &queue);
  int error = MPIX_Enqueue_start(queue, request);
  if (error == MPI_SUCCESS) {
    OK(MPIX_Enqueue_wait(queue, request));
    error = MPIX_Queue_wait(queue);
  }
  close_queue(&stream, &queue);
  return error;
}

/* Matches a message whose ends may have gaps, which no stream packs: that end is told by the match,
 * and the other one by its own or by the first start, whoever comes first. Then requests in their
 * place are matched, and carried out. */
static void refuse_gaps(MPI_Datatype gaps, int sender_has, int receiver_has, int first,
                        int on_queue) {
  long words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int has_gaps = rank == 0 ? sender_has : receiver_has;
  const int count = has_gaps ? 1 : 4;
  const MPI_Datatype type = has_gaps ? gaps : MPI_LONG;
  int flag = 1;
  MPI_Request request, match;
  if (rank == 0) OK(MPI_Send_init(words, count, type, next, 6, MPI_COMM_WORLD, &request));
  if (rank == 1) OK(MPI_Recv_init(words, count, type, next, 6, MPI_COMM_WORLD, &request));
  if (rank != first) OK(MPI_Barrier(MPI_COMM_WORLD));
  int error = MPIX_Imatch(&request, &match);
  if (rank == first) OK(MPI_Barrier(MPI_COMM_WORLD));
  if (error == MPI_SUCCESS) {
    CHECK(!has_gaps);
    error = MPI_Wait(&match, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) error = start_refused(&request, on_queue);
    /* A send is complete once its data have left: it may be told later. */
    while (rank == 0 && error == MPI_SUCCESS) error = start_refused(&request, on_queue);
  }
  expect_error(error, has_gaps ? MPI_ERR_TYPE : MPI_ERR_REQUEST,
               has_gaps ? "has gaps, which a stream cannot pack" : "free");
  if (has_gaps) {
    OK(MPIX_Is_matched(request, &flag));
    CHECK(flag == 0);
    expect_error(MPIX_Match(&request), MPI_ERR_TYPE, "has gaps");
    expect_error(MPI_Start(&request), MPI_ERR_TYPE, "free it and make it anew");
    expect_error(MPIX_Enqueue_start(1, &request), MPI_ERR_TYPE, "has gaps");
  }
  OK(MPI_Request_free(&request));
  request = make(words, 6, MPI_COMM_WORLD);
  OK(MPIX_Match(&request));
  words[0] = rank == 0 ? 40 + first : -1;
  OK(MPI_Start(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(words[0] == 40 + first);
  OK(MPI_Request_free(&request));
}

static void check_gaps(void) {
  step = "data with gaps";
  MPI_Datatype gaps;
  OK(MPI_Type_vector(4, 1, 2, MPI_LONG, &gaps));
  OK(MPI_Type_commit(&gaps));
  for (int who = 1; who < 4; ++who) {
    for (int how = 0; how < 4; ++how) refuse_gaps(gaps, who & 1, who >> 1, how & 1, how >> 1);
  }
  /* Without a match it is a persistent message like any other. */
  long going[8] = {0, 1, 2, 3, 4, 5, 6, 7}, coming[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  MPI_Request both[2];
  OK(MPI_Recv_init(coming, 1, gaps, next, 7, MPI_COMM_WORLD, &both[0]));
  OK(MPI_Send_init(going, 1, gaps, next, 7, MPI_COMM_WORLD, &both[1]));
  OK(MPI_Startall(2, both));
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  for (int i = 0; i < 8; ++i) CHECK(coming[i] == (i % 2 == 0 && i < 7 ? i : -1));
  OK(MPI_Request_free(&both[0]));
  OK(MPI_Request_free(&both[1]));
  OK(MPI_Type_free(&gaps));
}

static void check_mistakes(void) {
  step = "mistakes";
  long word = 0;
  int flag = 0, bytes = 1000;
  char room[1000];
  MPI_Request request, match;
  OK(MPI_Irecv(&word, 1, MPI_LONG, next, 3, MPI_COMM_WORLD, &request));
  expect_error(MPIX_Match(&request), MPI_ERR_REQUEST, "not a persistent");
  expect_error(MPIX_Is_matched(request, &flag), MPI_ERR_REQUEST, "not a persistent");
  OK(MPI_Send(&word, 1, MPI_LONG, next, 3, MPI_COMM_WORLD));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  expect_error(MPIX_Match(&request), MPI_ERR_REQUEST, "MPI_REQUEST_NULL");

  OK(MPI_Recv_init(&word, 1, MPI_LONG, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request));
  expect_error(MPIX_Match(&request), MPI_ERR_REQUEST, "no partner for life");
  OK(MPI_Request_free(&request));
  OK(MPI_Buffer_attach(room, bytes));
  OK(MPI_Bsend_init(&word, 1, MPI_LONG, next, 3, MPI_COMM_WORLD, &request));
  expect_error(MPIX_Match(&request), MPI_ERR_REQUEST, "not buffered");
  OK(MPI_Request_free(&request));
  void* detached;
  OK(MPI_Buffer_detach(&detached, &bytes));

  long pair[2] = {0, 0};
  if (rank == 0) {
    OK(MPI_Send_init(pair, 2, MPI_LONG, next, 4, MPI_COMM_WORLD, &request));
  } else {
    OK(MPI_Recv_init(pair, 1, MPI_LONG, next, 4, MPI_COMM_WORLD, &request));
  }
  OK(MPIX_Imatchall(1, &request, &match));
  expect_error(MPI_Cancel(&match), MPI_ERR_REQUEST, "cannot be cancelled");
  expect_error(MPI_Wait(&match, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "longer than the receive");
  CHECK(match == MPI_REQUEST_NULL);
  OK(MPI_Request_free(&request));

  MPIX_Queue queue = 99;
  expect_error(MPIX_Queue_init(&queue, MPIX_QUEUE_HIP, &word), MPI_ERR_UNSUPPORTED_OPERATION,
               "hip");
  expect_error(MPIX_Queue_init(NULL, MPIX_QUEUE_FERRY, &word), MPI_ERR_ARG, "null");
  expect_error(MPIX_Queue_wait(99), MPI_ERR_ARG, "names no queue");
  OK(MPIX_Matchall(0, NULL));
  expect_error(MPIX_Matchall(1, NULL), MPI_ERR_ARG, "null");
  expect_error(MPIX_Matchall(-1, &request), MPI_ERR_ARG, "count is -1");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  check_crosswise();
  check_stream();
  check_modes();
  check_gaps();
  check_mistakes();
  return end_well("all matched");
}
