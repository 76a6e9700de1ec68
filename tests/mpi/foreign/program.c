/* A program of MPICH's binary interface: compiled with MPICH's mpi.h, run on Ferry. What it checks
 * is where the two interfaces differ: constants, handles, statuses, callbacks, and calls that the
 * standard has no more.
 */
#include <stdint.h>

#include "tests/mpi/ranks/check.h"

#if !defined(MPICH_NAME)
#error "this is not MPICH's mpi.h"
#endif

/* ---- Versions -------------------------------------------------------------------------------- */

static void versions(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING], name[MPI_MAX_PROCESSOR_NAME];
  int length = 0, major = 0, minor = 0;
  step = "versions";
  OK(MPI_Get_library_version(text, &length));
  CHECK(strncmp(text, "MPICH Version:", 14) == 0 && strstr(text, "Ferry ") != NULL);
  CHECK(length == (int)strlen(text));
  OK(MPI_Get_version(&major, &minor));
  CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
  OK(MPI_Get_processor_name(name, &length));
  CHECK(length == (int)strlen(name) && length > 0 && length < MPI_MAX_PROCESSOR_NAME);
  int level = -1;
  OK(MPI_Query_thread(&level));
  CHECK(level == MPI_THREAD_MULTIPLE);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void statuses(void) {
  step = "statuses";
  int sent[3] = {rank, 7, 9}, got[8] = {0};
  MPI_Status status = {.MPI_ERROR = 12345};
  OK(MPI_Sendrecv(sent, 3, MPI_INT, next, 11, got, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &status));
  CHECK(got[0] == before && got[2] == 9 && got[3] == 0);
  CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 11 && status.MPI_ERROR == 12345);
  CHECK(count_of(&status, MPI_INT) == 3 && count_of(&status, MPI_BYTE) == 12);
  CHECK(count_of(&status, MPI_DOUBLE) == MPI_UNDEFINED && !was_cancelled(&status));

  step = "MPI_PROC_NULL";
  OK(MPI_Recv(got, 8, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  CHECK(count_of(&status, MPI_INT) == 0);
  OK(MPI_Send(sent, 3, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));

  step = "an empty status";
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_ANY_SOURCE);
  CHECK(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == MPI_SUCCESS);

  step = "a cancelled receive";
  OK(MPI_Irecv(got, 1, MPI_INT, before, 999, MPI_COMM_WORLD, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(was_cancelled(&status) && request == MPI_REQUEST_NULL);

  step = "a status of the program's own";
  memset(&status, 0, sizeof(status));
  OK(MPI_Status_set_elements_x(&status, MPI_BYTE, 0x1234567890));
  OK(MPI_Status_set_cancelled(&status, 1));
  MPI_Count elements = 0;
  OK(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
  CHECK(elements == 0x1234567890 && was_cancelled(&status));
  MPI_Fint numbers[MPI_F_STATUS_SIZE];
  MPI_Status copy;
  OK(MPI_Status_c2f(&status, numbers));
  CHECK(numbers[MPI_F_SOURCE] == status.MPI_SOURCE);
  OK(MPI_Status_f2c(numbers, &copy));
  CHECK(memcmp(&copy, &status, sizeof(copy)) == 0);
}

/* More requests than are kept without allocating, in every form of completion. */
static void requests(void) {
  enum { kMany = 150 };
  int sent[kMany], got[kMany], indices[kMany], done = 0, flag = 0, which = 0;
  MPI_Request all[2 * kMany];
  MPI_Status of[2 * kMany];
  for (int form = 0; form < 5; ++form) {
    step = "requests";
    for (int i = 0; i < kMany; ++i) {
      sent[i] = 1000 * rank + i;
      got[i] = -1;
      OK(MPI_Irecv(&got[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &all[i]));
      OK(MPI_Isend(&sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &all[kMany + i]));
      CHECK(all[i] != MPI_REQUEST_NULL && MPI_Request_f2c(MPI_Request_c2f(all[i])) == all[i]);
    }
    if (form == 0) {
      OK(MPI_Waitall(2 * kMany, all, of));
      CHECK(of[3].MPI_SOURCE == before && of[3].MPI_TAG == 3 && count_of(&of[3], MPI_INT) == 1);
    } else if (form == 1) {
      OK(MPI_Waitall(2 * kMany, all, MPI_STATUSES_IGNORE));
    } else if (form == 2) {
      for (flag = 0; !flag;) OK(MPI_Testall(2 * kMany, all, &flag, of));
      CHECK(of[kMany - 1].MPI_TAG == kMany - 1);
    } else if (form == 3) {
      for (done = 0; done < 2 * kMany; done += which) {
        OK(MPI_Waitsome(kMany, &all[done < kMany ? 0 : kMany], &which, indices, of));
        if (which == MPI_UNDEFINED) break;
        for (int i = 0; i < which && done < kMany; ++i) CHECK(of[i].MPI_TAG == indices[i]);
      }
      OK(MPI_Waitall(2 * kMany, all, MPI_STATUSES_IGNORE));
    } else {
      for (done = 0; done < 2 * kMany; ++done) {
        OK(MPI_Waitany(2 * kMany, all, &which, &of[0]));
        CHECK(which >= 0 && which < 2 * kMany && all[which] == MPI_REQUEST_NULL);
        if (which < kMany) CHECK(of[0].MPI_TAG == which);
      }
      OK(MPI_Waitany(2 * kMany, all, &which, &of[0]));
      CHECK(which == MPI_UNDEFINED);
    }
    for (int i = 0; i < kMany; ++i) {
      CHECK(got[i] == 1000 * before + i);
      CHECK(all[i] == MPI_REQUEST_NULL && all[kMany + i] == MPI_REQUEST_NULL);
    }
  }

  step = "persistent requests";
  MPI_Request two[2];
  int in = -1, out = rank;
  OK(MPI_Recv_init(&in, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &two[0]));
  OK(MPI_Send_init(&out, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &two[1]));
  for (int round = 0; round < 3; ++round) {
    out = 10 * rank + round;
    OK(MPI_Startall(2, two));
    OK(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
    CHECK(in == 10 * before + round && two[0] != MPI_REQUEST_NULL);
  }
  OK(MPI_Request_free(&two[0]));
  OK(MPI_Request_free(&two[1]));
  CHECK(two[0] == MPI_REQUEST_NULL);
}

static void matched(void) {
  step = "matched probes";
  int out = rank, in = -1, flag = 0;
  MPI_Request request;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  OK(MPI_Isend(&out, 1, MPI_INT, next, 21, MPI_COMM_WORLD, &request));
  while (!flag) OK(MPI_Improbe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
  CHECK(message != MPI_MESSAGE_NULL && status.MPI_TAG == 21);
  OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status));
  CHECK(in == before && message == MPI_MESSAGE_NULL);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
  CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
  OK(MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  status.MPI_SOURCE = -77;
  OK(MPI_Iprobe(before, 4711, MPI_COMM_WORLD, &flag, &status));
  CHECK(!flag && status.MPI_SOURCE == -77);
}

/* A buffer as MPICH's overhead has it. */
static void buffered(void) {
  enum { kMessages = 200 };
  step = "buffered sends";
  const int room = kMessages * ((int)sizeof(int) + MPI_BSEND_OVERHEAD);
  void* const buffer = malloc((size_t)room);
  void* back = NULL;
  int size_back = 0, got = 0;
  OK(MPI_Buffer_attach(buffer, room));
  for (int i = 0; i < kMessages; ++i) OK(MPI_Bsend(&i, 1, MPI_INT, rank, 8, MPI_COMM_WORLD));
  for (int i = 0; i < kMessages; ++i) {
    OK(MPI_Recv(&got, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == i);
  }
  OK(MPI_Buffer_detach(&back, &size_back));
  CHECK(back == buffer && size_back == room);
  free(buffer);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

static int largest_type;

static void sum_of_pairs(void* in, void* inout, int* length, MPI_Datatype* type) {
  int type_size = 0;
  MPI_Type_size(*type, &type_size);
  largest_type = type_size > largest_type ? type_size : largest_type;
  for (int i = 0; i < *length * type_size / (int)sizeof(double); ++i) {
    ((double*)inout)[i] += ((double*)in)[i];
  }
}

static void collectives(void) {
  step = "MPI_IN_PLACE";
  int sum = rank + 1;
  OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size + 1) / 2);
  int* const all = malloc((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) all[i] = i == rank ? 5 * rank : -1;
  OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < size; ++i) CHECK(all[i] == 5 * i);
  int mine = -1;
  OK(MPI_Scatter(all, 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : (void*)&mine, 1, MPI_INT, 0,
                 MPI_COMM_WORLD));
  CHECK(mine == (rank == 0 ? -1 : 5 * rank));
  free(all);

  step = "predefined operations";
  struct {
    double value;
    int place;
  } own = {rank == size - 1 ? -3.5 : rank, rank}, least;
  OK(MPI_Allreduce(&own, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
  CHECK(least.value == -3.5 && least.place == size - 1);
  long product = 2;
  OK(MPI_Allreduce(MPI_IN_PLACE, &product, 1, MPI_LONG, MPI_PROD, MPI_COMM_WORLD));
  CHECK(product == 1L << size);

  step = "an operation of the program's own";
  MPI_Op op;
  MPI_Datatype pair;
  double values[4] = {1, rank, 2, 1}, sums[4] = {0};
  OK(MPI_Type_contiguous(2, MPI_DOUBLE, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Op_create(sum_of_pairs, 1, &op));
  OK(MPI_Allreduce(values, sums, 2, pair, op, MPI_COMM_WORLD));
  CHECK(sums[0] == size && sums[1] == size * (size - 1) / 2 && sums[3] == size);
  CHECK(largest_type == 0 || largest_type == 2 * (int)sizeof(double));
  OK(MPI_Allreduce(MPI_IN_PLACE, &largest_type, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  CHECK(size == 1 || largest_type != 0);
  MPI_Request request;
  OK(MPI_Ireduce(values, sums, 2, pair, op, 0, MPI_COMM_WORLD, &request));
  OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(rank != 0 || sums[2] == 2 * size);

  step = "MPI_Alltoallw";
  int* const counts = malloc((size_t)size * sizeof(int));
  int* const places = malloc((size_t)size * sizeof(int));
  MPI_Datatype* const types = malloc((size_t)size * sizeof(MPI_Datatype));
  double* const from = malloc((size_t)size * 2 * sizeof(double));
  double* const to = malloc((size_t)size * 2 * sizeof(double));
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    places[i] = i * (int)sizeof(double) * 2;
    types[i] = pair;
    from[2 * i] = rank;
    from[2 * i + 1] = i;
  }
  OK(MPI_Alltoallw(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD));
  for (int i = 0; i < size; ++i) CHECK(to[2 * i] == i && to[2 * i + 1] == rank);
  memset(to, 0, (size_t)size * 2 * sizeof(double));
  OK(MPI_Ialltoallw(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD,
                    &request));
  OK(MPI_Type_free(&pair));
  CHECK(pair == MPI_DATATYPE_NULL);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < size; ++i) CHECK(to[2 * i] == i && to[2 * i + 1] == rank);
  free(counts);
  free(places);
  free(types);
  free(from);
  free(to);
}

/* Between two groups, where MPI_ROOT and MPI_PROC_NULL are roots. */
static void between_groups(void) {
  step = "an intercommunicator";
  if (size < 2) return;
  MPI_Comm half, inter, merged;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
  int flag = 0, value = rank == 0 ? 77 : -1;
  OK(MPI_Comm_test_inter(inter, &flag));
  CHECK(flag && comparison_of(inter, half) == MPI_UNEQUAL);
  const int root = rank % 2 == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  OK(MPI_Bcast(&value, 1, MPI_INT, root, inter));
  CHECK(value == (rank % 2 == 1 || rank == 0 ? 77 : -1));
  OK(MPI_Intercomm_merge(inter, rank % 2, &merged));
  CHECK(size_of(merged) == size);
  OK(MPI_Comm_free(&merged));
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&half));
  CHECK(half == MPI_COMM_NULL);
}

/* ---- Datatypes ------------------------------------------------------------------------------- */

static void datatypes(void) {
  step = "MPI_BOTTOM";
  int numbers[4] = {1, 2, 3, 4}, got[4] = {0};
  int lengths[2] = {1, 2}, combiner = 0, integers = 0, addresses = 0, types = 0;
  MPI_Aint places[2];
  MPI_Datatype type, parts[2] = {MPI_INT, MPI_INT};
  OK(MPI_Get_address(&numbers[0], &places[0]));
  OK(MPI_Address(&numbers[2], &places[1]));
  OK(MPI_Type_create_struct(2, lengths, places, parts, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Sendrecv(MPI_BOTTOM, 1, type, next, 3, got, 4, MPI_INT, before, 3, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(got[0] == 1 && got[1] == 3 && got[2] == 4);

  step = "what a datatype is made of";
  int of_integers[16];
  MPI_Aint of_addresses[4];
  MPI_Datatype of_types[4];
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_STRUCT && integers == 3 && addresses == 2 && types == 2);
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(of_integers[0] == 2 && of_types[0] == MPI_INT && of_types[1] == MPI_INT);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_get_envelope(MPI_DOUBLE, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_NAMED);
  int sizes[2] = {4, 6}, part[2] = {2, 3}, start[2] = {1, 1};
  OK(MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_FORTRAN, MPI_FLOAT, &type));
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(combiner == MPI_COMBINER_SUBARRAY && of_integers[0] == 2 && of_integers[1] == 4);
  CHECK(of_integers[7] == MPI_ORDER_FORTRAN && of_types[0] == MPI_FLOAT);
  OK(MPI_Type_free(&type));
  int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 1}, bytes = 0;
  OK(MPI_Type_create_darray(2, 0, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT,
                            &type));
  OK(MPI_Type_size(type, &bytes));
  CHECK(bytes == 2 * 6 * 4);
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(of_integers[5] == MPI_DISTRIBUTE_BLOCK && of_integers[6] == MPI_DISTRIBUTE_CYCLIC);
  CHECK(of_integers[7] == MPI_DISTRIBUTE_DFLT_DARG && of_integers[8] == 2);
  CHECK(of_integers[11] == MPI_ORDER_C);
  OK(MPI_Type_free(&type));

  step = "datatypes that the standard has no more";
  MPI_Aint extent = 0, lb = 0, ub = 0;
  MPI_Datatype marked[3] = {MPI_LB, MPI_INT, MPI_UB};
  int ones[3] = {1, 1, 1};
  MPI_Aint at[3] = {-4, 0, 20};
  OK(MPI_Type_struct(3, ones, at, marked, &type));
  OK(MPI_Type_extent(type, &extent));
  OK(MPI_Type_lb(type, &lb));
  OK(MPI_Type_ub(type, &ub));
  OK(MPI_Type_size(type, &bytes));
  CHECK(lb == -4 && ub == 20 && extent == 24 && bytes == 4);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_hvector(2, 1, 16, MPI_DOUBLE, &type));
  OK(MPI_Type_extent(type, &extent));
  CHECK(extent == 24);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_hindexed(2, ones, at, MPI_INT, &type));
  OK(MPI_Type_extent(type, &extent));
  CHECK(extent == 8);
  OK(MPI_Type_free(&type));

  step = "every predefined datatype";
  static const struct {
    MPI_Datatype type;
    int size;
    const char* name;
  } known[] = {{MPI_CHAR, 1, "MPI_CHAR"},
               {MPI_UNSIGNED_SHORT, 2, "MPI_UNSIGNED_SHORT"},
               {MPI_LONG, 8, "MPI_LONG"},
               {MPI_LONG_DOUBLE, 16, "MPI_LONG_DOUBLE"},
               {MPI_C_DOUBLE_COMPLEX, 16, "MPI_C_DOUBLE_COMPLEX"},
               {MPI_2INT, 8, "MPI_2INT"},
               {MPI_DOUBLE_INT, 12, "MPI_DOUBLE_INT"},
               {MPI_SHORT_INT, 6, "MPI_SHORT_INT"},
               {MPI_LONG_DOUBLE_INT, 20, "MPI_LONG_DOUBLE_INT"},
               {MPI_AINT, 8, "MPI_AINT"},
               {MPI_UINT64_T, 8, "MPI_UINT64_T"},
               {MPI_INTEGER8, 8, "MPI_INTEGER8"},
               {MPI_CXX_BOOL, 1, "MPI_CXX_BOOL"},
               {MPIX_C_FLOAT16, 2, "MPI_REAL2"}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    OK(MPI_Type_size(known[i].type, &bytes));
    OK(MPI_Type_get_name(known[i].type, name, &length));
    CHECK(bytes == known[i].size && strcmp(name, known[i].name) == 0);
  }
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  OK(MPI_Type_size(type, &bytes));
  CHECK(bytes == 8);
}

/* ---- Communicators, attributes -----------------------------------------------------------------
 */

static int copies, deletions;

static int copy_value(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  CHECK(comm == MPI_COMM_SELF && keyval != MPI_KEYVAL_INVALID && extra == &copies);
  *(void**)out = (char*)in + 1;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

static int delete_value(MPI_Comm comm, int keyval, void* value, void* extra) {
  CHECK(comm != MPI_COMM_NULL && keyval != MPI_KEYVAL_INVALID && extra == &copies);
  CHECK(value != NULL);
  ++deletions;
  return MPI_SUCCESS;
}

static int refuses = 1;

static int refuse_deletion(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  return refuses ? MPI_ERR_TOPOLOGY : MPI_SUCCESS;
}

static void attributes(void) {
  step = "attributes";
  int keyval = MPI_KEYVAL_INVALID, dup_keyval, flag = 0;
  static char bytes[4];
  char* value = NULL;
  MPI_Comm copy;
  OK(MPI_Comm_create_keyval(copy_value, delete_value, &keyval, &copies));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &bytes[0]));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, dup_keyval, &bytes[2]));
  OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
  OK(MPI_Comm_get_attr(copy, keyval, &value, &flag));
  CHECK(flag && value == &bytes[1] && copies == 1);
  OK(MPI_Comm_get_attr(copy, dup_keyval, &value, &flag));
  CHECK(flag && value == &bytes[2]);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));
  CHECK(deletions == 2);
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, dup_keyval));
  OK(MPI_Comm_free_keyval(&keyval));
  OK(MPI_Keyval_free(&dup_keyval));
  CHECK(keyval == MPI_KEYVAL_INVALID && dup_keyval == MPI_KEYVAL_INVALID);
  OK(MPI_Keyval_create(MPI_NULL_COPY_FN, refuse_deletion, &keyval, NULL));
  OK(MPI_Attr_put(MPI_COMM_SELF, keyval, bytes));
  CHECK(MPI_Attr_delete(MPI_COMM_SELF, keyval) == MPI_ERR_TOPOLOGY);
  refuses = 0;
  OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));

  step = "predefined attributes";
  int* number = NULL;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &number, &flag));
  CHECK(flag && *number >= 32767);
  OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_HOST, &number, &flag));
  CHECK(flag && *number == MPI_PROC_NULL);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &number, &flag));
  CHECK(flag && *number == MPI_ANY_SOURCE);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &number, &flag));
  CHECK(flag && *number >= MPI_ERR_LASTCODE);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag));
  CHECK(flag && *number >= size);
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, bytes) == MPI_ERR_KEYVAL);
}

