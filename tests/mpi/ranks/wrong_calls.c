/* Calls of collectives that do not belong together. Run by two ranks or more.
 *
 * `wrong_calls checked`: the ranks compare their calls (FERRY_MPI_CHECK=1), so all fail in the same
 * words, and the next collective works. `wrong_calls late|late_nonblocking|late_of_several|another
 * CALLS [FIFO]`: after so many barriers the last rank comes late to the next one, or is in another
 * collective; ranks that wait report it (the test reads their standard error output). The last rank
 * is late until somebody opens FIFO; without one, for a third of a second.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { kMost = 64, kTextBytes = 512 };

static int is_last;
static MPI_Comm world;

/* Checks that all have failed with this class, in the same words except for the name of the call;
 * the last rank too, unless it has its own words. */
static void all_fail(int error, int error_class, const char* text, int last_has_own) {
  if (is_last && last_has_own) {
    CHECK(error != MPI_SUCCESS);
  } else {
    expect_error(error, error_class, text);
  }
  char message[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  OK(MPI_Error_string(error, message, &length));
  char mine[kTextBytes] = "", first[kTextBytes];
  const char* words = strstr(message, "rank ");
  if (words != NULL) strncpy(mine, words, sizeof(mine) - 1);
  memcpy(first, mine, sizeof(first));
  OK(MPI_Bcast(first, sizeof(first), MPI_CHAR, 0, world)); /* collectives work again */
  if (!(is_last && last_has_own)) CHECK(strcmp(mine, first) == 0);
  int sum = 0;
  const int one = 1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world));
  CHECK(sum == size);
}

/* ---- Each of the mistakes, in one of the forms of a call ---- */

enum form { kBlocking, kNonblocking, kPersistent, kForms };

