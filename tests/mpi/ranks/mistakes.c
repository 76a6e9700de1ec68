/* Every wrong argument of the message calls: each returns its error class, and MPI_Error_string
 * names the call and the value. Whole messages pass after each mistake. Run by two ranks.
 * The next one is the other.
 */
#include "tests/mpi/ranks/check.h"

/* Checks the class of the code that a call returned, and words of its message. */
static void expect(const char* what, int code, int wanted, const char* word, const char* value) {
  step = what;
  expect_error(code, wanted, word);
  expect_error(code, wanted, value);
}

/* Checks that the two still understand each other. */
static void exchange(int seed) {
  int mine = seed * 2 + rank, theirs = -1;
  MPI_Status status;
  OK(MPI_Sendrecv(&mine, 1, MPI_INT, next, 5, &theirs, 1, MPI_INT, next, 5, MPI_COMM_WORLD,
                  &status));
  CHECK(theirs == seed * 2 + next);
}

static void wrong_messages(void) {
  int data[4] = {0};
  MPI_Request request;
  MPI_Status status;
  MPI_Datatype vector;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
  const MPI_Comm world = MPI_COMM_WORLD;
  expect("a destination too large", MPI_Send(data, 1, MPI_INT, 2, 0, world), MPI_ERR_RANK,
         "MPI_Send", "2");
  expect("a negative destination", MPI_Isend(data, 1, MPI_INT, -9, 0, world, &request),
         MPI_ERR_RANK, "MPI_Isend", "-9");
  expect("any destination", MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK,
         "MPI_Send", "MPI_ANY_SOURCE");
  expect("a source too large", MPI_Recv(data, 1, MPI_INT, 77, 0, world, &status), MPI_ERR_RANK,
         "MPI_Recv", "77");
  exchange(1);
  expect("a negative tag", MPI_Send(data, 1, MPI_INT, next, -5, world), MPI_ERR_TAG, "MPI_Send",
         "-5");
  expect("any tag to send", MPI_Ssend(data, 1, MPI_INT, next, MPI_ANY_TAG, world), MPI_ERR_TAG,
         "MPI_Ssend", "MPI_ANY_TAG");
  expect("a tag too large", MPI_Irecv(data, 1, MPI_INT, next, 0x40000000, world, &request),
         MPI_ERR_TAG, "MPI_Irecv", "1073741824");
  expect("a negative count", MPI_Send(data, -1, MPI_INT, next, 0, world), MPI_ERR_COUNT, "MPI_Send",
         "-1");
  expect("a negative large count", MPI_Recv_c(data, -3, MPI_INT, next, 0, world, &status),
         MPI_ERR_COUNT, "MPI_Recv_c", "-3");
  exchange(2);
  expect("no datatype", MPI_Send(data, 1, MPI_DATATYPE_NULL, next, 0, world), MPI_ERR_TYPE,
         "MPI_Send", "MPI_Datatype");
  expect("no datatype to nobody, but bytes",
         MPI_Send(data, -1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world), MPI_ERR_COUNT, "MPI_Send",
         "-1");
  expect("an uncommitted datatype", MPI_Send(data, 1, vector, next, 0, world), MPI_ERR_TYPE,
         "MPI_Send", "the datatype is not committed; call MPI_Type_commit");
  expect("a null buffer", MPI_Send(NULL, 4, MPI_INT, next, 0, world), MPI_ERR_BUFFER, "MPI_Send",
         "null");
  expect("MPI_IN_PLACE as a buffer", MPI_Recv(MPI_IN_PLACE, 4, MPI_INT, next, 0, world, &status),
         MPI_ERR_BUFFER, "MPI_Recv", "MPI_IN_PLACE");
  expect("no communicator", MPI_Send(data, 1, MPI_INT, next, 0, MPI_COMM_NULL), MPI_ERR_COMM,
         "MPI_Send", "MPI_COMM_NULL");
  expect("a wild communicator", MPI_Send(data, 1, MPI_INT, next, 0, (MPI_Comm)data), MPI_ERR_COMM,
         "MPI_Send", "does not exist");
  expect("no address for a request", MPI_Isend(data, 1, MPI_INT, next, 0, world, NULL), MPI_ERR_ARG,
         "MPI_Isend", "null");
  exchange(3);
  OK(MPI_Type_free(&vector));
}