static void communicators(void) {
  step = "communicators and groups";
  MPI_Comm copy, shared, none;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  CHECK(comparison_of(copy, MPI_COMM_WORLD) == MPI_CONGRUENT);
  CHECK(comparison_of(copy, copy) == MPI_IDENT);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
  check_ring(copy, 3);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
  CHECK(size_of(shared) >= 1 && size_of(shared) <= size);
  OK(MPI_Comm_free(&shared));
  OK(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &none));
  CHECK(none == MPI_COMM_NULL);
  MPI_Group world, self, both;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(MPI_COMM_SELF, &self));
  int ranks[2] = {0, MPI_PROC_NULL}, translated[2] = {-9, -9}, result = -1, of_none = 0;
  OK(MPI_Group_translate_ranks(self, 2, ranks, world, translated));
  CHECK(translated[0] == rank && translated[1] == MPI_PROC_NULL);
  OK(MPI_Group_difference(self, world, &both));
  OK(MPI_Group_compare(both, MPI_GROUP_EMPTY, &result));
  OK(MPI_Group_rank(both, &of_none));
  CHECK(result == MPI_IDENT && of_none == MPI_UNDEFINED);
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&self));
  CHECK(world == MPI_GROUP_NULL);

  step = "info";
  MPI_Info info = info_with("ferry", "boat");
  char key[MPI_MAX_INFO_KEY + 1];
  OK(MPI_Info_get_nthkey(info, 0, key));
  CHECK(strcmp(key, "ferry") == 0 && strcmp(value_in(info, "ferry"), "boat") == 0);
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
}

