/* Partitioned messages between pairs of ranks, of which a test kills one, or a daemon, in the state
 * that the first argument names. Whoever is left gets an error for everything that waits for the
 * dead one, prints "rank R: error CLASS at NANOSECONDS: TEXT", and ends with code 3.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "tests/mpi/ranks/partitioned.h"

enum { tag = 14, partitions = 6 };

static int peer;
static struct buffer out, in;
static MPI_Request both[2];

static void init_both(enum kind kind, size_t each) {
  out = make_buffer(kind, partitions * each);
  in = make_buffer(kind, partitions * each);
  OK(MPI_Psend_init(out.at, partitions, (MPI_Count)each, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &both[kSend]));
  OK(MPI_Precv_init(in.at, partitions, (MPI_Count)each, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &both[kReceive]));
}

static int exchange(unsigned round) {
  fill_buffer(&out, round + (unsigned)rank);
  int error = MPI_Startall(2, both);
  if (error != MPI_SUCCESS) return error;
  for (int p = 0; p < partitions; ++p) OK(MPI_Pready(p, both[kSend]));
  /* Without statuses the call returns the class of the failure itself. */
  error = MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  if (error == MPI_SUCCESS) CHECK(holds_all(&in, round + (unsigned)peer));
  return error;
}

static void be_under_way(void) {
  printf("rank %d: under way\n", rank);
  fflush(stdout);
}

/* What was readied before the death has arrived, and stays. Returns how the receive ends. */
static int receive_in_part(int polls) {
  OK(MPI_Startall(2, both));
  fill_buffer(&out, (unsigned)rank);
  OK(MPI_Pready_range(1, 2, both[kSend]));
  await_arrival(both[kReceive], 1);
  await_arrival(both[kReceive], 2);
  const size_t each = in.bytes / partitions;
  CHECK(holds(&in, each, 2 * each, (unsigned)peer));
  CHECK(!has_arrived(both[kReceive], 0));
  be_under_way();
  if (polls) await_arrivals(both[kReceive], partitions); /* a failure ends it */
  const int error = MPI_Wait(&both[kReceive], MPI_STATUS_IGNORE);
  CHECK(holds(&in, each, 2 * each, (unsigned)peer));
  return error;
}

/* The receive is among requests that end with nobody's death but the own daemon's. */
static int wait_for_any(void) {
  MPI_Request several[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, both[kReceive]};
  int index = -1, word, error;
  OK(MPI_Irecv(&word, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &several[0]));
  OK(MPI_Start(&both[kReceive]));
  be_under_way();
  do {
    error = MPI_Waitany(3, several, &index, MPI_STATUS_IGNORE);
    CHECK(error != MPI_SUCCESS);
    CHECK(index == 2 || (index == 0 && error == MPI_ERR_OTHER && several[0] == MPI_REQUEST_NULL));
  } while (index == 0);
  return error;
}

/* The other one never starts to receive. */
static int send_in_vain(void) {
  OK(MPI_Start(&both[kSend]));
  ready_all(both[kSend], partitions);
  be_under_way();
  return MPI_Wait(&both[kSend], MPI_STATUS_IGNORE);
}

static int prepare_in_vain(void) {
  OK(MPI_Start(&both[kSend]));
  be_under_way();
  const int error = MPIX_Pbuf_prepare(both[kSend]);
  CHECK(error != MPI_SUCCESS);
  ready_all(both[kSend], partitions);
  return MPI_Wait(&both[kSend], MPI_STATUS_IGNORE);
}

/* The other one makes no such request. */
static int without_a_partner(int is_send) {
  if (is_send) {
    OK(MPI_Psend_init(out.at, 1, 8, MPI_BYTE, peer, tag + 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
  } else {
    OK(MPI_Precv_init(in.at, 1, 8, MPI_BYTE, peer, tag + 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
  }
  OK(MPI_Start(&both[0]));
  if (is_send) OK(MPI_Pready(0, both[0]));
  be_under_way();
  return MPI_Wait(&both[0], MPI_STATUS_IGNORE);
}

static int go_on(void) {
  int error = MPI_SUCCESS;
  be_under_way();
  for (unsigned round = 0; error == MPI_SUCCESS; ++round) error = exchange(round);
  return error;
}

/* Nobody can use the requests any more, but everybody can try. */
static void expect_the_end(void) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Request late = MPI_REQUEST_NULL;
  step = "calls after the death";
  for (int i = 0; i < 2; ++i) {
    if (both[i] == MPI_REQUEST_NULL) continue;
    int error = MPI_Wait(&both[i], MPI_STATUS_IGNORE); /* those that were not waited for */
    error = MPI_Start(&both[i]);
    if (error == MPI_SUCCESS && i == kSend) ready_all(both[i], partitions);
    if (error == MPI_SUCCESS) error = MPI_Wait(&both[i], MPI_STATUS_IGNORE);
    CHECK(error != MPI_SUCCESS);
    OK(MPI_Error_string(error, text, &length));
  }
  int error =
      MPI_Precv_init(in.at, 1, 8, MPI_BYTE, peer, tag + 2, MPI_COMM_WORLD, MPI_INFO_NULL, &late);
  if (error == MPI_SUCCESS) error = MPI_Start(&late);
  if (error == MPI_SUCCESS) error = MPI_Wait(&late, MPI_STATUS_IGNORE);
  CHECK(error != MPI_SUCCESS);
}

/* Sends that are readied in part end by MPI_Wait only once the rest is readied, or they have
 * failed.
 */
static void report(int error, const char* what) {
  struct timespec now;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  CHECK(error != MPI_SUCCESS);
  OK(MPI_Error_string(error, text, &length));
  if (strcmp(what, "unmatched_send") != 0 && strcmp(what, "unmatched_receive") != 0) {
    expect_the_end();
  }
  printf("rank %d: error %d at %lld: %s\n", rank, error,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec, text);
  fflush(stdout);
  _exit(3);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  begin(&argc, &argv);
  bound_time(60);
  peer = rank ^ 1;
  CHECK(peer < size);
  const int is_large = strcmp(what, "large_rounds") == 0;
  const enum kind kind = strcmp(what, "device_rounds") == 0     ? kDevice
                         : strcmp(what, "ordinary_rounds") == 0 ? kOrdinary
                                                                : kHeap;
  init_both(kind, is_large ? 300000 : 3000);
  for (unsigned round = 0; round < 3; ++round) OK(exchange(round));
  step = what;
  int error = MPI_SUCCESS;
  if (strcmp(what, "parrived") == 0) error = receive_in_part(1);
  if (strcmp(what, "wait") == 0) error = receive_in_part(0);
  if (strcmp(what, "waitany") == 0) error = wait_for_any();
  if (strcmp(what, "send") == 0) error = send_in_vain();
  if (strcmp(what, "prepare") == 0) error = prepare_in_vain();
  if (strcmp(what, "unmatched_send") == 0) error = without_a_partner(1);
  if (strcmp(what, "unmatched_receive") == 0) error = without_a_partner(0);
  if (strstr(what, "rounds") != NULL) error = go_on();
  report(error, what);
  return 1;
}