static void wrong_requests(void) {
  int data = 0, index;
  MPI_Request request = MPI_REQUEST_NULL, stale, wild = (MPI_Request)&data;
  MPI_Status status;
  expect("starting no request", MPI_Start(&request), MPI_ERR_REQUEST, "MPI_Start",
         "MPI_REQUEST_NULL");
  expect("freeing no request", MPI_Request_free(&request), MPI_ERR_REQUEST, "MPI_Request_free",
         "MPI_REQUEST_NULL");
  expect("waiting for a wild request", MPI_Wait(&wild, &status), MPI_ERR_REQUEST, "MPI_Wait",
         "does not exist");
  expect("an array without requests", MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST,
         "MPI_Waitall", "null");
  expect("a negative number of requests", MPI_Waitany(-2, &request, &index, &status), MPI_ERR_COUNT,
         "MPI_Waitany", "-2");
  expect("no flag", MPI_Test(&request, NULL, &status), MPI_ERR_ARG, "MPI_Test", "flag");
  OK(MPI_Irecv(&data, 1, MPI_INT, next, 6, MPI_COMM_WORLD, &request));
  expect("starting a plain receive", MPI_Start(&request), MPI_ERR_REQUEST, "MPI_Start",
         "persistent");
  stale = request;
  OK(MPI_Send(&rank, 1, MPI_INT, next, 6, MPI_COMM_WORLD));
  OK(MPI_Wait(&request, &status));
  expect("waiting a second time", MPI_Wait(&stale, &status), MPI_ERR_REQUEST, "MPI_Wait", "freed");
  OK(MPI_Recv_init(&data, 1, MPI_INT, next, 6, MPI_COMM_WORLD, &request));
  OK(MPI_Start(&request));
  expect("starting an active request", MPI_Start(&request), MPI_ERR_REQUEST, "MPI_Start", "active");
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(was_cancelled(&status));
  expect("cancelling an inactive request", MPI_Cancel(&request), MPI_ERR_REQUEST, "MPI_Cancel",
         "not active");
  OK(MPI_Request_free(&request));
  exchange(4);
}

