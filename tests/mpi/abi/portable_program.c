/* A program for any library with the binary interface of MPI 5.0: built with one library's header,
 * it must run on another's. It uses the parts that the interface fixes: handles, numbers, statuses,
 * special addresses, callbacks. Every rank prints "rank R: ok", or what was wrong. Two ranks or
 * more. MPI_HEADER names the header, <mpi.h> by default.
 */
#ifndef MPI_HEADER
#define MPI_HEADER <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include MPI_HEADER

static int rank = -1, size = 0;
static int failures = 0;

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      printf("rank %d: line %d: not so: %s\n", rank, __LINE__, #condition); \
      ++failures;                                                           \
    }                                                                       \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)
#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static int ClassOf(int code) {
  int error_class = -1;
  OK(MPI_Error_class(code, &error_class));
  return error_class;
}

static void CheckErrorHandlers(void) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT));
  OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler));
  CHECK(handler == MPI_ERRORS_ABORT);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  CHECK(ClassOf(MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
  CHECK(ClassOf(MPI_Send(&rank, -1, MPI_INT, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
  CHECK(ClassOf(MPI_Send(&rank, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
  CHECK(ClassOf(MPI_Bcast(&rank, 1, MPI_INT, size, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
}

static void CheckErrorClasses(void) {
  const int some[] = {MPI_ERR_BUFFER, MPI_ERR_TAG,     MPI_ERR_GROUP,    MPI_ERR_OP,
                      MPI_ERR_DIMS,   MPI_ERR_PENDING, MPI_ERR_INFO_KEY, MPI_ERR_OTHER};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, first = 0, code = 0, *last = NULL, flag = 0;
  for (int i = 0; i < LENGTH(some); ++i) {
    CHECK(ClassOf(some[i]) == some[i]);
    OK(MPI_Error_string(some[i], text, &length));
    CHECK((int)strlen(text) == length && length > 0);
  }
  OK(MPI_Add_error_class(&first));
  OK(MPI_Add_error_code(first, &code));
  CHECK(first > MPI_ERR_LASTCODE && ClassOf(code) == first);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
  CHECK(flag && *last > MPI_ERR_LASTCODE);
}

static void CheckAttributes(void) {
  int *value = NULL, flag = 0;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
  CHECK(flag && *value >= 32767);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
  CHECK(!flag || *value >= size);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
  CHECK(!flag || *value == 0);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
  CHECK(!flag || *value == 0 || *value == 1);
}

static int CountCopy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)keyval;
  ++*(int*)extra;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static void CheckCallbacks(void) {
  MPI_Comm copy = MPI_COMM_NULL;
  int counting = MPI_KEYVAL_INVALID, plain = MPI_KEYVAL_INVALID, calls = 0, flag = 0, *found = NULL;
  OK(MPI_Comm_create_keyval(CountCopy, MPI_COMM_NULL_DELETE_FN, &counting, &calls));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_WORLD, counting, &size));
  OK(MPI_Comm_set_attr(MPI_COMM_WORLD, plain, &rank));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  OK(MPI_Comm_get_attr(copy, counting, &found, &flag));
  CHECK(flag && found == &size && calls == 1);
  OK(MPI_Comm_get_attr(copy, plain, &found, &flag));
  CHECK(flag && found == &rank);
  OK(MPI_Comm_free(&copy));
  CHECK(copy == MPI_COMM_NULL);
  OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, counting));
  OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, plain));
  OK(MPI_Comm_free_keyval(&counting));
  OK(MPI_Comm_free_keyval(&plain));
  CHECK(plain == MPI_KEYVAL_INVALID);
}

static void CheckMessages(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double sent[3] = {rank + 0.5, 2, 3}, received[3] = {0, 0, 0};
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Aint address = 0;
  MPI_Datatype absolute = MPI_DATATYPE_NULL;
  int count = -1, one = 1, cancelled = -1;
  OK(MPI_Get_address(received, &address));
  OK(MPI_Type_create_struct(1, &one, &address, (MPI_Datatype[]){MPI_DOUBLE}, &absolute));
  OK(MPI_Type_commit(&absolute));
  OK(MPI_Irecv(MPI_BOTTOM, 1, absolute, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(sent, 1, MPI_DOUBLE, right, 40 + rank, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Waitall(2, requests, statuses));
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  CHECK(statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == 40 + left);
  CHECK(received[0] == left + 0.5 && received[1] == 0);
  OK(MPI_Get_count(&statuses[0], MPI_INT, &count));
  CHECK(count == 2);
  OK(MPI_Get_count(&statuses[0], MPI_LONG_DOUBLE, &count));
  CHECK(count == MPI_UNDEFINED);
  OK(MPI_Test_cancelled(&statuses[0], &cancelled));
  CHECK(cancelled == 0);
  OK(MPI_Status_set_elements(&statuses[1], MPI_INT, 7));
  OK(MPI_Status_set_cancelled(&statuses[1], 1));
  OK(MPI_Test_cancelled(&statuses[1], &cancelled));
  OK(MPI_Get_elements(&statuses[1], MPI_INT, &count));
  CHECK(cancelled == 1 && count == 7);
  OK(MPI_Recv(received, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &statuses[0]));
  CHECK(statuses[0].MPI_SOURCE == MPI_PROC_NULL && statuses[0].MPI_TAG == MPI_ANY_TAG);
  OK(MPI_Type_free(&absolute));
}

static void CheckSizes(void) {
  const struct {
    MPI_Datatype type;
    size_t bytes;
  } types[] = {
      {MPI_CHAR, 1},
      {MPI_SIGNED_CHAR, 1},
      {MPI_UNSIGNED_CHAR, 1},
      {MPI_BYTE, 1},
      {MPI_PACKED, 1},
      {MPI_WCHAR, sizeof(wchar_t)},
      {MPI_SHORT, sizeof(short)},
      {MPI_UNSIGNED_SHORT, sizeof(short)},
      {MPI_INT, sizeof(int)},
      {MPI_UNSIGNED, sizeof(int)},
      {MPI_LONG, sizeof(long)},
      {MPI_UNSIGNED_LONG, sizeof(long)},
      {MPI_LONG_LONG, sizeof(long long)},
      {MPI_UNSIGNED_LONG_LONG, sizeof(long long)},
      {MPI_FLOAT, sizeof(float)},
      {MPI_DOUBLE, sizeof(double)},
      {MPI_LONG_DOUBLE, sizeof(long double)},
      {MPI_C_BOOL, 1},
      {MPI_INT8_T, 1},
      {MPI_INT16_T, 2},
      {MPI_INT32_T, 4},
      {MPI_INT64_T, 8},
      {MPI_UINT8_T, 1},
      {MPI_UINT16_T, 2},
      {MPI_UINT32_T, 4},
      {MPI_UINT64_T, 8},
      {MPI_AINT, sizeof(MPI_Aint)},
      {MPI_OFFSET, sizeof(MPI_Offset)},
      {MPI_COUNT, sizeof(MPI_Count)},
      {MPI_C_FLOAT_COMPLEX, 2 * sizeof(float)},
      {MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double)},
      {MPI_C_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double)},
      {MPI_FLOAT_INT, sizeof(float) + sizeof(int)},
      {MPI_DOUBLE_INT, sizeof(double) + sizeof(int)},
      {MPI_LONG_INT, sizeof(long) + sizeof(int)},
      {MPI_2INT, 2 * sizeof(int)},
      {MPI_SHORT_INT, sizeof(short) + sizeof(int)},
      {MPI_LONG_DOUBLE_INT, sizeof(long double) + sizeof(int)},
  };
  for (int i = 0; i < LENGTH(types); ++i) {
    int bytes = -1;
    OK(MPI_Type_size(types[i].type, &bytes));
    if ((size_t)bytes != types[i].bytes) {
      printf("rank %d: type %d has %d bytes\n", rank, i, bytes);
      ++failures;
    }
  }
}

static int CombinerOf(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = -1;
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  return combiner;
}

static void CheckCombiner(int error, MPI_Datatype* type, int combiner) {
  OK(error);
  if (error == MPI_SUCCESS) {
    CHECK(CombinerOf(*type) == combiner);
    OK(MPI_Type_free(type));
  }
}

static void CheckDatatypes(void) {
  const int ones[2] = {1, 1}, sizes[2] = {4, 4}, starts[2] = {1, 2}, places[2] = {0, 3};
  const int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
  const int default_size[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int grid[2] = {size, 1};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  CHECK(CombinerOf(MPI_INT) == MPI_COMBINER_NAMED);
  CheckCombiner(MPI_Type_dup(MPI_INT, &type), &type, MPI_COMBINER_DUP);
  CheckCombiner(MPI_Type_contiguous(2, MPI_INT, &type), &type, MPI_COMBINER_CONTIGUOUS);
  CheckCombiner(MPI_Type_vector(2, 1, 2, MPI_INT, &type), &type, MPI_COMBINER_VECTOR);
  CheckCombiner(MPI_Type_indexed(2, ones, places, MPI_INT, &type), &type, MPI_COMBINER_INDEXED);
  CheckCombiner(MPI_Type_create_subarray(2, sizes, ones, starts, MPI_ORDER_FORTRAN, MPI_INT, &type),
                &type, MPI_COMBINER_SUBARRAY);
  CheckCombiner(MPI_Type_create_darray(size, rank, 2, sizes, block, default_size, grid, MPI_ORDER_C,
                                       MPI_INT, &type),
                &type, MPI_COMBINER_DARRAY);
  CheckCombiner(MPI_Type_create_resized(MPI_INT, 0, 8, &type), &type, MPI_COMBINER_RESIZED);
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  /* Libraries that were built without Fortran lack it; such types are predefined. */
  if (MPI_Type_create_f90_real(6, 30, &type) == MPI_SUCCESS && type != MPI_DATATYPE_NULL) {
    CHECK(CombinerOf(type) == MPI_COMBINER_F90_REAL);
  }
  if (MPI_Type_create_f90_complex(6, 30, &type) == MPI_SUCCESS && type != MPI_DATATYPE_NULL) {
    CHECK(CombinerOf(type) == MPI_COMBINER_F90_COMPLEX);
  }
  if (MPI_Type_create_f90_integer(4, &type) == MPI_SUCCESS && type != MPI_DATATYPE_NULL) {
    CHECK(CombinerOf(type) == MPI_COMBINER_F90_INTEGER);
  }
}

static void KeepLargerFirst(void* in, void* in_out, int* count, MPI_Datatype* datatype) {
  (void)datatype;
  for (int i = 0; i < *count; ++i) {
    int* const pair = (int*)in_out + 2 * i;
    const int* const other = (const int*)in + 2 * i;
    if (other[0] > pair[0]) {
      memcpy(pair, other, 8);
    }
  }
}

static void CheckCollectives(void) {
  struct {
    double value;
    int place;
  } mine = {rank == 1 ? 9.0 : 1.0, rank}, largest = {0, -1};
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
                        MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
  /* of 3 and 5, each from one rank */
  const int expected[] = {8, 15, 3, 5, 1, 7, 6, 1, 1, 0};
  int pair[2] = {rank, 100 + rank}, number = rank == 0 ? 77 : 0;
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Datatype pair_type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
  CHECK(number == 77);
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, 0, &both));
  CHECK((both == MPI_COMM_NULL) == (rank >= 2));
  for (int i = 0; i < LENGTH(ops) && rank < 2; ++i) {
    number = rank == 0 ? 3 : 5;
    OK(MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, ops[i], both));
    CHECK(number == expected[i]);
  }
  if (rank < 2) {
    OK(MPI_Comm_free(&both));
  }
  OK(MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  CHECK(largest.value == 9.0 && largest.place == 1);
  OK(MPI_Type_contiguous(2, MPI_INT, &pair_type));
  OK(MPI_Type_commit(&pair_type));
  OK(MPI_Op_create(KeepLargerFirst, 1, &op));
  OK(MPI_Allreduce(MPI_IN_PLACE, pair, 1, pair_type, op, MPI_COMM_WORLD));
  CHECK(pair[0] == size - 1 && pair[1] == 100 + size - 1);
  OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  OK(MPI_Type_free(&pair_type));
  CHECK(pair_type == MPI_DATATYPE_NULL);
}

static void CheckCommunicators(void) {
  MPI_Comm copy = MPI_COMM_NULL, ring = MPI_COMM_NULL, graph = MPI_COMM_NULL;
  MPI_Group group = MPI_GROUP_NULL, empty = MPI_GROUP_NULL;
  const int periodic = 1, right = (rank + 1) % size, left = (rank + size - 1) % size;
  int result = -1, status = -1;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  OK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result));
  CHECK(result == MPI_CONGRUENT);
  OK(MPI_Comm_compare(copy, copy, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Comm_compare(copy, MPI_COMM_SELF, &result));
  CHECK(result == MPI_UNEQUAL);
  OK(MPI_Topo_test(copy, &status));
  CHECK(status == MPI_UNDEFINED);
  OK(MPI_Cart_create(copy, 1, &size, &periodic, 0, &ring));
  OK(MPI_Topo_test(ring, &status));
  CHECK(status == MPI_CART);
  OK(MPI_Dist_graph_create_adjacent(copy, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 0, &graph));
  OK(MPI_Topo_test(graph, &status));
  CHECK(status == MPI_DIST_GRAPH);
  OK(MPI_Comm_free(&graph));
  OK(MPI_Comm_free(&ring));
  OK(MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &ring));
  OK(MPI_Comm_free(&ring));
  OK(MPI_Comm_group(copy, &group));
  OK(MPI_Group_incl(group, 0, NULL, &empty));
  OK(MPI_Group_compare(empty, MPI_GROUP_EMPTY, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&group));
  CHECK(group == MPI_GROUP_NULL);
  OK(MPI_Comm_free(&copy));
}

int main(int argc, char** argv) {
  int provided = -1, version = 0, subversion = -1;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  CHECK(provided >= MPI_THREAD_FUNNELED && provided <= MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size >= 2);
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK(version == 1 && subversion == 0);
  CheckErrorHandlers();
  CheckErrorClasses();
  CheckAttributes();
  CheckCallbacks();
  CheckMessages();
  CheckSizes();
  CheckDatatypes();
  CheckCollectives();
  CheckCommunicators();
  OK(MPI_Finalize());
  if (failures == 0) {
    printf("rank %d: ok\n", rank);
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
