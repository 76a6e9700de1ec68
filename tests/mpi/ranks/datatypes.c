/* The calls on datatypes, packing and counts of elements, as a program makes them. Each rank does
 * the same by itself: it sends only to itself. */
#include <limits.h>
#include <stddef.h>

#include "tests/mpi/ranks/check.h"

/* ---- sizes and bounds ---- */

static void sizes(void) {
  step = "sizes";
  MPI_Datatype vector, resized, huge;
  OK(MPI_Type_vector(3, 2, 4, MPI_INT, &vector));
  int size;
  MPI_Count large;
  MPI_Aint lb, extent;
  MPI_Count large_lb, large_extent;
  OK(MPI_Type_size(vector, &size));
  CHECK(size == 24);
  OK(MPI_Type_size_c(vector, &large));
  CHECK(large == 24);
  OK(MPI_Type_get_extent(vector, &lb, &extent));
  CHECK(lb == 0 && extent == 40);
  OK(MPI_Type_create_resized(vector, -4, 100, &resized));
  OK(MPI_Type_get_extent_c(resized, &large_lb, &large_extent));
  CHECK(large_lb == -4 && large_extent == 100);
  OK(MPI_Type_get_true_extent(resized, &lb, &extent));
  CHECK(lb == 0 && extent == 40);
  OK(MPI_Type_get_true_extent_x(resized, &large_lb, &large_extent));
  CHECK(large_lb == 0 && large_extent == 40);
  /* A value that does not fit an int is MPI_UNDEFINED. */
  OK(MPI_Type_contiguous_c((MPI_Count)3 << 30, MPI_INT, &huge));
  OK(MPI_Type_size(huge, &size));
  CHECK(size == MPI_UNDEFINED);
  OK(MPI_Type_size_x(huge, &large));
  CHECK(large == (MPI_Count)12 << 30);
  OK(MPI_Type_free(&huge));
  CHECK(huge == MPI_DATATYPE_NULL);
  OK(MPI_Type_free(&resized));
  OK(MPI_Type_free(&vector));
}

static void names(void) {
  step = "names";
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
  CHECK(strcmp(name, "MPI_DOUBLE") == 0 && length == 10);
  OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
  CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0);
  MPI_Datatype type;
  OK(MPI_Type_dup(MPI_INT, &type));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(length == 0 && name[0] == 0);
  OK(MPI_Type_set_name(type, "cells"));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(strcmp(name, "cells") == 0 && length == 5);
  char longer[2 * MPI_MAX_OBJECT_NAME];
  memset(longer, 'x', sizeof(longer));
  longer[sizeof(longer) - 1] = 0;
  OK(MPI_Type_set_name(type, longer));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(length == MPI_MAX_OBJECT_NAME - 1 && (int)strlen(name) == length);
  OK(MPI_Type_free(&type));
}

/* ---- how a type was made ---- */