/* Completes the request, if it was begun. */
static int finish(enum form form, int error, MPI_Request* request) {
  if (form == kBlocking || error != MPI_SUCCESS) return error;
  if (form == kPersistent) {
    error = MPI_Start(request);
    if (error == MPI_SUCCESS) error = MPI_Wait(request, MPI_STATUS_IGNORE);
    OK(MPI_Request_free(request));
    return error;
  }
  return MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* CALL(result, name, arguments...): makes the call in the current form. */
#define CALL(result, form, name, i_name, ...)                                       \
  do {                                                                              \
    MPI_Request request = MPI_REQUEST_NULL;                                         \
    int call_error = (form) == kBlocking ? MPI_##name(__VA_ARGS__)                  \
                     : (form) == kNonblocking                                       \
                         ? MPI_##i_name(__VA_ARGS__, &request)                      \
                         : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
    result = finish(form, call_error, &request);                                    \
  } while (0)

static int data[4 * kMost], result[4 * kMost];
static float numbers[4 * kMost];

static void check_calls(enum form form) {
  int error;
  step = "another root";
  CALL(error, form, Bcast, Ibcast, data, 1, MPI_INT, is_last ? size - 1 : 0, world);
  all_fail(error, MPI_ERR_ROOT, "passed the root", 0);

  step = "another count";
  CALL(error, form, Bcast, Ibcast, data, is_last ? 3 : 2, MPI_INT, 0, world);
  all_fail(error, MPI_ERR_COUNT, "passed 3 MPI_INT (12 bytes), but rank 0 2 MPI_INT (8 bytes)", 0);

  step = "another datatype of as many bytes";
  CALL(error, form, Allreduce, Iallreduce, is_last ? (void*)numbers : (void*)data, result, 2,
       is_last ? MPI_FLOAT : MPI_INT, MPI_SUM, world);
  all_fail(error, MPI_ERR_TYPE, "passed 2 MPI_FLOAT (8 bytes), but rank 0 2 MPI_INT (8 bytes)", 0);

  step = "another operation";
  CALL(error, form, Allreduce, Iallreduce, data, result, 1, MPI_INT, is_last ? MPI_MAX : MPI_SUM,
       world);
  all_fail(error, MPI_ERR_OP, "passed MPI_MAX, but rank 0 MPI_SUM", 0);

  step = "in place, unlike the others";
  CALL(error, form, Allreduce, Iallreduce, is_last ? MPI_IN_PLACE : (void*)data, result, 1, MPI_INT,
       MPI_SUM, world);
  all_fail(error, MPI_ERR_BUFFER, "passed MPI_IN_PLACE, but rank 0 did not", 0);

  step = "a root that is none, on one rank";
  CALL(error, form, Bcast, Ibcast, data, 1, MPI_INT, is_last ? 99 : 0, world);
  if (is_last) expect_error(error, MPI_ERR_ROOT, "the root 99 is no rank");
  all_fail(error, MPI_ERR_OTHER, "could not go through with it: the root 99 is no rank", 1);

  step = "the same memory twice, on one rank";
  CALL(error, form, Allreduce, Iallreduce, is_last ? (void*)result : (void*)data, result, 1,
       MPI_INT, MPI_SUM, world);
  if (is_last) expect_error(error, MPI_ERR_BUFFER, "the same memory");
  all_fail(error, MPI_ERR_OTHER, "could not go through with it: sendbuf and recvbuf are the same",
           1);

  step = "another count of a gather";
  CALL(error, form, Gather, Igather, data, is_last ? 3 : 1, MPI_INT, result, 1, MPI_INT, 0, world);
  all_fail(error, MPI_ERR_COUNT, "passed 3 MPI_INT", 0);
}

static int counts[kMost], places[kMost], other_counts[kMost];

static void count_all(int each) {
  for (int i = 0; i < size; ++i) {
    counts[i] = other_counts[i] = each;
    places[i] = i * each;
  }
}

/* Lists in which a rank may have a different value for each other one. */
static void check_lists(enum form form) {
  int error;
  count_all(1);
  step = "another count of a gatherv";
  CALL(error, form, Gatherv, Igatherv, data, is_last ? 2 : 1, MPI_INT, result, counts, places,
       MPI_INT, 0, world);
  all_fail(error, MPI_ERR_COUNT, "passed 2 elements (8 bytes) for rank 0, which expects 1", 0);

  step = "another count of a scatterv";
  CALL(error, form, Scatterv, Iscatterv, data, counts, places, MPI_INT, result, is_last ? 2 : 1,
       MPI_INT, 0, world);
  all_fail(error, MPI_ERR_COUNT, "which expects 2 elements (8 bytes)", 0);

  step = "another list of an allgatherv";
  counts[0] = is_last ? 2 : 1;
  CALL(error, form, Allgatherv, Iallgatherv, data, 1, MPI_INT, result, counts, places, MPI_INT,
       world);
  all_fail(error, MPI_ERR_COUNT, "rank 0 passed 1 element (4 bytes) for rank", 0);
  counts[0] = 1;

  step = "an alltoallv whose counts do not fit";
  if (is_last) counts[0] = 2;
  CALL(error, form, Alltoallv, Ialltoallv, data, counts, places, MPI_INT, result, other_counts,
       places, MPI_INT, world);
  all_fail(error, MPI_ERR_COUNT, "passed 2 elements (8 bytes) for rank 0, which expects 1", 0);
  counts[0] = 1;

  step = "another list of a reduce_scatter";
  if (is_last) counts[0] = 2;
  CALL(error, form, Reduce_scatter, Ireduce_scatter, data, result, counts, MPI_INT, MPI_SUM, world);
  all_fail(error, MPI_ERR_COUNT, "which expects 1", 0);
  counts[0] = 1;
}

static void check_other_calls(void) {
  int error;
  step = "another collective";
  error = is_last ? MPI_Barrier(world) : MPI_Allreduce(data, result, 1, MPI_INT, MPI_SUM, world);
  all_fail(error, MPI_ERR_OTHER, "called MPI_Barrier, but rank 0 MPI_Allreduce", 0);

  step = "one that does not block against one that does";
  MPI_Request request = MPI_REQUEST_NULL;
  error = is_last ? MPI_Ibarrier(world, &request) : MPI_Barrier(world);
  if (is_last && error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  all_fail(error, MPI_ERR_OTHER, "called MPI_Ibarrier, but rank 0 MPI_Barrier", 0);

  step = "ranks that pass the count as different types";
  OK(is_last ? MPI_Bcast_c(data, 1, MPI_INT, 0, world) : MPI_Bcast(data, 1, MPI_INT, 0, world));

  step = "datatypes that are made in different ways";
  MPI_Datatype pairs;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pairs));
  OK(MPI_Type_commit(&pairs));
  OK(MPI_Bcast(data, is_last ? 2 : 1, is_last ? MPI_INT : pairs, 0, world));
  OK(MPI_Type_free(&pairs));

  step = "packed data, of which bytes count";
  OK(MPI_Bcast(data, 8, MPI_PACKED, 0, world));

  step = "nobody has anything to send";
  OK(MPI_Bcast(NULL, 0, MPI_INT, 0, world));
  OK(MPI_Reduce(is_last ? MPI_IN_PLACE : data, result, 1, MPI_INT, MPI_SUM, size - 1, world));
}

