/* Generalised requests that are freed before or after they are complete (MPI 5.0, section 13.2).
 * Each rank by itself.
 */
#include <pthread.h>

#include "tests/mpi/ranks/check.h"

/* What the callbacks of one request have been called for. */
struct calls {
  int queries, frees, cancels, free_error;
};

static int query(void* state, MPI_Status* status) {
  ++((struct calls*)state)->queries;
  OK(MPI_Status_set_elements(status, MPI_INT, 3));
  OK(MPI_Status_set_cancelled(status, 0));
  status->MPI_SOURCE = 7;
  status->MPI_TAG = 8;
  return MPI_SUCCESS;
}

static int freed(void* state) {
  struct calls* const calls = (struct calls*)state;
  ++calls->frees;
  return calls->free_error;
}

static int cancelled(void* state, int complete) {
  (void)complete;
  ++((struct calls*)state)->cancels;
  return MPI_SUCCESS;
}

static MPI_Request start(struct calls* calls) {
  MPI_Request request = MPI_REQUEST_NULL;
  memset(calls, 0, sizeof(*calls));
  OK(MPI_Grequest_start(query, freed, cancelled, calls, &request));
  CHECK(request != MPI_REQUEST_NULL);
  return request;
}

static void waited_for(void) {
  struct calls calls;
  MPI_Request request = start(&calls);
  MPI_Status status;
  step = "a request that is complete, and then waited for";
  OK(MPI_Cancel(&request));
  OK(MPI_Grequest_complete(request));
  CHECK(calls.queries == 0 && calls.frees == 0);
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL && count_of(&status, MPI_INT) == 3);
  CHECK(status.MPI_SOURCE == 7 && status.MPI_TAG == 8);
  CHECK(calls.queries == 1 && calls.frees == 1 && calls.cancels == 1);
}

static void freed_after_it_is_complete(void) {
  struct calls calls;
  MPI_Request request = start(&calls);
  step = "a request that is complete, and then freed";
  OK(MPI_Grequest_complete(request));
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL && calls.queries == 0 && calls.frees == 1);
}

/* The copy of the handle stands for the request until that is complete, for nothing else. */
static void freed_before_it_is_complete(void) {
  enum { kOthers = 50 };
  struct calls calls;
  MPI_Request request = start(&calls), copy = request, others[kOthers];
  static int numbers[kOthers];
  int flag = -1;
  step = "a request that is freed, and then complete";
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL && calls.frees == 0);
  for (int i = 0; i < kOthers; ++i) {
    OK(MPI_Irecv(&numbers[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &others[i]));
    CHECK(others[i] != copy);
  }
  expect_error(MPI_Test(&copy, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "does not exist");
  OK(MPI_Grequest_complete(copy));
  CHECK(calls.queries == 0 && calls.frees == 1);
  expect_error(MPI_Grequest_complete(copy), MPI_ERR_REQUEST, "does not exist");
  for (int i = 0; i < kOthers; ++i) {
    OK(MPI_Send(&i, 1, MPI_INT, rank, i, MPI_COMM_WORLD));
    OK(MPI_Wait(&others[i], MPI_STATUS_IGNORE));
    CHECK(numbers[i] == i);
  }
}

/* Whichever call comes last returns what the free function does. */
static void failing(void) {
  struct calls calls;
  MPI_Request request = start(&calls), copy = request;
  step = "a free function that fails";
  calls.free_error = MPI_ERR_OTHER;
  OK(MPI_Request_free(&request));
  expect_error(MPI_Grequest_complete(copy), MPI_ERR_OTHER, "free function");
  request = start(&calls);
  calls.free_error = MPI_ERR_OTHER;
  OK(MPI_Grequest_complete(request));
  expect_error(MPI_Request_free(&request), MPI_ERR_OTHER, "free function");
  CHECK(request == MPI_REQUEST_NULL && calls.frees == 1);
}

static void wrong(void) {
  MPI_Request request;
  int number = 0;
  step = "requests that are none of these";
  OK(MPI_Irecv(&number, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request));
  expect_error(MPI_Grequest_complete(request), MPI_ERR_REQUEST, "generalised");
  expect_error(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST, "null");
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void* complete(void* request) {
  OK(MPI_Grequest_complete((MPI_Request)request));
  return NULL;
}

static void at_once(void) {
  step = "a request that one thread frees and another completes";
  for (int i = 0; i < 300; ++i) {
    struct calls calls;
    pthread_t thread;
    MPI_Request request = start(&calls);
    CHECK(pthread_create(&thread, NULL, complete, (void*)request) == 0);
    OK(MPI_Request_free(&request));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(calls.frees == 1 && calls.queries == 0);
  }
}

int main(int argc, char** argv) {
  struct calls never;
  MPI_Request left;
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  waited_for();
  freed_after_it_is_complete();
  freed_before_it_is_complete();
  failing();
  wrong();
  at_once();
  left = start(&never); /* MPI_Finalize does not wait for it */
  OK(MPI_Request_free(&left));
  return end_well("generalised requests are well");
}