static void contents(void) {
  step = "contents";
  int ni, na, nd, combiner;
  OK(MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner));
  CHECK(ni == 0 && na == 0 && nd == 0 && combiner == MPI_COMBINER_NAMED);
  MPI_Datatype part, type, large;
  OK(MPI_Type_contiguous(2, MPI_SHORT, &part));
  const int lengths[2] = {1, 3};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_CHAR, part};
  OK(MPI_Type_create_struct(2, lengths, places, types, &type));
  MPI_Datatype first = part;
  OK(MPI_Type_free(&part)); /* the structure keeps the part */
  OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
  CHECK(ni == 3 && na == 2 && nd == 2 && combiner == MPI_COMBINER_STRUCT);
  int integers[3];
  MPI_Aint addresses[2];
  MPI_Datatype parts[2];
  OK(MPI_Type_get_contents(type, 3, 2, 2, integers, addresses, parts));
  CHECK(integers[0] == 2 && integers[1] == 1 && integers[2] == 3);
  CHECK(addresses[0] == 0 && addresses[1] == 8);
  CHECK(parts[0] == MPI_CHAR && parts[1] != MPI_DATATYPE_NULL);
  (void)first;
  int size;
  OK(MPI_Type_size(parts[1], &size));
  CHECK(size == 4);
  OK(MPI_Type_free(&parts[1]));
  OK(MPI_Type_size(type, &size));
  CHECK(size == 13);
  OK(MPI_Type_free(&type));
  /* Large counts are returned by the calls that have them. */
  OK(MPI_Type_vector_c(2, 3, 4, MPI_INT, &large));
  CHECK(MPI_Type_get_envelope(large, &ni, &na, &nd, &combiner) == MPI_ERR_TYPE);
  MPI_Count li, la, lc, ld;
  OK(MPI_Type_get_envelope_c(large, &li, &la, &lc, &ld, &combiner));
  CHECK(li == 0 && la == 0 && lc == 3 && ld == 1 && combiner == MPI_COMBINER_VECTOR);
  MPI_Count counts[3];
  OK(MPI_Type_get_contents_c(large, 0, 0, 3, 1, NULL, NULL, counts, parts));
  CHECK(counts[0] == 2 && counts[1] == 3 && counts[2] == 4 && parts[0] == MPI_INT);
  OK(MPI_Type_free(&large));
}

static void by_properties(void) {
  step = "types by properties";
  MPI_Datatype type, again;
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  CHECK(type == MPI_REAL8);
  OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type));
  CHECK(type == MPI_DOUBLE_INT);
  OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT64_T, &type));
  OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT64_T, &again));
  CHECK(type == again && type != MPI_DATATYPE_NULL);
  int ni, na, nd, combiner;
  OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
  CHECK(combiner == MPI_COMBINER_VALUE_INDEX && ni == 0 && na == 0 && nd == 2);
  MPI_Datatype parts[2];
  OK(MPI_Type_get_contents(type, 0, 0, 2, NULL, NULL, parts));
  CHECK(parts[0] == MPI_DOUBLE && parts[1] == MPI_INT64_T);
  CHECK(MPI_Type_free(&again) == MPI_ERR_TYPE);
  struct {
    double value;
    int64_t index;
  } a = {3, 7}, b = {3, 5};
  OK(MPI_Reduce_local(&a, &b, 1, type, MPI_MAXLOC));
  CHECK(b.value == 3 && b.index == 5);
  OK(MPI_Type_get_value_index(MPI_C_DOUBLE_COMPLEX, MPI_INT, &type));
  CHECK(type == MPI_DATATYPE_NULL);
  OK(MPI_Type_create_f90_real(10, MPI_UNDEFINED, &type));
  OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
  CHECK(combiner == MPI_COMBINER_F90_REAL && ni == 2 && nd == 0);
  CHECK(MPI_Type_create_f90_integer(99, &type) == MPI_ERR_ARG);
}

/* ---- packing ---- */