static void topologies(void) {
  step = "topologies";
  int kind = 0, dims[1] = {size}, periods[1] = {0}, source = 0, dest = 0;
  MPI_Comm line;
  OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
  CHECK(kind == MPI_UNDEFINED);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
  OK(MPI_Topo_test(line, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Cart_shift(line, 0, 1, &source, &dest));
  CHECK(source == (rank == 0 ? MPI_PROC_NULL : rank - 1));
  CHECK(dest == (rank == size - 1 ? MPI_PROC_NULL : rank + 1));
  int from[2] = {-1, -1}, counts[2] = {1, 1};
  MPI_Aint places[2] = {0, sizeof(int)};
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  const int to[2] = {rank, rank};
  OK(MPI_Neighbor_alltoallw(to, counts, places, types, from, counts, places, types, line));
  CHECK(from[0] == (rank == 0 ? -1 : rank - 1) && from[1] == (rank == size - 1 ? -1 : rank + 1));
  OK(MPI_Comm_free(&line));

  step = "a graph without weights";
  MPI_Comm graph;
  int in = 0, out = 0, weighted = 1, sources[1], destinations[1];
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                    MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 1 && out == 1 && !weighted);
  OK(MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED));
  CHECK(sources[0] == before && destinations[0] == next);
  OK(MPI_Topo_test(graph, &kind));
  CHECK(kind == MPI_DIST_GRAPH);
  OK(MPI_Comm_free(&graph));
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                    MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 0 && out == 0 && weighted);
  OK(MPI_Comm_free(&graph));
}