/* A program may wait for messages before it calls a collective that others have begun. */
static void check_order(void) {
  step = "a collective that some ranks begin once others have";
  MPI_Request request;
  int word = rank;
  if (rank == 0) {
    OK(MPI_Ibcast(data, 1, MPI_INT, 0, world, &request));
    OK(MPI_Send(&word, 1, MPI_INT, size - 1, 1, world));
  } else {
    if (is_last) OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE));
    OK(MPI_Ibcast(data, 1, MPI_INT, 0, world, &request));
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void check_between_groups(void) {
  MPI_Comm half, between;
  const int is_upper = rank >= size / 2;
  OK(MPI_Comm_split(world, is_upper, rank, &half));
  OK(MPI_Intercomm_create(half, 0, world, is_upper ? 0 : size / 2, 0, &between));
  step = "between groups";
  OK(MPI_Allreduce(data, result, 1, MPI_INT, MPI_SUM, between));
  step = "another operation between groups";
  const int error = MPI_Allreduce(data, result, 1, MPI_INT, is_last ? MPI_MAX : MPI_SUM, between);
  expect_error(error, MPI_ERR_OP, "passed MPI_MAX, but rank 0 MPI_SUM");
  step = "between groups, after a mistake";
  OK(MPI_Allreduce(data, result, 1, MPI_INT, MPI_SUM, between));
  OK(MPI_Comm_free(&between));
  OK(MPI_Comm_free(&half));
}

/* ---- Calls that make something of a communicator ---- */

enum { kMakers = 13 };
static const char* const kMakerNames[kMakers] = {
    "MPI_Comm_dup",        "MPI_Comm_dup_with_info", "MPI_Comm_split",
    "MPI_Comm_split_type", "MPI_Comm_create",        "MPI_Cart_create",
    "MPI_Graph_create",    "MPI_Dist_graph_create",  "MPI_Dist_graph_create_adjacent",
    "MPI_Win_create",      "MPI_Win_allocate",       "MPI_Win_create_dynamic",
    "MPI_File_open"};