static void wrong_buffers(void) {
  static char space[MPI_BSEND_OVERHEAD + 100], message[200];
  void* detached;
  int size, data[2] = {7, 8};
  MPI_Status status;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  expect("no attached buffer", MPI_Bsend(message, 1, MPI_BYTE, next, 0, MPI_COMM_WORLD),
         MPI_ERR_BUFFER, "MPI_Bsend", "MPI_Buffer_attach");
  expect("detaching none", MPI_Buffer_detach(&detached, &size), MPI_ERR_BUFFER, "MPI_Buffer_detach",
         "no buffer");
  OK(MPI_Buffer_attach(space, sizeof(space)));
  expect("attaching twice", MPI_Buffer_attach(space, sizeof(space)), MPI_ERR_BUFFER,
         "MPI_Buffer_attach", "already");
  expect("a buffer too small", MPI_Bsend(message, 200, MPI_BYTE, next, 0, MPI_COMM_WORLD),
         MPI_ERR_BUFFER, "MPI_Bsend", "612");
  OK(MPI_Buffer_detach(&detached, &size));
  CHECK(detached == space && size == (int)sizeof(space));

  /* Truncation: the first bytes are there, and the next message is whole. */
  OK(MPI_Irecv(message, 4, MPI_BYTE, next, 8, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Irecv(message + 100, 8, MPI_BYTE, next, 8, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Send(data, 2, MPI_INT, next, 8, MPI_COMM_WORLD));
  OK(MPI_Send(data, 2, MPI_INT, next, 8, MPI_COMM_WORLD));
  expect("truncation among several", MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS,
         "MPI_Waitall", "1 of the requests");
  CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS);
  CHECK(memcmp(message, data, 4) == 0 && memcmp(message + 100, data, 8) == 0);
  OK(MPI_Send(data, 2, MPI_INT, next, 8, MPI_COMM_WORLD));
  expect("truncation", MPI_Recv(message, 4, MPI_BYTE, next, 8, MPI_COMM_WORLD, &status),
         MPI_ERR_TRUNCATE, "MPI_Recv", "longer");
  CHECK(status.MPI_SOURCE == next && status.MPI_TAG == 8);
  exchange(5);
}

/* A rank's own block already lies where the rank receives it: it should pass MPI_IN_PLACE. */
static void wrong_collectives(void) {
  const int one[] = {1, 1}, places[] = {0, 1};
  const int bytes[] = {0, sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info no_info = (MPI_Info)one;
  int data[2] = {7, 8};
  MPI_Request request;
  int* const own = &data[rank];
  expect("allgather of its own block", MPI_Allgather(own, 1, MPI_INT, data, 1, MPI_INT, world),
         MPI_ERR_BUFFER, "MPI_Allgather", "MPI_IN_PLACE");
  expect("allgatherv of its own block",
         MPI_Allgatherv(own, 1, MPI_INT, data, one, places, MPI_INT, world), MPI_ERR_BUFFER,
         "MPI_Allgatherv", "MPI_IN_PLACE");
  expect("alltoallv within one buffer",
         MPI_Ialltoallv(data, one, places, MPI_INT, data, one, places, MPI_INT, world, &request),
         MPI_ERR_BUFFER, "MPI_Ialltoallv", "MPI_IN_PLACE");
  expect("alltoallw within one buffer",
         MPI_Alltoallw(data, one, bytes, types, data, one, bytes, types, world), MPI_ERR_BUFFER,
         "MPI_Alltoallw", "MPI_IN_PLACE");
  /* Each rank takes itself for the root: these calls do not block. */
  expect("gatherv of its own block",
         MPI_Igatherv(own, 1, MPI_INT, data, one, places, MPI_INT, rank, world, &request),
         MPI_ERR_BUFFER, "MPI_Igatherv", "MPI_IN_PLACE");
  expect("scatterv of its own block",
         MPI_Iscatterv(data, one, places, MPI_INT, own, 1, MPI_INT, rank, world, &request),
         MPI_ERR_BUFFER, "MPI_Iscatterv", "MPI_IN_PLACE");
  int room[2];
  expect("scatterv of a block that is shorter than its room",
         MPI_Iscatterv(data, one, places, MPI_INT, room, 2, MPI_INT, rank, world, &request),
         MPI_ERR_COUNT, "MPI_Iscatterv", "sends itself 4 bytes, but receives 8");
  expect("gatherv of a block that is longer than its room",
         MPI_Igatherv(room, 2, MPI_INT, data, one, places, MPI_INT, rank, world, &request),
         MPI_ERR_TRUNCATE, "MPI_Igatherv", "sends itself 8 bytes, but receives 4");
  /* No mistake: both buffers are MPI_BOTTOM, but the datatypes name different memory. */
  int from = 9, to = 0;
  const int length = 1, zero = 0;
  MPI_Aint places_of[2];
  MPI_Datatype at[2];
  OK(MPI_Get_address(&from, &places_of[0]));
  OK(MPI_Get_address(&to, &places_of[1]));
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Type_create_hindexed(1, &length, &places_of[i], MPI_INT, &at[i]));
    OK(MPI_Type_commit(&at[i]));
  }
  OK(MPI_Alltoallw(MPI_BOTTOM, &length, &zero, &at[0], MPI_BOTTOM, &length, &zero, &at[1],
                   MPI_COMM_SELF));
  CHECK(to == 9);
  for (int i = 0; i < 2; ++i) OK(MPI_Type_free(&at[i]));
  /* No mistake: nothing is exchanged, so there is no datatype. */
  const int zeros[] = {0, 0};
  const MPI_Datatype none[] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  OK(MPI_Alltoallw(data, zeros, zeros, none, own, zeros, zeros, none, world));
  expect("no datatype for one block",
         MPI_Alltoallw(data, one, zeros, none, own, one, zeros, none, world), MPI_ERR_TYPE,
         "MPI_Alltoallw", "recvtype");
  expect("hints that are none", MPI_Barrier_init(world, no_info, &request), MPI_ERR_INFO,
         "MPI_Barrier_init", "MPI_Info");
  exchange(6);
}

int main(int argc, char** argv) {
  int provided;
  begin(&argc, &argv);
  expect("initialising twice", MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided),
         MPI_ERR_OTHER, "MPI_Init_thread", "before");
  wrong_messages();
  wrong_requests();
  wrong_buffers();
  wrong_collectives();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  return end_well("all mistakes were named");
}
