/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: collectives, operations of the program,
 * intercommunicators.
 */
#include "tests/mpi/foreign/interface.h"

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

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collectives();
  between_groups();
  return end_of_rank();
}