/* Makes the thing, and frees it again. */
static int make(int maker) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Group group;
  MPI_Win win = MPI_WIN_NULL;
  MPI_File file = MPI_FILE_NULL;
  void* base;
  int no_edges = 0, error = MPI_SUCCESS;
  const int no_ends[kMost] = {0};
  OK(MPI_Comm_group(world, &group));
  switch (maker) {
    case 0:
      error = MPI_Comm_dup(world, &comm);
      break;
    case 1:
      error = MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &comm);
      break;
    case 2:
      error = MPI_Comm_split(world, 0, 0, &comm);
      break;
    case 3:
      error = MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
      break;
    case 4:
      error = MPI_Comm_create(world, group, &comm);
      break;
    case 5:
      error = MPI_Cart_create(world, 1, &size, no_ends, 0, &comm);
      break;
    case 6:
      error = MPI_Graph_create(world, size, no_ends, &no_edges, 0, &comm);
      break;
    case 7:
      error = MPI_Dist_graph_create(world, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                    &comm);
      break;
    case 8:
      error = MPI_Dist_graph_create_adjacent(world, 0, NULL, MPI_UNWEIGHTED, 0, NULL,
                                             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
      break;
    case 9:
      error = MPI_Win_create(data, sizeof(data), 1, MPI_INFO_NULL, world, &win);
      break;
    case 10:
      error = MPI_Win_allocate(100, 1, MPI_INFO_NULL, world, &base, &win);
      break;
    case 11:
      error = MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
      break;
    default:
      error = MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  }
  OK(MPI_Group_free(&group));
  if (error != MPI_SUCCESS) return error;
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  if (win != MPI_WIN_NULL) OK(MPI_Win_free(&win));
  if (file != MPI_FILE_NULL) OK(MPI_File_close(&file));
  return MPI_SUCCESS;
}

static void check_makers(void) {
  char text[200];
  for (int maker = 0; maker < kMakers; ++maker) {
    step = kMakerNames[maker];
    OK(make(maker));
    snprintf(text, sizeof(text), "called MPI_Barrier, but rank 0 %s", kMakerNames[maker]);
    all_fail(is_last ? MPI_Barrier(world) : make(maker), MPI_ERR_OTHER, text, 0);
    snprintf(text, sizeof(text), "called %s, but rank 0 MPI_Barrier", kMakerNames[maker]);
    all_fail(is_last ? make(maker) : MPI_Barrier(world), MPI_ERR_OTHER, text, 0);
    OK(make(maker));
  }
  step = "a part of a grid";
  MPI_Comm grid, part;
  const int periods[1] = {0}, kept[1] = {1};
  OK(MPI_Cart_create(world, 1, &size, periods, 0, &grid));
  expect_error(is_last ? MPI_Barrier(grid) : MPI_Cart_sub(grid, kept, &part), MPI_ERR_OTHER,
               "called MPI_Barrier, but rank 0 MPI_Cart_sub");
  OK(MPI_Comm_free(&grid));
  step = "wrong arguments on one rank";
  const int error = MPI_Comm_dup(world, is_last ? NULL : &part);
  if (is_last) expect_error(error, MPI_ERR_ARG, "newcomm");
  all_fail(error, MPI_ERR_OTHER, "could not go through with it: its arguments are wrong", 1);
}

/* ---- Calls that end something, fences, and others that pass no data ---- */

static MPI_Comm duplicate(void) {
  MPI_Comm comm;
  OK(MPI_Comm_dup(world, &comm));
  return comm;
}

static void check_frees(void) {
  MPI_Comm comm = duplicate();
  step = "a disconnect";
  all_fail(is_last ? MPI_Barrier(comm) : MPI_Comm_disconnect(&comm), MPI_ERR_OTHER,
           "called MPI_Barrier, but rank 0 MPI_Comm_disconnect", 0);
  CHECK(comm != MPI_COMM_NULL);
  OK(MPI_Comm_disconnect(&comm));
  CHECK(comm == MPI_COMM_NULL);
  step = "a free, which waits for no other rank";
  comm = duplicate();
  if (is_last) {
    expect_error(MPI_Barrier(comm), MPI_ERR_OTHER, "called MPI_Barrier, but rank 0 MPI_Comm_free");
  } else {
    OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
  }
  if (is_last) OK(MPI_Comm_free(&comm));
  step = "frees at different times";
  comm = duplicate();
  int word = rank;
  if (rank == 0) {
    OK(MPI_Comm_free(&comm));
    OK(MPI_Send(&word, 1, MPI_INT, size - 1, 3, world));
  } else {
    if (is_last) OK(MPI_Recv(&word, 1, MPI_INT, 0, 3, world, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&comm));
  }
}

