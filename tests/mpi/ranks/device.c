/* Device buffers wherever MPI takes a buffer: messages, elements with gaps, persistent requests,
 * probes and collectives. They lie behind an emulated link, whose memory faults at any access but a
 * stream's.
 */
#include "tests/mpi/ranks/on_queue.h"

enum { columns = 64, rows = 3000, words = columns * rows };
static int *device_out, *device_in, *host;

static int word(int seed, int place) { return seed * 1000003 + place; }

/* Fills device memory with the values of `seed`. */
static void set(int* device, int count, int seed) {
  for (int i = 0; i < count; ++i) host[i] = word(seed, i);
  CHECK(ferry_memcpy(device, host, (size_t)count * sizeof(int)) == FERRY_SUCCESS);
}

static void get(const int* device, int count) {
  CHECK(ferry_memcpy(host, device, (size_t)count * sizeof(int)) == FERRY_SUCCESS);
}

static void whole(int count) {
  MPI_Status status;
  step = "whole buffers";
  set(device_out, count, rank);
  set(device_in, count, -1);
  OK(MPI_Sendrecv(device_out, count, MPI_INT, next, 1, device_in, count, MPI_INT, before, 1,
                  MPI_COMM_WORLD, &status));
  CHECK(count_of(&status, MPI_INT) == count);
  get(device_in, count);
  for (int i = 0; i < count; ++i) CHECK(host[i] == word(before, i));
}

/* One column is sent, another is received; the others stay as they are. */
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

/* Packing from device memory, and unpacking there, gives the same as on the host. */
static void like_on_the_host(MPI_Datatype type, int count, int first) {
  int* const there = malloc(words * sizeof(int));
  int* const back = malloc(words * sizeof(int));
  char *packed, *expected;
  int bytes, at = 0, of_host = 0;
  OK(MPI_Type_commit(&type));
  OK(MPI_Pack_size(count, type, MPI_COMM_WORLD, &bytes));
  packed = malloc((size_t)bytes);
  expected = malloc((size_t)bytes);
  set(device_out, words, 4);
  memcpy(there, host, words * sizeof(int));
  OK(MPI_Pack(device_out + first, count, type, packed, bytes, &at, MPI_COMM_WORLD));
  OK(MPI_Pack(there + first, count, type, expected, bytes, &of_host, MPI_COMM_WORLD));
  CHECK(at == of_host && memcmp(packed, expected, (size_t)at) == 0);
  set(device_in, words, 6);
  memcpy(back, host, words * sizeof(int));
  at = of_host = 0;
  OK(MPI_Unpack(packed, bytes, &at, device_in + first, count, type, MPI_COMM_WORLD));
  OK(MPI_Unpack(packed, bytes, &of_host, back + first, count, type, MPI_COMM_WORLD));
  get(device_in, words);
  CHECK(memcmp(host, back, words * sizeof(int)) == 0);
  OK(MPI_Type_free(&type));
  free(expected);
  free(packed);
  free(back);
  free(there);
}

static void all_shapes(void) {
  const int sizes[] = {rows, columns}, parts[] = {500, 7}, starts[] = {20, 11};
  const int lengths[] = {3, 1, 1, 1, 40, 2, 2}, places[] = {0, 10, 20, 30, 50, 100, 99};
  MPI_Datatype type, column;
  step = "shapes";
  OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &type));
  like_on_the_host(type, 1, 3);
  OK(MPI_Type_vector(rows / 2, 5, 2 * columns, MPI_INT, &type));
  like_on_the_host(type, 1, 3);
  OK(MPI_Type_create_hvector(1000, 3, -20, MPI_INT, &type)); /* backwards */
  like_on_the_host(type, 1, 9000);
  OK(MPI_Type_create_hvector(200, 1, 6, MPI_SHORT, &type)); /* elements of half a word */
  like_on_the_host(type, 1, 0);
  OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
  like_on_the_host(type, 1, 0);
  OK(MPI_Type_create_hvector(40, 3, 40000 / 40, MPI_INT, &column));
  OK(MPI_Type_create_hvector(10, 1, 48000, column, &type)); /* vectors of vectors */
  OK(MPI_Type_free(&column));
  like_on_the_host(type, 1, 1);
  OK(MPI_Type_indexed(7, lengths, places, MPI_INT, &type));
  like_on_the_host(type, 5, 200);
  OK(MPI_Type_create_resized(MPI_INT, 0, 8, &type));
  like_on_the_host(type, 4000, 1);
  OK(MPI_Type_vector(2, 9000, 10000, MPI_INT, &type)); /* few and long */
  like_on_the_host(type, 1, 0);
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

/* in - inout of an element of the type that reduced_here makes. */
static void subtract_parts(void* in, void* inout, int* length, MPI_Datatype* type) {
  int bytes;
  CHECK(*length == 1 && MPI_Type_size(*type, &bytes) == MPI_SUCCESS);
  for (int i = 0; i < bytes / (int)sizeof(int); ++i) {
    const int at = i / 2 * 3 + i % 2;
    ((int*)inout)[at] = ((int*)in)[at] - ((int*)inout)[at];
  }
}

/* Two of three words are reduced, in every mix of device memory and the host's. */
static void reduced_here(void) {
  enum { count = 1000 };
  MPI_Datatype two_of_three;
  int* there = malloc(3 * count * sizeof(int));
  step = "MPI_Reduce_local";
  OK(MPI_Type_vector(count, 2, 3, MPI_INT, &two_of_three));
  OK(MPI_Type_commit(&two_of_three));
  for (int mix = 1; mix < 4; ++mix) {
    const void* in = device_out;
    void* inout = device_in;
    set(device_out, 3 * count, 1);
    set(device_in, 3 * count, 2);
    if ((mix & 1) == 0) {
      get(device_out, 3 * count);
      in = memcpy(there, host, 3 * count * sizeof(int));
    }
    if ((mix & 2) == 0) {
      get(device_in, 3 * count);
      inout = memcpy(there, host, 3 * count * sizeof(int));
    }
    OK(MPI_Reduce_local(in, inout, 2 * count, MPI_INT, MPI_SUM));
    if (inout == there) {
      memcpy(host, there, 3 * count * sizeof(int));
    } else {
      get(inout, 3 * count);
    }
    for (int i = 0; i < 3 * count; ++i) {
      CHECK(host[i] == word(2, i) + (i < 2 * count ? word(1, i) : 0));
    }
  }
  set(device_out, 3 * count, 1);
  set(device_in, 3 * count, 2);
  MPI_Op op;
  OK(MPI_Op_create(subtract_parts, 0, &op));
  OK(MPI_Reduce_local(device_out, device_in, 1, two_of_three, op));
  get(device_in, 3 * count);
  for (int i = 0; i < 3 * count; ++i) {
    CHECK(host[i] == (i % 3 == 2 ? word(2, i) : word(1, i) - word(2, i)));
  }
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&two_of_three));
  free(there);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  host = malloc(words * sizeof(int));
  device_out = on_device(words * sizeof(int));
  device_in = on_device(words * sizeof(int));
  whole(1);
  whole(1000);
  whole(words);
  with_gaps();
  all_shapes();
  again_and_again();
  probed();
  together(10);
  together(100000);
  reduced_here();
  CHECK(ferry_free(device_out) == FERRY_SUCCESS && ferry_free(device_in) == FERRY_SUCCESS);
  free(host);
  return end_well("device buffers were right");
}
