/* A program that was "compiled elsewhere": it knows only the standard's binary interface. Every
 * rank prints "rank R: ok", or what was wrong. Two ranks or more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/independent_abi.h"

static int rank = -1;
static int failures = 0;

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      printf("rank %d: line %d: not so: %s\n", rank, __LINE__, #condition); \
      ++failures;                                                           \
    }                                                                       \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)

static void CheckVersions(void) {
  int version = 0, subversion = -1, length = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == 5 && subversion == 0);
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK(version == 1 && subversion == 0);
  OK(MPI_Get_library_version(text, &length));
  CHECK(strstr(text, "Ferry") != NULL && (int)strlen(text) == length);
}

static void CheckMessages(int size) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double sent[3] = {rank + 0.5, 2, 3}, received[3] = {0, 0, 0};
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int count = -1;
  memset(statuses, 0x5a, sizeof statuses);
  OK(MPI_Irecv(received, 3, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(sent, 2, MPI_DOUBLE, right, 40 + rank, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Waitall(2, requests, statuses));
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  CHECK(statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == 40 + left);
  CHECK(MPI_Get_count(&statuses[0], MPI_DOUBLE, &count) == MPI_SUCCESS && count == 2);
  CHECK(MPI_Get_count(&statuses[0], MPI_INT, &count) == MPI_SUCCESS && count == 4);
  CHECK(received[0] == left + 0.5 && received[2] == 0);
  OK(MPI_Send(sent, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  OK(MPI_Recv_c(received, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, statuses));
  CHECK(statuses[0].MPI_SOURCE == MPI_PROC_NULL && statuses[0].MPI_TAG == MPI_ANY_TAG);
}

static void CheckErrors(int size) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, error_class = -1;
  uint64_t number = 7;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  const int code = MPI_Send(&number, 1, MPI_UINT64_T, size, 0, MPI_COMM_WORLD);
  CHECK(MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_RANK);
  CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && strstr(text, "MPI_Send") != NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Isend(&number, 1, MPI_UINT64_T, rank, 1, MPI_COMM_WORLD, &request));
  CHECK(MPI_Recv(&number, 4, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
        MPI_ERR_TRUNCATE);
  OK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
}

static void CheckCommunicators(void) {
  MPI_Comm copy = MPI_COMM_NULL;
  int result = -1, flag = 0, *largest_tag = NULL, own = -1;
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && copy != MPI_COMM_NULL);
  CHECK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
  CHECK(MPI_Comm_compare(copy, copy, &result) == MPI_SUCCESS && result == MPI_IDENT);
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
  CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 257);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &flag));
  CHECK(flag && *largest_tag >= 32767);
  CHECK(PMPI_Comm_rank(copy, &own) == MPI_SUCCESS && own == rank);
  CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
}

static void KeepLargerFirst(void* in, void* in_out, int* count, MPI_Datatype* datatype) {
  int size = 0;
  MPI_Type_size(*datatype, &size);
  for (int i = 0; i < *count; ++i) {
    int* const pair = (int*)in_out + 2 * i;
    const int* const other = (const int*)in + 2 * i;
    if (size == 8 && other[0] > pair[0]) {
      memcpy(pair, other, 8);
    }
  }
}

static void CheckCollectives(int size) {
  struct {
    double value;
    int place;
  } mine = {rank == 1 ? 9.0 : 1.0, rank}, largest = {0, -1};
  int pair[2] = {rank, 100 + rank}, number = rank == 0 ? 77 : 0, sum = rank;
  MPI_Datatype pair_type = MPI_DATATYPE_NULL;
  MPI_Op op = NULL;
  CHECK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS && number == 77);
  OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
  OK(MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  CHECK(largest.value == 9.0 && largest.place == 1);
  OK(MPI_Type_contiguous(2, MPI_INT, &pair_type));
  OK(MPI_Type_commit(&pair_type));
  OK(MPI_Op_create(KeepLargerFirst, 1, &op));
  OK(MPI_Allreduce(MPI_IN_PLACE, pair, 1, pair_type, op, MPI_COMM_WORLD));
  CHECK(pair[0] == size - 1 && pair[1] == 100 + size - 1);
  OK(MPI_Op_free(&op));
  CHECK(MPI_Type_free(&pair_type) == MPI_SUCCESS && pair_type == MPI_DATATYPE_NULL);
}

int main(int argc, char** argv) {
  int provided = -1, size = 0;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size >= 2);
  CheckVersions();
  CheckMessages(size);
  CheckErrors(size);
  CheckCommunicators();
  CheckCollectives(size);
  OK(MPI_Finalize());
  if (failures == 0) {
    printf("rank %d: ok\n", rank);
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
