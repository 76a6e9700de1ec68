/* Reductions of device memory that CPUs do not reach, in every form: by the device if it can, and
 * otherwise by CPUs. Any number of ranks. With the argument "fails", the device launches one kernel
 * and no more: a rank that lets it reduce gets an error, and no rank waits for ever. */
#include <complex.h>

#include "tests/mpi/ranks/on_queue.h"

enum { MOST = 40000, BYTES = MOST * 16 };

static char *device_in, *device_out, *host_in, *host_out, *expected;

/* ---- The kinds of elements ---- */

struct kind {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  size_t bytes;
  void (*make)(int of_rank, int place, void* element);
  void (*add)(const void* element,
              void* sum); /* sum = sum op element, where the element is of a higher rank */
  int (*same)(const void* a, const void* b); /* null: compare all bytes */
};

static void make_int(int of_rank, int place, void* element) {
  const int value = (of_rank + 1) * 1009 + place;
  memcpy(element, &value, sizeof value);
}
static void add_int(const void* element, void* sum) { *(int*)sum += *(const int*)element; }
static void xor_int(const void* element, void* sum) { *(int*)sum ^= *(const int*)element; }
static void subtract(const void* element, void* sum) {
  *(int*)sum = 2 * *(int*)sum - *(const int*)element;
}

static void make_double(int of_rank, int place, void* element) {
  const double value = (of_rank * 7 + place) % 1000 - 500.25;
  memcpy(element, &value, sizeof value);
}
static void add_double(const void* element, void* sum) { *(double*)sum += *(const double*)element; }
static void max_double(const void* element, void* sum) {
  if (*(const double*)element > *(double*)sum) *(double*)sum = *(const double*)element;
}

static void make_complex(int of_rank, int place, void* element) {
  const float complex value = place % 5 - 2 + (of_rank % 3) * I;
  memcpy(element, &value, sizeof value);
}
static void multiply_complex(const void* element, void* product) {
  *(float complex*)product *= *(const float complex*)element;
}

static int same_complex(const void* a, const void* b) {
  return *(const float complex*)a ==
         *(const float complex*)b; /* zeros of either sign are the same */
}

static void make_pair(int of_rank, int place, void* element) {
  const int pair[2] = {(of_rank * 5 + place) % 11, of_rank};
  memcpy(element, pair, sizeof pair);
}
static void max_pair(const void* element, void* sum) {
  const int* a = element;
  int* b = sum;
  if (a[0] > b[0] || (a[0] == b[0] && a[1] < b[1])) memcpy(b, a, 2 * sizeof(int));
}

static void make_long_double(int of_rank, int place, void* element) {
  const long double value = of_rank + place;
  memcpy(element, &value, sizeof value);
}
static void add_long_double(const void* element, void* sum) {
  *(long double*)sum += *(const long double*)element;
}
static int same_long_double(const void* a, const void* b) {
  return *(const long double*)a == *(const long double*)b; /* six bytes are padding */
}

/* sum = 2 * sum - element is 2 a - b of a and b: not commutative, and for two ranks only. */
static void subtract_all(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] = 2 * ((int*)in)[i] - ((int*)inout)[i];
}

static void fill_host(const struct kind* kind, int of_rank, int first, int count, char* to) {
  for (int i = 0; i < count; ++i) kind->make(of_rank, first + i, to + i * kind->bytes);
}

/* The reduction of ranks [0, end) of elements [first, first + count). */
static void expect(const struct kind* kind, int end, int first, int count) {
  _Alignas(16) char element[16];
  fill_host(kind, 0, first, count, expected);
  for (int from = 1; from < end; ++from) {
    for (int i = 0; i < count; ++i) {
      kind->make(from, first + i, element);
      kind->add(element, expected + i * kind->bytes);
    }
  }
}

/* ---- Where the data lies ---- */

/* The memory of a rank: bit 0, the input is the device's; bit 1, the output. */
static char *in, *out;
static int mix;