static void check_idups(void) {
  MPI_Comm comm = MPI_COMM_NULL, other = MPI_COMM_NULL;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  step = "a duplicate that arrives later";
  int error = is_last ? MPI_Barrier(world) : MPI_Comm_idup(world, &comm, requests);
  if (!is_last && error == MPI_SUCCESS) error = MPI_Wait(requests, MPI_STATUS_IGNORE);
  all_fail(error, MPI_ERR_OTHER, "called MPI_Barrier, but rank 0 MPI_Comm_idup", 0);
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  step = "wrong arguments of a duplicate that arrives later, on one rank";
  error = MPI_Comm_idup(world, is_last ? NULL : &comm, requests);
  if (is_last) expect_error(error, MPI_ERR_ARG, "newcomm");
  if (!is_last && error == MPI_SUCCESS) error = MPI_Wait(requests, MPI_STATUS_IGNORE);
  all_fail(error, MPI_ERR_OTHER, "could not go through with it: its arguments are wrong", 1);
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  step = "two duplicates at a time";
  OK(MPI_Comm_idup(world, &comm, &requests[0]));
  OK(MPI_Comm_idup_with_info(world, MPI_INFO_NULL, &other, &requests[1]));
  OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, comm));
  CHECK(sum == size * (size - 1) / 2);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free(&other));
}

static void check_groups(void) {
  MPI_Group all, group;
  MPI_Comm comm;
  int backwards[kMost];
  for (int i = 0; i < size; ++i) backwards[i] = size - 1 - i;
  OK(MPI_Comm_group(world, &all));
  step = "groups in different orders";
  OK(MPI_Group_incl(all, size, backwards, &group));
  expect_error(MPI_Comm_create_group(world, is_last ? group : all, 5, &comm), MPI_ERR_GROUP,
               "in different orders");
  step = "the same group";
  OK(MPI_Comm_create_group(world, group, 5, &comm));
  OK(MPI_Comm_free(&comm));
  step = "a group of some";
  OK(MPI_Group_free(&group));
  OK(MPI_Group_incl(all, 1, &rank, &group));
  OK(MPI_Comm_create_group(world, group, 6, &comm));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&all));
}

static void check_windows(void) {
  MPI_Win win, same;
  OK(MPI_Win_create(data, sizeof(data), 1, MPI_INFO_NULL, world, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  step = "a fence against the end of the window";
  same = win;
  all_fail(is_last ? MPI_Win_fence(0, win) : MPI_Win_free(&same), MPI_ERR_OTHER,
           "called MPI_Win_fence, but rank 0 MPI_Win_free", 0);
  CHECK(same == win);
  step = "fences that do not agree on what precedes";
  all_fail(MPI_Win_fence(is_last ? MPI_MODE_NOPRECEDE : 0, win), MPI_ERR_ASSERT,
           "passed MPI_MODE_NOPRECEDE, but rank 0 no MPI_MODE_NOPRECEDE/NOSUCCEED", 0);
  step = "fences with assertions of each rank's own";
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | (is_last ? MPI_MODE_NOSTORE | MPI_MODE_NOPUT : 0), win));
  OK(MPI_Win_fence((is_last ? MPI_MODE_NOPUT : 0) | MPI_MODE_NOSUCCEED, win));
  step = "a fence in an epoch of one rank's";
  if (is_last) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  const int error = MPI_Win_fence(0, win);
  if (is_last) expect_error(error, MPI_ERR_RMA_SYNC, "");
  all_fail(error, MPI_ERR_OTHER, "or another epoch is open there", 1);
  step = "the end in an epoch of one rank's";
  if (is_last) CHECK(MPI_Win_free(&same) != MPI_SUCCESS);
  if (!is_last) expect_error(MPI_Win_free(&same), MPI_ERR_OTHER, "an epoch is open there");
  if (is_last) OK(MPI_Win_unlock(0, win));
  step = "the end of a window";
  OK(MPI_Win_free(&win));
}