static void packing(void) {
  step = "packing";
  MPI_Datatype column;
  OK(MPI_Type_vector(4, 1, 4, MPI_INT, &column));
  int matrix[16], back[16] = {0}, i, position = 0, size;
  char packed[64];
  for (i = 0; i < 16; ++i) matrix[i] = i;
  CHECK(MPI_Pack(matrix, 1, column, packed, 64, &position, MPI_COMM_WORLD) == MPI_ERR_TYPE);
  OK(MPI_Type_commit(&column));
  OK(MPI_Pack_size(1, column, MPI_COMM_WORLD, &size));
  CHECK(size == 16);
  OK(MPI_Pack(matrix + 1, 1, column, packed, 64, &position, MPI_COMM_WORLD));
  CHECK(position == 16);
  OK(MPI_Pack(matrix, 12, MPI_INT, packed, 64, &position, MPI_COMM_WORLD));
  CHECK(position == 64);
  CHECK(MPI_Pack(matrix, 1, MPI_CHAR, packed, 64, &position, MPI_COMM_WORLD) == MPI_ERR_TRUNCATE);
  position = 0;
  OK(MPI_Unpack(packed, 64, &position, back + 2, 1, column, MPI_COMM_WORLD));
  for (i = 0; i < 16; ++i) CHECK(back[i] == (i % 4 == 2 ? i - 1 : 0));
  OK(MPI_Unpack(packed, 64, &position, back, 12, MPI_INT, MPI_COMM_WORLD));
  CHECK(position == 64);
  for (i = 0; i < 12; ++i) CHECK(back[i] == i);
  MPI_Count large_position = 0;
  OK(MPI_Pack_c(matrix, 2, MPI_INT, packed, 64, &large_position, MPI_COMM_SELF));
  CHECK(large_position == 8);
  /* Addresses in the type, MPI_BOTTOM as the buffer. */
  MPI_Aint address;
  MPI_Datatype absolute;
  const int one = 1;
  OK(MPI_Get_address(&matrix[5], &address));
  CHECK(MPI_Aint_diff(MPI_Aint_add(address, 8), address) == 8);
  OK(MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute));
  OK(MPI_Type_commit(&absolute));
  position = 0;
  OK(MPI_Pack(MPI_BOTTOM, 1, absolute, packed, 64, &position, MPI_COMM_WORLD));
  CHECK(memcmp(packed, &matrix[5], 4) == 0);
  OK(MPI_Type_free(&absolute));
  OK(MPI_Type_free(&column));
}

static void packing_externally(void) {
  step = "packing externally";
  const int values[2] = {1, -2};
  int back[2];
  unsigned char packed[8];
  MPI_Aint position = 0, size;
  OK(MPI_Pack_external_size("external32", 2, MPI_INT, &size));
  CHECK(size == 8);
  OK(MPI_Pack_external_size("external32", 2, MPI_LONG, &size));
  CHECK(size == 8);
  OK(MPI_Pack_external("external32", values, 2, MPI_INT, packed, 8, &position));
  CHECK(position == 8 && packed[3] == 1 && packed[4] == 0xff && packed[7] == 0xfe);
  position = 0;
  OK(MPI_Unpack_external("external32", packed, 8, &position, back, 2, MPI_INT));
  CHECK(position == 8 && back[0] == 1 && back[1] == -2);
  CHECK(MPI_Pack_external_size("native", 2, MPI_INT, &size) == MPI_ERR_ARG);
  const long wide = LONG_MAX;
  position = 0;
  CHECK(MPI_Pack_external("external32", &wide, 1, MPI_LONG, packed, 8, &position) ==
        MPI_ERR_CONVERSION);
  CHECK(position == 0);
}

/* ---- counts of received elements ---- */

static void elements(void) {
  step = "elements of a status";
  MPI_Datatype pair;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
  OK(MPI_Type_create_struct(2, lengths, places, types, &pair));
  OK(MPI_Type_commit(&pair));
  struct {
    double d;
    int i;
  } out[2] = {{1, 2}, {3, 4}}, in[3];
  MPI_Status status;
  int count;
  MPI_Count large;
  OK(MPI_Sendrecv(out, 2, pair, 0, 5, in, 3, pair, 0, 5, MPI_COMM_SELF, &status));
  CHECK(in[1].d == 3 && in[1].i == 4);
  CHECK(count_of(&status, pair) == 2);
  OK(MPI_Get_elements(&status, pair, &count));
  CHECK(count == 4);
  /* Three basic elements are not a whole number of structures. */
  OK(MPI_Status_set_elements(&status, pair, 3));
  CHECK(count_of(&status, pair) == MPI_UNDEFINED);
  OK(MPI_Get_elements_x(&status, pair, &large));
  CHECK(large == 3);
  CHECK(count_of(&status, MPI_CHAR) == 20);
  OK(MPI_Status_set_elements_x(&status, MPI_CHAR, (MPI_Count)5 << 30));
  CHECK(count_of(&status, MPI_CHAR) == MPI_UNDEFINED);
  OK(MPI_Get_count_c(&status, MPI_CHAR, &large));
  CHECK(large == (MPI_Count)5 << 30);
  OK(MPI_Type_free(&pair));
}