/* ---- Windows --------------------------------------------------------------------------------- */

static void windows(void) {
  step = "windows";
  int* base = NULL;
  int *flavor = NULL, *model = NULL, flag = 0, one = rank + 1, old = -1;
  MPI_Win window;
  OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window));
  base[0] = base[1] = 0;
  OK(MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
  CHECK(flag && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
  OK(MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &flag));
  CHECK(flag && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE));
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, window));
  OK(MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_INT, window));
  OK(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window));
  OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, window));
  CHECK(base[0] == before + 1);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
  OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window));
  OK(MPI_Win_unlock(0, window));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK * (size == 1), window));
  OK(MPI_Fetch_and_op(NULL, &old, MPI_INT, 0, 1, MPI_NO_OP, window));
  OK(MPI_Win_unlock(0, window));
  CHECK(old == size * (size + 1) / 2);
  MPI_Request request;
  OK(MPI_Win_lock_all(0, window));
  OK(MPI_Rget(&old, 1, MPI_INT, next, 0, 1, MPI_INT, window, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_unlock_all(window));
  CHECK(old == rank + 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_free(&window));
  CHECK(window == MPI_WIN_NULL);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static MPI_Comm failed;
static int failure;

static void note_failure(MPI_Comm* comm, int* code, ...) {
  failed = *comm;
  failure = *code;
}

/* Of a data representation: ints take 8 bytes. */
static int eight_bytes(MPI_Datatype type, MPI_Aint* extent, void* calls) {
  CHECK(type == MPI_INT);
  ++*(int*)calls;
  *extent = 8;
  return MPI_SUCCESS;
}

static void errors(void) {
  step = "errors";
  int value = 0, class_of = -1, added = 0, code = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  expect_error(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "MPI_Send");
  expect_error(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
  expect_error(MPI_Send(&value, 1, MPI_INT, -9, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "rank");
  expect_error(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT, "root");
  expect_error(MPI_Send(&value, 1, MPI_INT, -4, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "rank");
  expect_error(MPI_Send(&value, 1, MPI_INT, 0, -2, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
  CHECK(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
  CHECK(MPI_Type_commit(&type) == MPI_ERR_TYPE && type == MPI_DATATYPE_NULL);
  CHECK(MPI_Op_free(&(MPI_Op){MPI_SUM}) == MPI_ERR_OP);

  step = "handles that are none, or of another interface";
  const int wrong[] = {0, -1, 1, 0x101, 0x209, 0x12345678, 0x44000007, (int)0xc4ffffff, 0x7fffffff};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    int own = -7;
    MPI_Request request = wrong[i];
    CHECK(MPI_Comm_rank(wrong[i], &own) == MPI_ERR_COMM && own == -7);
    CHECK(MPI_Send(&value, 1, wrong[i], 0, 0, MPI_COMM_SELF) == MPI_ERR_TYPE);
    CHECK(MPI_Allreduce(&value, &own, 1, MPI_INT, wrong[i], MPI_COMM_SELF) == MPI_ERR_OP);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST && request == wrong[i]);
    CHECK(MPI_Group_size(wrong[i], &own) == MPI_ERR_GROUP);
    CHECK(MPI_Win_fence(0, wrong[i]) == MPI_ERR_WIN);
    CHECK(MPI_Info_get_nkeys(wrong[i], &own) == MPI_ERR_INFO);
    void* found = NULL;
    CHECK(MPI_Comm_get_attr(MPI_COMM_SELF, wrong[i], &found, &own) == MPI_ERR_KEYVAL);
  }
  CHECK(MPI_Comm_rank(MPI_COMM_NULL, &value) == MPI_ERR_COMM);
  CHECK(MPI_Type_size(MPI_COMM_WORLD, &value) == MPI_ERR_TYPE);

  step = "an error handler of the program's own";
  MPI_Errhandler handler, now;
  OK(MPI_Comm_create_errhandler(note_failure, &handler));
  OK(MPI_Errhandler_set(MPI_COMM_SELF, handler));
  OK(MPI_Errhandler_get(MPI_COMM_SELF, &now));
  CHECK(now != MPI_ERRHANDLER_NULL && now != MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&now));
  CHECK(MPI_Send(&value, 1, MPI_INT, 3, 0, MPI_COMM_SELF) == MPI_ERR_RANK);
  CHECK(failed == MPI_COMM_SELF && failure == MPI_ERR_RANK);
  OK(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TRUNCATE));
  CHECK(failure == MPI_ERR_TRUNCATE);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &now));
  CHECK(now == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&handler));
  CHECK(handler == MPI_ERRHANDLER_NULL);

  step = "a message that is too long";
  MPI_Request pair[2];
  MPI_Status of[2];
  int two[2] = {1, 2};
  OK(MPI_Irecv(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &pair[0]));
  OK(MPI_Isend(two, 2, MPI_INT, rank, 6, MPI_COMM_WORLD, &pair[1]));
  CHECK(MPI_Waitall(2, pair, of) == MPI_ERR_IN_STATUS);
  CHECK(of[0].MPI_ERROR == MPI_ERR_TRUNCATE && of[1].MPI_ERROR == MPI_SUCCESS);

  step = "error codes of the program's own";
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  OK(MPI_Add_error_class(&added));
  OK(MPI_Add_error_code(added, &code));
  OK(MPI_Add_error_string(code, "the ship is late"));
  OK(MPI_Error_class(code, &class_of));
  OK(MPI_Error_string(code, text, &length));
  CHECK(added > MPI_ERR_LASTCODE && class_of == added && strcmp(text, "the ship is late") == 0);
  OK(MPI_Error_class(MPI_ERR_OTHER, &class_of));
  CHECK(class_of == MPI_ERR_OTHER);

  step = "files";
  MPI_File file;
  expect_error(MPI_File_open(MPI_COMM_SELF, "/dev/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
               MPI_ERR_NO_SUCH_FILE, "/dev/none");
  CHECK(file == MPI_FILE_NULL);
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, of));
  int written = 0;
  OK(MPI_Get_count(of, MPI_INT, &written));
  CHECK(written == 1 && MPI_File_f2c(MPI_File_c2f(file)) == file);
  int amode = 0;
  OK(MPI_File_get_amode(file, &amode));
  CHECK(amode == MPI_MODE_RDWR);
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  OK(MPI_Register_datarep("eight", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, eight_bytes,
                          &value));
  CHECK(MPI_Register_datarep("eight", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, eight_bytes,
                             &value) == MPI_ERR_DUP_DATAREP);
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "eight", MPI_INFO_NULL));
  MPI_Aint in_file = 0;
  value = 0;
  OK(MPI_File_get_type_extent(file, MPI_INT, &in_file));
  CHECK(in_file == 8 && value > 0);
  OK(MPI_File_close(&file));

  step = "what Ferry does not have";
  MPI_Comm spawned;
  CHECK(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &spawned,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS);
}