static void check_all(void) {
  for (int form = 0; form < kForms; ++form) {
    check_calls((enum form)form);
    check_lists((enum form)form);
  }
  check_other_calls();
  check_order();
  check_between_groups();
  check_makers();
  check_frees();
  check_idups();
  check_groups();
  check_windows();
}

/* ---- Refused calls ---- */

/* Calls with wrong arguments, of which nothing may be left for MPI_Finalize, which follows. */
static void be_refused(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  step = "refused calls";
  expect_error(MPI_Bcast(data, 1, MPI_INT, size, world), MPI_ERR_ROOT, "root");
  expect_error(MPI_Allreduce(data, data + 1, -1, MPI_INT, MPI_SUM, world), MPI_ERR_COUNT, "count");
  expect_error(MPI_Ibcast(data, 1, MPI_INT, -1, world, &request), MPI_ERR_ROOT, "root");
  expect_error(MPI_Bcast_init(data, 1, MPI_INT, -1, world, MPI_INFO_NULL, &request), MPI_ERR_ROOT,
               "root");
  expect_error(MPI_Ineighbor_alltoall(data, 1, MPI_INT, data + 1, 1, MPI_INT, world, &request),
               MPI_ERR_TOPOLOGY, "topology");
  expect_error(MPI_Neighbor_alltoall(data, 1, MPI_INT, data + 1, 1, MPI_INT, world),
               MPI_ERR_TOPOLOGY, "topology");
  expect_error(MPI_Neighbor_allgather(data, 1, MPI_INT, data + 1, 1, MPI_INT, world),
               MPI_ERR_TOPOLOGY, "topology");
}

/* ---- Long waits ---- */

static void be_late(const char* fifo) {
  if (fifo == NULL) {
    usleep(300000);
  } else {
    CHECK(close(open(fifo, O_RDONLY)) == 0);
  }
}

static void wait_long(const char* how, int calls_before, const char* fifo) {
  int received = -1, sum = -1;
  for (int i = 0; i < calls_before; ++i) OK(MPI_Barrier(world));
  if (strcmp(how, "late") == 0) {
    if (is_last) be_late(fifo);
    OK(MPI_Barrier(world));
  } else if (strcmp(how, "late_nonblocking") == 0) {
    MPI_Request request;
    if (is_last) be_late(fifo);
    OK(MPI_Ibarrier(world, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (strcmp(how, "late_of_several") == 0) {
    MPI_Request requests[3];
    OK(MPI_Irecv(&received, 1, MPI_INT, rank, 0, world, &requests[0]));
    OK(MPI_Ibarrier(world, &requests[1]));
    if (is_last) be_late(fifo);
    OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world, &requests[2]));
    OK(MPI_Send(&rank, 1, MPI_INT, rank, 0, world));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(received == rank && sum == size * (size - 1) / 2);
  } else { /* for ever: the last rank waits for rank 0, and all others for the last rank */
    if (is_last) {
      OK(MPI_Scatter(NULL, 0, MPI_INT, data, 1, MPI_INT, 0, world));
    } else {
      OK(MPI_Bcast(data, 1, MPI_INT, size - 1, world));
    }
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  world = MPI_COMM_WORLD;
  OK(MPI_Comm_rank(world, &rank));
  OK(MPI_Comm_size(world, &size));
  is_last = rank == size - 1;
  CHECK(argc > 1 && size > 1 && size <= kMost);
  if (strcmp(argv[1], "checked") == 0) {
    check_all();
  } else if (strcmp(argv[1], "refused") == 0) {
    /* The last rank may come late, or not at all. */
    if (!is_last || strcmp(argv[2], "all") == 0) be_refused();
  } else {
    CHECK(argc > 2);
    wait_long(argv[1], atoi(argv[2]), argc > 3 ? argv[3] : NULL);
  }
  return end_well("all wrong calls were answered");
}