/* ---- arrays, sent to oneself ---- */

static void subarrays(void) {
  step = "subarrays";
  const int sizes[2] = {6, 5}, subsizes[2] = {3, 2}, starts[2] = {2, 1};
  MPI_Datatype window, transposed;
  OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &window));
  OK(MPI_Type_commit(&window));
  double array[6][5], flat[6], back[6][5];
  int i, j;
  for (i = 0; i < 6; ++i) {
    for (j = 0; j < 5; ++j) {
      array[i][j] = 10 * i + j;
      back[i][j] = -1;
    }
  }
  OK(MPI_Sendrecv(array, 1, window, 0, 1, flat, 6, MPI_DOUBLE, 0, 1, MPI_COMM_SELF,
                  MPI_STATUS_IGNORE));
  for (i = 0; i < 3; ++i) {
    for (j = 0; j < 2; ++j) CHECK(flat[2 * i + j] == 10 * (i + 2) + j + 1);
  }
  OK(MPI_Sendrecv(flat, 6, MPI_DOUBLE, 0, 1, back, 1, window, 0, 1, MPI_COMM_SELF,
                  MPI_STATUS_IGNORE));
  for (i = 0; i < 6; ++i) {
    for (j = 0; j < 5; ++j) {
      const int inside = i >= 2 && i < 5 && j >= 1 && j < 3;
      CHECK(back[i][j] == (inside ? 10 * i + j : -1));
    }
  }
  OK(MPI_Type_free(&window));
  const MPI_Count large_sizes[2] = {6, 5}, large_subsizes[2] = {6, 1}, large_starts[2] = {0, 4};
  OK(MPI_Type_create_subarray_c(2, large_sizes, large_subsizes, large_starts, MPI_ORDER_C,
                                MPI_DOUBLE, &transposed));
  OK(MPI_Type_commit(&transposed));
  OK(MPI_Sendrecv(array, 1, transposed, 0, 1, flat, 6, MPI_DOUBLE, 0, 1, MPI_COMM_SELF,
                  MPI_STATUS_IGNORE));
  for (i = 0; i < 6; ++i) CHECK(flat[i] == 10 * i + 4);
  OK(MPI_Type_free(&transposed));
}

/* ---- mistakes: each is named and changes nothing ---- */

