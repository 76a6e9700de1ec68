/* Device buffers wherever MPI takes a buffer: messages, elements with gaps, persistent requests,
 * probes and collectives. Behind an emulated link whose memory faults at any touch but a stream's.
 */
#include <ferry/ferry.h>

#include "tests/mpi/ranks/check.h"

enum { columns = 64, rows = 3000, words = columns * rows };
static int rank, size, next, before;
static int *device_out, *device_in, *host;

static void* on_device(size_t bytes) {
  void* memory = NULL;
  CHECK(ferry_alloc(bytes, FERRY_MEMORY_DEVICE, 0, &memory) == FERRY_SUCCESS);
  return memory;
}

static int word(int seed, int place) { return seed * 1000003 + place; }

/* Fills device memory with what a rank's `seed` says. */
static void set(int* device, int count, int seed) {
  for (int i = 0; i < count; ++i) host[i] = word(seed, i);
  CHECK(ferry_memcpy(device, host, (size_t)count * sizeof(int)) == FERRY_SUCCESS);
}

static void get(const int* device, int count) {
  CHECK(ferry_memcpy(host, device, (size_t)count * sizeof(int)) == FERRY_SUCCESS);
}

static void whole(int count) {
  MPI_Status status;
  int received;
  step = "whole buffers";
  set(device_out, count, rank);
  set(device_in, count, -1);
  OK(MPI_Sendrecv(device_out, count, MPI_INT, next, 1, device_in, count, MPI_INT, before, 1,
                  MPI_COMM_WORLD, &status));
  OK(MPI_Get_count(&status, MPI_INT, &received));
  CHECK(received == count);
  get(device_in, count);
  for (int i = 0; i < count; ++i) CHECK(host[i] == word(before, i));
}

/* A column goes out, a column comes in; the others stay as they are. */
static void with_gaps(void) {
  MPI_Datatype column;
  step = "columns";
  OK(MPI_Type_vector(50, 1, columns, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  set(device_out, words, rank);
  set(device_in, words, 77);
  OK(MPI_Sendrecv(device_out + 5, 1, column, next, 2, device_in + 9, 1, column, before, 2,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  get(device_in, words);
  for (int i = 0; i < words; ++i) {
    const int row = i / columns;
    const int changed = i % columns == 9 && row < 50;
    CHECK(host[i] == (changed ? word(before, row * columns + 5) : word(77, i)));
  }
  OK(MPI_Type_free(&column));
}

static void again_and_again(void) {
  MPI_Request requests[2];
  step = "persistent requests";
  OK(MPI_Recv_init(device_in, words, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Send_init(device_out, words, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]));
  for (int round = 0; round < 3; ++round) {
    set(device_out, words, 10 * round + rank);
    OK(MPI_Startall(2, requests));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    get(device_in, words);
    for (int i = 0; i < words; ++i) CHECK(host[i] == word(10 * round + before, i));
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
}

static void probed(void) {
  MPI_Message message;
  MPI_Request request;
  step = "a matched probe";
  set(device_out, 5000, rank);
  OK(MPI_Isend(device_out, 5000, MPI_INT, next, 4, MPI_COMM_WORLD, &request));
  OK(MPI_Mprobe(before, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  OK(MPI_Mrecv(device_in, 5000, MPI_INT, &message, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  get(device_in, 5000);
  for (int i = 0; i < 5000; ++i) CHECK(host[i] == word(before, i));
}

static void together(int count) {
  step = "collectives";
  set(device_out, count, rank);
  OK(MPI_Allreduce(device_out, device_in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  get(device_in, count);
  for (int i = 0; i < count; ++i) {
    CHECK(host[i] == (int)((unsigned)(size * (size - 1) / 2) * 1000003u + (unsigned)(size * i)));
  }
  set(device_in, count, rank);
  OK(MPI_Bcast(device_in, count, MPI_INT, size - 1, MPI_COMM_WORLD));
  get(device_in, count);
  for (int i = 0; i < count; ++i) CHECK(host[i] == word(size - 1, i));
  set(device_out, count / size, rank);
  OK(MPI_Allgather(device_out, count / size, MPI_INT, device_in, count / size, MPI_INT,
                   MPI_COMM_WORLD));
  get(device_in, count / size * size);
  for (int i = 0; i < count / size * size; ++i) {
    CHECK(host[i] == word(i / (count / size), i % (count / size)));
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
  host = malloc(words * sizeof(int));
  device_out = on_device(words * sizeof(int));
  device_in = on_device(words * sizeof(int));
  whole(1);
  whole(1000);
  whole(words);
  with_gaps();
  again_and_again();
  probed();
  together(10);
  together(100000);
  CHECK(ferry_free(device_out) == FERRY_SUCCESS && ferry_free(device_in) == FERRY_SUCCESS);
  free(host);
  OK(MPI_Finalize());
  puts("device buffers were right");
  return 0;
}