static void place(int which) {
  mix = which;
  in = mix & 1 ? device_in : host_in;
  out = mix & 2 ? device_out : host_out;
}
static void put(char* to, const char* from, size_t bytes) {
  CHECK(ferry_memcpy(to, from, bytes) == FERRY_SUCCESS);
}
static char* scratch;
static void set_in(const struct kind* kind, int count) {
  fill_host(kind, rank, 0, count, scratch);
  put(in, scratch, count * kind->bytes);
}
static void compare(const struct kind* kind, int count) {
  put(scratch, out, count * kind->bytes);
  for (int i = 0; i < count; ++i) {
    const char* const got = scratch + i * kind->bytes;
    const char* const right = expected + i * kind->bytes;
    if (kind->same != NULL ? !kind->same(got, right) : memcmp(got, right, kind->bytes) != 0) {
      fprintf(stderr, "%s: element %d of %d is wrong, mix %d\n", kind->name, i, count, mix);
      CHECK(!"the reduction is right");
    }
  }
}

/* ---- Collectives ---- */

static void check_all(const struct kind* kind, int count) {
  step = "MPI_Allreduce";
  set_in(kind, count);
  expect(kind, size, 0, count);
  OK(MPI_Allreduce(in, out, count, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, count);
  step = "MPI_Allreduce in place";
  put(out, in, count * kind->bytes);
  OK(MPI_Allreduce(MPI_IN_PLACE, out, count, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, count);
  step = "MPI_Iallreduce";
  MPI_Request request;
  put(out, scratch, count * kind->bytes);
  OK(MPI_Iallreduce(in, out, count, kind->type, kind->op, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  compare(kind, count);
}

static void check_root(const struct kind* kind, int count) {
  step = "MPI_Reduce";
  for (int root = 0; root < size; ++root) {
    set_in(kind, count);
    expect(kind, size, 0, count);
    OK(MPI_Reduce(in, out, count, kind->type, kind->op, root, MPI_COMM_WORLD));
    if (rank == root) {
      compare(kind, count);
      put(out, in, count * kind->bytes);
    }
    OK(MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, count, kind->type, kind->op, root,
                  MPI_COMM_WORLD));
    if (rank == root) compare(kind, count);
  }
}

static void check_scatter(const struct kind* kind, int count) {
  step = "MPI_Reduce_scatter";
  const int each = count / size;
  int counts[64];
  CHECK(size <= 64);
  set_in(kind, each * size);
  expect(kind, size, rank * each, each);
  OK(MPI_Reduce_scatter_block(in, out, each, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, each);
  int first = 0;
  for (int i = 0; i < size; ++i) counts[i] = i % 2 == 0 || i + 1 == size ? each : each / 2;
  for (int i = 0; i < rank; ++i) first += counts[i];
  expect(kind, size, first, counts[rank]);
  OK(MPI_Reduce_scatter(in, out, counts, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, counts[rank]);
}

static void check_scan(const struct kind* kind, int count) {
  step = "MPI_Scan";
  set_in(kind, count);
  expect(kind, rank + 1, 0, count);
  OK(MPI_Scan(in, out, count, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, count);
  step = "MPI_Exscan";
  OK(MPI_Exscan(in, out, count, kind->type, kind->op, MPI_COMM_WORLD));
  if (rank > 0) {
    expect(kind, rank, 0, count);
    compare(kind, count);
  }
}

static void check_again(const struct kind* kind, int count) {
  step = "MPI_Allreduce_init";
  MPI_Request request;
  OK(MPI_Allreduce_init(in, out, count, kind->type, kind->op, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &request));
  expect(kind, size, 0, count);
  for (int round = 0; round < 3; ++round) {
    set_in(kind, count);
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    compare(kind, count);
  }
  step = "MPI_Allreduce_init, on a queue";
  ferry_stream stream;
  MPIX_Queue queue;
  open_queue(&stream, &queue);
  OK(MPIX_Match(&request));
  for (int round = 0; round < 3; ++round) {
    run_round(queue, &request);
    compare(kind, count);
    memset(scratch, 0, count * kind->bytes);
    put(out, scratch, count * kind->bytes);
  }
  close_queue(&stream, &queue);
  OK(MPI_Request_free(&request));
}

static void check_local(const struct kind* kind, int count) {
  step = "MPI_Reduce_local";
  fill_host(kind, 0, 0, count, scratch);
  put(in, scratch, count * kind->bytes);
  fill_host(kind, 1, 0, count, scratch);
  put(out, scratch, count * kind->bytes);
  expect(kind, 2, 0, count);
  OK(MPI_Reduce_local(in, out, count, kind->type, kind->op));
  compare(kind, count);
}

static void check_kind(const struct kind* kind, int count) {
  check_local(kind, count);
  check_all(kind, count);
  check_root(kind, count);
  check_scatter(kind, count);
  check_scan(kind, count);
  check_again(kind, count);
}

/* No kernel takes these buffers: they are reduced all the same. */
static void check_unaligned(const struct kind* kind) {
  step = "unaligned buffers";
  char* const aligned_in = in;
  char* const aligned_out = out;
  in += 2;
  out += 2;
  check_all(kind, 1000);
  check_local(kind, 1000);
  in = aligned_in;
  out = aligned_out;
}

/* Ranks mix device and host memory: all come to an end, with right results. */
static void check_mixes(const struct kind* kind) {
  const int counts[] = {100, 30000};
  for (int i = 0; i < 2; ++i) {
    for (int shift = 0; shift < 4; ++shift) {
      place((rank + shift) % 4);
      check_all(kind, counts[i]);
      check_root(kind, counts[i]);
      check_scatter(kind, counts[i]);
      check_scan(kind, counts[i]);
    }
  }
  place(3);
}

/* ---- Failures ---- */

static void check_failures(const struct kind* kind) {
  step = "a device that launches no more";
  set_in(kind, 30000);
  CHECK(MPI_Reduce_local(in, out, 30000, kind->type, kind->op) != MPI_SUCCESS);
  MPI_Request request; /* a persistent one is sent as messages, wherever the ranks are */
  OK(MPI_Allreduce_init(in, out, 30000, kind->type, kind->op, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &request));
  for (int i = 0; i < 8; ++i) {
    OK(MPI_Start(&request));
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  }
  OK(MPI_Request_free(&request));
  /* CPUs reduce short vectors. */
  set_in(kind, 100);
  expect(kind, size, 0, 100);
  OK(MPI_Allreduce(in, out, 100, kind->type, kind->op, MPI_COMM_WORLD));
  compare(kind, 100);
}

int main(int argc, char** argv) {
  static const struct kind kinds[] = {
      {"sum of int", MPI_INT, MPI_SUM, 4, make_int, add_int, NULL},
      {"xor of int", MPI_INT, MPI_BXOR, 4, make_int, xor_int, NULL},
      {"sum of double", MPI_DOUBLE, MPI_SUM, 8, make_double, add_double, NULL},
      {"maximum of double", MPI_DOUBLE, MPI_MAX, 8, make_double, max_double, NULL},
      {"product of complex", MPI_C_FLOAT_COMPLEX, MPI_PROD, 8, make_complex, multiply_complex,
       same_complex},
      {"place of maximum", MPI_2INT, MPI_MAXLOC, 8, make_pair, max_pair, NULL},
      {"sum of long double", MPI_LONG_DOUBLE, MPI_SUM, 16, make_long_double, add_long_double,
       same_long_double},
  };
  begin(&argc, &argv);
  device_in = on_device(BYTES);
  device_out = on_device(BYTES);
  host_in = malloc(BYTES);
  host_out = malloc(BYTES);
  expected = malloc(BYTES);
  scratch = malloc(BYTES);
  place(3);
  if (argc > 1 && strcmp(argv[1], "fails") == 0) {
    check_failures(&kinds[0]);
  } else {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) check_kind(&kinds[i], 1000);
    check_kind(&kinds[0], 1);
    check_kind(&kinds[2], 40000);
    check_unaligned(&kinds[2]);
    check_mixes(&kinds[0]);
    if (size <= 2) {
      struct kind own = {"a program's own", MPI_INT, MPI_OP_NULL, 4, make_int, subtract, NULL};
      OK(MPI_Op_create(subtract_all, 0, &own.op));
      check_kind(&own, 1000);
      OK(MPI_Op_free(&own.op));
    }
  }
  CHECK(ferry_free(device_in) == FERRY_SUCCESS && ferry_free(device_out) == FERRY_SUCCESS);
  free(host_in);
  free(host_out);
  free(expected);
  free(scratch);
  return end_well("device reductions were right");
}