static void mistakes(void) {
  step = "mistakes";
  MPI_Datatype type = MPI_DATATYPE_NULL, freed;
  int size, ni, na, nd, combiner;
  const int lengths[1] = {-1}, zeros[1] = {0};
  expect_error(MPI_Type_size(MPI_DATATYPE_NULL, &size), MPI_ERR_TYPE, "MPI_Type_size");
  expect_error(MPI_Type_size((MPI_Datatype)&size, &size), MPI_ERR_TYPE, "MPI_Datatype");
  expect_error(MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &size), MPI_ERR_TYPE, "MPI_Type_size");
  expect_error(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG, "size");
  expect_error(MPI_Type_contiguous(-3, MPI_INT, &type), MPI_ERR_COUNT, "count is negative: -3");
  expect_error(MPI_Type_contiguous(3, MPI_INT, NULL), MPI_ERR_ARG, "newtype");
  expect_error(MPI_Type_vector(1, -7, 1, MPI_INT, &type), MPI_ERR_ARG,
               "blocklength is negative: -7");
  expect_error(MPI_Type_indexed(1, lengths, zeros, MPI_INT, &type), MPI_ERR_ARG,
               "array_of_blocklengths[0] is negative: -1");
  expect_error(MPI_Type_indexed(1, NULL, zeros, MPI_INT, &type), MPI_ERR_ARG,
               "array_of_blocklengths");
  expect_error(MPI_Type_indexed(-1, NULL, NULL, MPI_INT, &type), MPI_ERR_COUNT, "count");
  OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &freed));
  OK(MPI_Type_free(&freed));
  const MPI_Aint places[1] = {0};
  const MPI_Datatype nulls[1] = {MPI_DATATYPE_NULL};
  const int ones[1] = {1};
  expect_error(MPI_Type_create_struct(1, ones, places, nulls, &type), MPI_ERR_TYPE,
               "array_of_types[0]");
  expect_error(MPI_Type_create_subarray(1, ones, ones, ones, MPI_ORDER_C, MPI_INT, &type),
               MPI_ERR_ARG, "array_of_starts[0] is 1");
  expect_error(MPI_Type_create_subarray(0, ones, ones, zeros, MPI_ORDER_C, MPI_INT, &type),
               MPI_ERR_ARG, "ndims");
  expect_error(
      MPI_Type_create_darray(2, 5, 1, ones, zeros, ones, ones, MPI_ORDER_C, MPI_INT, &type),
      MPI_ERR_ARG, "rank is 5");
  expect_error(MPI_Type_contiguous_c((MPI_Count)1 << 62, MPI_INT, &type), MPI_ERR_ARG, "63 bits");
  CHECK(type == MPI_DATATYPE_NULL);
  type = MPI_INT;
  expect_error(MPI_Type_free(&type), MPI_ERR_TYPE, "MPI_INT is predefined");
  CHECK(type == MPI_INT);
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  freed = type;
  OK(MPI_Type_free(&type));
  expect_error(MPI_Type_free(&freed), MPI_ERR_TYPE, "freed");
  expect_error(MPI_Type_commit(&freed), MPI_ERR_TYPE, "MPI_Type_commit");
  expect_error(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE,
               "predefined");
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
  expect_error(MPI_Type_get_contents(type, 2, 0, 1, &size, NULL, &freed), MPI_ERR_ARG,
               "max_integers is 2");
  expect_error(MPI_Type_get_contents(type, 3, 0, 1, NULL, NULL, &freed), MPI_ERR_ARG,
               "array_of_integers");
  expect_error(MPI_Type_get_envelope(type, &ni, &na, &nd, NULL), MPI_ERR_ARG, "combiner");
  combiner = 0;
  expect_error(MPI_Pack(&size, 1, type, &size, 8, &combiner, MPI_COMM_WORLD), MPI_ERR_TYPE,
               "committed");
  OK(MPI_Type_commit(&type));
  expect_error(MPI_Pack(NULL, 1, type, &size, 8, &combiner, MPI_COMM_WORLD), MPI_ERR_BUFFER,
               "inbuf");
  expect_error(MPI_Pack(&size, 1, MPI_INT, &size, 4, NULL, MPI_COMM_WORLD), MPI_ERR_ARG,
               "position");
  combiner = 5;
  expect_error(MPI_Pack(&size, 1, MPI_INT, &size, 4, &combiner, MPI_COMM_WORLD), MPI_ERR_ARG,
               "position is 5");
  combiner = 0;
  expect_error(MPI_Pack(&size, -1, MPI_INT, &size, 4, &combiner, MPI_COMM_WORLD), MPI_ERR_COUNT,
               "-1");
  expect_error(MPI_Pack(&size, 1, MPI_INT, &size, 4, &combiner, MPI_COMM_NULL), MPI_ERR_COMM,
               "MPI_Pack");
  expect_error(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &freed), MPI_ERR_ARG, "size 3");
  OK(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  sizes();
  names();
  contents();
  by_properties();
  packing();
  packing_externally();
  elements();
  subarrays();
  mistakes();
  return end_well("all datatypes were right");
}
