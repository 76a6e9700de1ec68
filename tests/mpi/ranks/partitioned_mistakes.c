/* Every wrong call of partitioned communication: each returns its error class, MPI_Error_string
 * names the call and the value, and whole messages pass afterwards. Run by two ranks: the next one
 * is the other.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 12, partitions = 4 };

static int data[partitions], got[partitions];

/* Checks the class of the code that a call returned, and words of its message. */
static void expect(const char* what, int code, int wanted, const char* call, const char* words) {
  step = what;
  expect_error(code, wanted, call);
  expect_error(code, wanted, words);
}

/* A pair of this rank and the other one. */
static void init_pair(MPI_Request both[2]) {
  OK(MPI_Psend_init(data, partitions, 1, MPI_INT, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kSend]));
  OK(MPI_Precv_init(got, partitions, 1, MPI_INT, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
}

static void fill_data(int mark) {
  for (int p = 0; p < partitions; ++p) {
    data[p] = 100 * mark + 10 * rank + p;
    got[p] = -1;
  }
}

static void check_got(int mark) {
  for (int p = 0; p < partitions; ++p) CHECK(got[p] == 100 * mark + 10 * next + p);
}

/* Whole messages still pass. */
static void exchange(int mark) {
  MPI_Request both[2];
  init_pair(both);
  fill_data(mark);
  OK(MPI_Startall(2, both));
  ready_all(both[kSend], partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  check_got(mark);
  free_all(2, both);
}

/* ---- Inits ---- */

typedef int (*init)(void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,
                    MPI_Request*);

static int psend_init(void* buffer, int parts, MPI_Count count, MPI_Datatype type, int peer,
                      int with_tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return MPI_Psend_init(buffer, parts, count, type, peer, with_tag, comm, info, request);
}

/* What both inits refuse; no request is made. */
static void wrong_inits(init make, const char* call) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  MPI_Request request = (MPI_Request)data;
  MPI_Datatype vector;
  MPI_Info info;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
  expect("no communicator", make(data, 4, 1, MPI_INT, next, 1, MPI_COMM_NULL, none, &request),
         MPI_ERR_COMM, call, "MPI_COMM_NULL");
  expect("a wild communicator", make(data, 4, 1, MPI_INT, next, 1, (MPI_Comm)data, none, &request),
         MPI_ERR_COMM, call, "does not exist");
  expect("a rank too large", make(data, 4, 1, MPI_INT, 2, 1, world, none, &request), MPI_ERR_RANK,
         call, "2 is no rank");
  expect("a negative rank", make(data, 4, 1, MPI_INT, -9, 1, world, none, &request), MPI_ERR_RANK,
         call, "-9");
  expect("any source", make(data, 4, 1, MPI_INT, MPI_ANY_SOURCE, 1, world, none, &request),
         MPI_ERR_RANK, call, "MPI_ANY_SOURCE");
  expect("any tag", make(data, 4, 1, MPI_INT, next, MPI_ANY_TAG, world, none, &request),
         MPI_ERR_TAG, call, "MPI_ANY_TAG");
  expect("a negative tag", make(data, 4, 1, MPI_INT, next, -5, world, none, &request), MPI_ERR_TAG,
         call, "-5");
  expect("a tag too large", make(data, 4, 1, MPI_INT, next, 0x40000000, world, none, &request),
         MPI_ERR_TAG, call, "1073741824");
  exchange(1);
  expect("no partition", make(data, 0, 1, MPI_INT, next, 1, world, none, &request), MPI_ERR_ARG,
         call, "0");
  expect("fewer partitions than none", make(data, -3, 1, MPI_INT, next, 1, world, none, &request),
         MPI_ERR_ARG, call, "-3");
  expect("a negative count", make(data, 4, -2, MPI_INT, next, 1, world, none, &request),
         MPI_ERR_COUNT, call, "-2");
  expect("more bytes than there are",
         make(data, 0x7fffffff, (MPI_Count)1 << 40, MPI_INT, next, 1, world, none, &request),
         MPI_ERR_COUNT, call, "");
  expect("no datatype", make(data, 4, 1, MPI_DATATYPE_NULL, next, 1, world, none, &request),
         MPI_ERR_TYPE, call, "MPI_Datatype");
  expect("an uncommitted datatype", make(data, 1, 1, vector, next, 1, world, none, &request),
         MPI_ERR_TYPE, call, "MPI_Type_commit");
  expect("no buffer, or MPI_BOTTOM", make(NULL, 4, 1, MPI_INT, next, 1, world, none, &request),
         MPI_ERR_BUFFER, call, "null");
  expect("MPI_IN_PLACE", make(MPI_IN_PLACE, 4, 1, MPI_INT, next, 1, world, none, &request),
         MPI_ERR_BUFFER, call, "MPI_IN_PLACE");
  expect("no place for the request", make(data, 4, 1, MPI_INT, next, 1, world, none, NULL),
         MPI_ERR_ARG, call, "null");
  expect("hints that are none", make(data, 4, 1, MPI_INT, next, 1, world, (MPI_Info)data, &request),
         MPI_ERR_INFO, call, "info");
  CHECK(request == (MPI_Request)data);
  exchange(2);
  OK(MPI_Type_free(&vector));
  if (make != psend_init) return;
  static const char* const values[][2] = {{"ferry_partitioned_min_bytes", "many"},
                                          {"ferry_partitioned_min_bytes", "-1"},
                                          {"ferry_partitioned_max_units", "0"},
                                          {"ferry_partitioned_max_units", "12x"}};
  for (int i = 0; i < 4; ++i) {
    info = info_with(values[i][0], values[i][1]);
    expect("a hint without sense", make(data, 4, 1, MPI_INT, next, 1, world, info, &request),
           MPI_ERR_INFO_VALUE, values[i][0], values[i][1]);
    OK(MPI_Info_free(&info));
  }
  exchange(3);
}

/* ---- Partitions ---- */

/* Requests that have no partitions, or not of that kind, or no round. */
static void wrong_requests(void) {
  static const int list[] = {0};
  int word = 0, flag = -1;
  MPI_Request both[2], plain, wild = (MPI_Request)data, null = MPI_REQUEST_NULL;
  init_pair(both);
  OK(MPI_Send_init(&word, 1, MPI_INT, next, tag, MPI_COMM_WORLD, &plain));
  expect("MPI_Pready of no request", MPI_Pready(0, null), MPI_ERR_REQUEST, "MPI_Pready", "null");
  expect("MPI_Pready of a wild request", MPI_Pready(0, wild), MPI_ERR_REQUEST, "MPI_Pready",
         "does not exist");
  expect("MPI_Pready of a plain send", MPI_Pready(0, plain), MPI_ERR_REQUEST, "MPI_Pready",
         "partitioned");
  expect("MPI_Pready of a send that is not started", MPI_Pready(0, both[kSend]), MPI_ERR_REQUEST,
         "MPI_Pready", "not active");
  expect("MPI_Pready_range of a send that is not started", MPI_Pready_range(0, 1, both[kSend]),
         MPI_ERR_REQUEST, "MPI_Pready_range", "not active");
  expect("MPI_Pready_list of a send that is not started", MPI_Pready_list(1, list, both[kSend]),
         MPI_ERR_REQUEST, "MPI_Pready_list", "not active");
  expect("MPI_Parrived of a wild request", MPI_Parrived(wild, 0, &flag), MPI_ERR_REQUEST,
         "MPI_Parrived", "does not exist");
  expect("MPI_Parrived of a plain send", MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST,
         "MPI_Parrived", "partitioned");
  expect("MPI_Parrived of a send", MPI_Parrived(both[kSend], 0, &flag), MPI_ERR_REQUEST,
         "MPI_Parrived", "receive");
  fill_data(4);
  OK(MPI_Startall(2, both));
  expect("MPI_Pready of a receive", MPI_Pready(0, both[kReceive]), MPI_ERR_REQUEST, "MPI_Pready",
         "send");
  expect("MPI_Pready_range of a receive", MPI_Pready_range(0, 3, both[kReceive]), MPI_ERR_REQUEST,
         "MPI_Pready_range", "send");
  expect("MPI_Pready_list of a receive", MPI_Pready_list(1, list, both[kReceive]), MPI_ERR_REQUEST,
         "MPI_Pready_list", "send");
  expect("MPI_Parrived of an active send", MPI_Parrived(both[kSend], 0, &flag), MPI_ERR_REQUEST,
         "MPI_Parrived", "receive");
  expect("no place for the answer", MPI_Parrived(both[kReceive], 0, NULL), MPI_ERR_ARG,
         "MPI_Parrived", "null");
  ready_all(both[kSend], partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  check_got(4);
  OK(MPI_Request_free(&plain));
  free_all(2, both);
}

/* Numbers of partitions that there are not. None of those of the call is marked. */
static void wrong_numbers(void) {
  static const int bad_list[] = {1, 0, 4}, worse_list[] = {-1, 2};
  MPI_Request both[2];
  int flag = -1;
  init_pair(both);
  fill_data(5);
  OK(MPI_Startall(2, both));
  meet();
  expect("a partition too large", MPI_Pready(4, both[kSend]), MPI_ERR_ARG, "MPI_Pready", "4");
  expect("a negative partition", MPI_Pready(-1, both[kSend]), MPI_ERR_ARG, "MPI_Pready", "-1");
  expect("a range that ends too late", MPI_Pready_range(1, 4, both[kSend]), MPI_ERR_ARG,
         "MPI_Pready_range", "4");
  expect("a range that begins too early", MPI_Pready_range(-2, 1, both[kSend]), MPI_ERR_ARG,
         "MPI_Pready_range", "-2");
  expect("a range that ends before it begins", MPI_Pready_range(3, 1, both[kSend]), MPI_ERR_ARG,
         "MPI_Pready_range", "3");
  expect("a list with a partition too large", MPI_Pready_list(3, bad_list, both[kSend]),
         MPI_ERR_ARG, "MPI_Pready_list", "4");
  expect("a list with a negative partition", MPI_Pready_list(2, worse_list, both[kSend]),
         MPI_ERR_ARG, "MPI_Pready_list", "-1");
  expect("a list of negative length", MPI_Pready_list(-2, bad_list, both[kSend]), MPI_ERR_ARG,
         "MPI_Pready_list", "-2");
  expect("no list", MPI_Pready_list(2, NULL, both[kSend]), MPI_ERR_ARG, "MPI_Pready_list", "null");
  expect("to ask for a partition too large", MPI_Parrived(both[kReceive], 4, &flag), MPI_ERR_ARG,
         "MPI_Parrived", "4");
  expect("to ask for a negative partition", MPI_Parrived(both[kReceive], -1, &flag), MPI_ERR_ARG,
         "MPI_Parrived", "-1");
  step = "what wrong numbers have marked";
  meet();
  for (int p = 0; p < partitions; ++p) CHECK(!has_arrived(both[kReceive], p));
  meet();
  ready_all(both[kSend], partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  check_got(5);
  free_all(2, both);
}

/* A partition that is readied twice: the others of the call are marked all the same. */
static void readied_twice(void) {
  static const int twice[] = {3, 3}, mixed[] = {2, 0};
  MPI_Request both[2];
  init_pair(both);
  for (int round = 0; round < 3; ++round) {
    fill_data(10 + round);
    OK(MPI_Startall(2, both));
    OK(MPI_Pready(0, both[kSend]));
    expect("a partition that is ready", MPI_Pready(0, both[kSend]), MPI_ERR_REQUEST, "MPI_Pready",
           "0");
    expect("a range with one that is ready", MPI_Pready_range(0, 1, both[kSend]), MPI_ERR_REQUEST,
           "MPI_Pready_range", "0");
    expect("a list that has one twice", MPI_Pready_list(2, twice, both[kSend]), MPI_ERR_REQUEST,
           "MPI_Pready_list", "3");
    step = "partitions beside those that are readied twice";
    await_arrival(both[kReceive], 0);
    await_arrival(both[kReceive], 1);
    await_arrival(both[kReceive], 3);
    CHECK(!has_arrived(both[kReceive], 2) && !is_done(both[kSend]));
    meet();
    expect("a list with one that is ready", MPI_Pready_list(2, mixed, both[kSend]), MPI_ERR_REQUEST,
           "MPI_Pready_list", "0");
    OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
    expect("a partition of a message that has arrived", MPI_Pready(1, both[kSend]), MPI_ERR_REQUEST,
           "MPI_Pready", "1");
    OK(MPI_Wait(&both[kSend], MPI_STATUS_IGNORE));
    check_got(10 + round);
  }
  free_all(2, both);
}

/* ---- Starts and ends ---- */

/* Active requests cannot be started, freed, or cancelled; they go on. */
static void active_requests(void) {
  MPI_Request both[2], kept;
  init_pair(both);
  for (int which = 0; which < 2; ++which) {
    expect("to cancel what is not active", MPI_Cancel(&both[which]), MPI_ERR_REQUEST, "MPI_Cancel",
           "");
  }
  for (int round = 0; round < 2; ++round) {
    fill_data(20 + round);
    OK(MPI_Startall(2, both));
    for (int which = 0; which < 2; ++which) {
      kept = both[which];
      expect("to start what is active", MPI_Start(&both[which]), MPI_ERR_REQUEST, "MPI_Start",
             "active");
      expect("to free what is active", MPI_Request_free(&both[which]), MPI_ERR_REQUEST,
             "MPI_Request_free", "active");
      expect("to cancel what is active", MPI_Cancel(&both[which]), MPI_ERR_REQUEST, "MPI_Cancel",
             "cancel");
      CHECK(both[which] == kept);
    }
    expect("to start several that are active", MPI_Startall(2, both), MPI_ERR_REQUEST,
           "MPI_Startall", "active");
    OK(MPI_Pready(2, both[kSend]));
    expect("to free a send that is readied in part", MPI_Request_free(&both[kSend]),
           MPI_ERR_REQUEST, "MPI_Request_free", "active");
    await_arrival(both[kReceive], 2);
    OK(MPI_Pready_range(0, 1, both[kSend]));
    OK(MPI_Pready(3, both[kSend]));
    MPI_Status statuses[2];
    OK(MPI_Waitall(2, both, statuses));
    CHECK(!was_cancelled(&statuses[0]) && !was_cancelled(&statuses[1]));
    check_got(20 + round);
  }
  kept = both[kSend];
  free_all(2, both);
  expect("to start what was freed", MPI_Start(&kept), MPI_ERR_REQUEST, "MPI_Start", "freed");
  expect("to ready what was freed", MPI_Pready(0, kept), MPI_ERR_REQUEST, "MPI_Pready", "freed");
  exchange(23);
}

/* ---- Messages that do not fit ---- */

/* Rank 0 sends so many ints in all, rank 1 receives fewer: both fail, each time, and nothing is
 * written behind the buffer. */
static void misfit(enum kind kind, int send_partitions, int send_count, int receive_partitions,
                   int receive_count) {
  struct buffer buffer = make_buffer(kind, (size_t)receive_partitions * (size_t)receive_count * 4);
  struct buffer source = make_buffer(kind, (size_t)send_partitions * (size_t)send_count * 4);
  MPI_Request request;
  if (rank == 0) {
    OK(MPI_Psend_init(source.at, send_partitions, send_count, MPI_INT, 1, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request));
  } else {
    OK(MPI_Precv_init(buffer.at, receive_partitions, receive_count, MPI_INT, 0, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request));
  }
  for (int round = 0; round < 3; ++round) {
    step = "sides of different sizes";
    int error = MPI_Start(&request); /* it may know already */
    if (error == MPI_SUCCESS && rank == 0) OK(MPI_Pready_range(0, send_partitions - 1, request));
    if (error == MPI_SUCCESS && rank == 1) await_arrivals(request, receive_partitions);
    if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_error(error, MPI_ERR_TRUNCATE, "bytes");
    CHECK(request != MPI_REQUEST_NULL);
    CHECK(is_untouched(&buffer, -kGuard, kGuard));
    CHECK(is_untouched(&buffer, (ptrdiff_t)buffer.bytes, kGuard));
  }
  meet(); /* a request that is freed would be another failure for the other side */
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
  drop_buffer(&source);
  exchange(30);
}

/* Rank 0 sends so many ints in all, rank 1 receives more: what came is at the beginning of its
 * buffer, its status tells how much that is, and the rest is as it was. A partition has arrived
 * once all that comes there has; one where nothing comes, once everything has. */
static void longer(enum kind kind, int send_partitions, int send_count, int receive_partitions,
                   int receive_count) {
  const size_t part = (size_t)receive_count * 4, first = (size_t)send_count * 4;
  struct buffer buffer = make_buffer(kind, (size_t)receive_partitions * part);
  struct buffer source = make_buffer(kind, (size_t)send_partitions * first);
  MPI_Request request;
  MPI_Status status;
  step = "a receive that is longer than the send";
  if (rank == 0) {
    OK(MPI_Psend_init(source.at, send_partitions, send_count, MPI_INT, 1, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request));
  } else {
    OK(MPI_Precv_init(buffer.at, receive_partitions, receive_count, MPI_INT, 0, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request));
  }
  for (unsigned round = 0; round < 3; ++round) {
    clear(&buffer);
    fill_buffer(&source, round);
    OK(MPI_Start(&request));
    if (rank == 0) {
      OK(MPI_Pready(0, request));
      hear(1);
      if (send_partitions > 1) OK(MPI_Pready_range(1, send_partitions - 1, request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      for (int p = 0; (size_t)(p + 1) * part <= first; ++p) await_arrival(request, p);
      CHECK(holds(&buffer, 0, first / part * part, round));
      if (send_partitions > 1) CHECK(!has_arrived(request, receive_partitions - 1));
      tell(0);
      await_arrivals(request, receive_partitions);
      OK(MPI_Wait(&request, &status));
      CHECK(count_of(&status, MPI_INT) == send_partitions * send_count);
      CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == tag);
      CHECK(holds(&buffer, 0, source.bytes, round));
      CHECK(is_untouched(&buffer, (ptrdiff_t)source.bytes, buffer.bytes - source.bytes + kGuard));
      CHECK(is_untouched(&buffer, -kGuard, kGuard));
    }
  }
  OK(MPI_Request_free(&request));
  drop_buffer(&buffer);
  drop_buffer(&source);
  exchange(32);
}

/* Among others, the failure is in its status. */
static void misfit_among_others(void) {
  MPI_Request all[3];
  MPI_Status statuses[3];
  int few[2] = {1, 2};
  step = "sides of different sizes, among others";
  init_pair(all);
  if (rank == 0) {
    OK(MPI_Psend_init(few, 2, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &all[2]));
  } else {
    OK(MPI_Precv_init(few, 1, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &all[2]));
  }
  fill_data(31);
  OK(MPI_Startall(3, all));
  ready_all(all[kSend], partitions);
  if (rank == 0) ready_all(all[2], 2);
  expect("a failure among several", MPI_Waitall(3, all, statuses), MPI_ERR_IN_STATUS, "MPI_Waitall",
         "1 of the requests");
  CHECK(statuses[2].MPI_ERROR == MPI_ERR_TRUNCATE);
  CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_SUCCESS);
  check_got(31);
  free_all(3, all);
}

/* ---- Extensions ---- */

static void wrong_extensions(void) {
  int word = 0, flag = -1, found[2], outcount = -1;
  MPI_Request both[2], plain, wild = (MPI_Request)data, mixed[2];
  init_pair(both);
  OK(MPI_Send_init(&word, 1, MPI_INT, next, tag, MPI_COMM_WORLD, &plain));
  expect("to prepare no request", MPIX_Pbuf_prepare(MPI_REQUEST_NULL), MPI_ERR_REQUEST,
         "MPIX_Pbuf_prepare", "null");
  expect("to prepare a wild request", MPIX_Pbuf_prepare(wild), MPI_ERR_REQUEST, "MPIX_Pbuf_prepare",
         "does not exist");
  expect("to prepare a plain request", MPIX_Pbuf_prepare(plain), MPI_ERR_REQUEST,
         "MPIX_Pbuf_prepare", "partitioned");
  expect("to prepare what is not active", MPIX_Pbuf_prepare(both[kSend]), MPI_ERR_REQUEST,
         "MPIX_Pbuf_prepare", "not active");
  expect("to prepare a negative number", MPIX_Pbuf_prepare_all(-1, both), MPI_ERR_ARG,
         "MPIX_Pbuf_prepare_all", "-1");
  expect("to prepare without requests", MPIX_Pbuf_prepare_all(2, NULL), MPI_ERR_ARG,
         "MPIX_Pbuf_prepare_all", "null");
  fill_data(40);
  OK(MPI_Startall(2, both));
  mixed[0] = both[0];
  mixed[1] = plain;
  expect("to prepare several, one of them plain", MPIX_Pbuf_prepare_all(2, mixed), MPI_ERR_REQUEST,
         "MPIX_Pbuf_prepare_all", "request 1");
  expect("any arrival of a send", MPIX_Parrived_any(both[kSend], found, &flag), MPI_ERR_REQUEST,
         "MPIX_Parrived_any", "receive");
  expect("any arrival of a plain request", MPIX_Parrived_any(plain, found, &flag), MPI_ERR_REQUEST,
         "MPIX_Parrived_any", "partitioned");
  expect("any arrival without a place for it", MPIX_Parrived_any(both[kReceive], NULL, &flag),
         MPI_ERR_ARG, "MPIX_Parrived_any", "null");
  expect("any arrival without a flag", MPIX_Parrived_any(both[kReceive], found, NULL), MPI_ERR_ARG,
         "MPIX_Parrived_any", "null");
  expect("some arrivals of a send", MPIX_Parrived_some(both[kSend], 2, &outcount, found),
         MPI_ERR_REQUEST, "MPIX_Parrived_some", "receive");
  expect("fewer arrivals than none", MPIX_Parrived_some(both[kReceive], -1, &outcount, found),
         MPI_ERR_ARG, "MPIX_Parrived_some", "-1");
  expect("some arrivals without a place", MPIX_Parrived_some(both[kReceive], 2, &outcount, NULL),
         MPI_ERR_ARG, "MPIX_Parrived_some", "null");
  expect("some arrivals without a count", MPIX_Parrived_some(both[kReceive], 2, NULL, found),
         MPI_ERR_ARG, "MPIX_Parrived_some", "null");
  ready_all(both[kSend], partitions);
  OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  check_got(40);
  OK(MPI_Request_free(&plain));
  free_all(2, both);
}

static void wrong_queues(void) {
  ferry_stream stream;
  MPIX_Queue queue;
  MPI_Request both[2], plain, null = MPI_REQUEST_NULL;
  int word = 0;
  open_queue(&stream, &queue);
  init_pair(both);
  OK(MPI_Send_init(&word, 1, MPI_INT, next, tag, MPI_COMM_WORLD, &plain));
  expect("no queue", MPIX_Enqueue_pready(99, 0, 1, both[kSend]), MPI_ERR_ARG, "MPIX_Enqueue_pready",
         "queue");
  expect("no queue to start on", MPIX_Enqueue_start(99, &both[kSend]), MPI_ERR_ARG,
         "MPIX_Enqueue_start", "queue");
  expect("no queue to prepare on", MPIX_Enqueue_pbuf_prepare(99, &both[kSend]), MPI_ERR_ARG,
         "MPIX_Enqueue_pbuf_prepare", "queue");
  expect("to enqueue partitions of no request", MPIX_Enqueue_pready(queue, 0, 1, null),
         MPI_ERR_REQUEST, "MPIX_Enqueue_pready", "null");
  expect("to enqueue partitions of a plain request", MPIX_Enqueue_pready(queue, 0, 1, plain),
         MPI_ERR_REQUEST, "MPIX_Enqueue_pready", "partitioned");
  expect("to enqueue partitions of a receive", MPIX_Enqueue_pready(queue, 0, 1, both[kReceive]),
         MPI_ERR_REQUEST, "MPIX_Enqueue_pready", "send");
  expect("to enqueue a partition too large", MPIX_Enqueue_pready(queue, 0, 4, both[kSend]),
         MPI_ERR_ARG, "MPIX_Enqueue_pready", "4");
  expect("to enqueue a range that ends before it begins",
         MPIX_Enqueue_pready(queue, 2, 1, both[kSend]), MPI_ERR_ARG, "MPIX_Enqueue_pready", "2");
  expect("to enqueue a wait without a start", MPIX_Enqueue_wait(queue, &both[kSend]),
         MPI_ERR_REQUEST, "MPIX_Enqueue_wait", "");
  expect("to enqueue the start of a negative number", MPIX_Enqueue_startall(queue, -1, both),
         MPI_ERR_ARG, "MPIX_Enqueue_startall", "-1");
  expect("to prepare without requests, on a queue", MPIX_Enqueue_pbuf_prepare_all(queue, 2, NULL),
         MPI_ERR_ARG, "MPIX_Enqueue_pbuf_prepare_all", "null");
  /* None of several is started if one cannot be: the plain one is not matched. */
  MPI_Request mixed[2] = {both[kReceive], plain};
  expect("several of which one is not matched", MPIX_Enqueue_startall(queue, 2, mixed),
         MPI_ERR_REQUEST, "MPIX_Enqueue_startall", "not matched");
  fill_data(50);
  OK(MPI_Start(&both[kReceive])); /* so it was not started */
  expect("to enqueue the start of what is active", MPIX_Enqueue_start(queue, &both[kReceive]),
         MPI_ERR_REQUEST, "MPIX_Enqueue_start", "active");
  OK(MPIX_Enqueue_start(queue, &both[kSend]));
  expect("to enqueue a start twice", MPIX_Enqueue_start(queue, &both[kSend]), MPI_ERR_REQUEST,
         "MPIX_Enqueue_start", "");
  OK(MPIX_Enqueue_pready(queue, 0, 3, both[kSend]));
  OK(MPIX_Enqueue_wait(queue, &both[kSend]));
  OK(MPIX_Queue_wait(queue));
  OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
  check_got(50);
  step = "a partition that is readied twice on a queue";
  OK(MPI_Start(&both[kReceive]));
  OK(MPIX_Enqueue_start(queue, &both[kSend]));
  OK(MPIX_Enqueue_pready(queue, 0, 3, both[kSend]));
  OK(MPIX_Enqueue_pready(queue, 1, 1, both[kSend]));
  OK(MPIX_Enqueue_wait(queue, &both[kSend]));
  expect_error(MPIX_Queue_wait(queue), MPI_ERR_REQUEST, "1");
  OK(MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE));
  check_got(50);
  OK(MPI_Request_free(&plain));
  free_all(2, both);
  close_queue(&stream, &queue);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(120);
  wrong_inits(psend_init, "MPI_Psend_init");
  wrong_inits(MPI_Precv_init, "MPI_Precv_init");
  wrong_requests();
  wrong_numbers();
  readied_twice();
  active_requests();
  for (int kind = 0; kind < kKinds; ++kind) {
    misfit((enum kind)kind, 4, 3, 4, 2);
    misfit((enum kind)kind, 3, 20000, 2, 20000);
    misfit((enum kind)kind, 2, 1, 5, 0);
    longer((enum kind)kind, 4, 2, 4, 3);
    longer((enum kind)kind, 4, 2, 3, 100);
    longer((enum kind)kind, 7, 3, 2, 21);
    longer((enum kind)kind, 2, 0, 5, 1);
    longer((enum kind)kind, 64, 1, 16, 10);
    longer((enum kind)kind, 1, 100000, 20, 10000);
    longer((enum kind)kind, 3, 20000, 4, 20000);
  }
  misfit_among_others();
  wrong_extensions();
  wrong_queues();
  return end_well("all mistakes were named");
}