/* ---- Generalised requests -------------------------------------------------------------------- */

static int query(void* extra, MPI_Status* status) {
  CHECK(extra == &failure);
  status->MPI_SOURCE = MPI_PROC_NULL;
  status->MPI_TAG = 31;
  OK(MPI_Status_set_elements(status, MPI_INT, 6));
  OK(MPI_Status_set_cancelled(status, 0));
  return MPI_SUCCESS;
}
static int freed;
static int free_state(void* extra) {
  CHECK(extra == &failure);
  ++freed;
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  (void)extra, (void)complete;
  return MPI_SUCCESS;
}

static void generalised(void) {
  step = "generalised requests";
  MPI_Request request;
  MPI_Status status;
  OK(MPI_Grequest_start(query, free_state, cancel, &failure, &request));
  OK(MPI_Grequest_complete(request));
  OK(MPI_Wait(&request, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 31 && freed == 1);
  CHECK(count_of(&status, MPI_INT) == 6 && request == MPI_REQUEST_NULL);
}

/* ---- The tool interface ------------------------------------------------------------------------
 */

static void tools(void) {
  step = "the tool interface";
  int level = -1, count = 0;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
  CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
  OK(MPI_T_cvar_get_num(&count));
  CHECK(count > 0);
  char name[256], text[1024];
  int name_room = sizeof(name), text_room = sizeof(text), verbosity = 0, bind = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum values;
  OK(MPI_T_cvar_get_info(0, name, &name_room, &verbosity, &type, &values, text, &text_room, &bind,
                         &scope));
  CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
  CHECK(bind == MPI_T_BIND_NO_OBJECT && scope >= MPI_T_SCOPE_CONSTANT);
  CHECK(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG_LONG ||
        type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED || type == MPI_DOUBLE);
  CHECK(MPI_T_cvar_get_info(1 << 20, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
        MPI_T_ERR_INVALID_INDEX);
  OK(MPI_T_finalize());
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  versions();
  statuses();
  requests();
  matched();
  buffered();
  collectives();
  between_groups();
  datatypes();
  attributes();
  communicators();
  topologies();
  windows();
  errors();
  generalised();
  tools();
  const int own = rank;
  OK(MPI_Finalize());
  printf("rank %d: ok\n", own);
  return 0;
}
