/* Prints what MPI knows about the program's start: a line for each rank. With "wrong" it then makes
 * a mistake, and prints the result.
 */
#include "tests/mpi/ranks/check.h"

#define LINE 200

static int attribute(int keyval) {
  int* value = NULL;
  int flag = 0;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
  return flag ? *value : -1;
}

static const char* handler(MPI_Comm comm) {
  MPI_Errhandler found;
  OK(MPI_Comm_get_errhandler(comm, &found));
  return found == MPI_ERRORS_RETURN ? "return" : found == MPI_ERRORS_ABORT ? "abort" : "fatal";
}

/* The number of processes that the environment names, also while MPI does not run. */
static int told_processes(int argc, char** argv) {
  MPI_Info info;
  OK(MPI_Info_create_env(argc, argv, &info));
  const int processes = atoi(value_in(info, "maxprocs"));
  OK(MPI_Info_free(&info));
  return processes;
}

int main(int argc, char** argv) {
  const int is_told = argc > 1 && strcmp(argv[1], "told") == 0;
  const int before = is_told ? told_processes(argc, argv) : 0;
  char line[LINE] = "", *all = NULL;
  if (argc > 1 && strcmp(argv[1], "early") == 0) { /* before there is a communicator */
    const int error = MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("class %d\n", error);
    return 0;
  }
  OK(MPI_Init(&argc, &argv));
  rank = rank_in(MPI_COMM_WORLD);
  size = size_of(MPI_COMM_WORLD);
  if (argc > 1 && strcmp(argv[1], "kinds") == 0)
    printf("%s\n", value_in(MPI_INFO_ENV, "mpi_memory_alloc_kinds"));
  snprintf(line, sizeof(line), "app %d of %d ranks, universe %d, %s %s", attribute(MPI_APPNUM),
           atoi(value_in(MPI_INFO_ENV, "maxprocs")), attribute(MPI_UNIVERSE_SIZE),
           handler(MPI_COMM_WORLD), handler(MPI_COMM_SELF));
  all = calloc((size_t)size, LINE);
  OK(MPI_Gather(line, LINE, MPI_CHAR, all, LINE, MPI_CHAR, 0, MPI_COMM_WORLD));
  for (int i = 0; rank == 0 && i < size; ++i) printf("%d: %s\n", i, all + i * LINE);
  free(all);
  if (argc > 1 && strcmp(argv[1], "wrong") == 0 && rank == 0) {
    printf("class %d\n", MPI_Send(NULL, 0, MPI_INT, size, 0, MPI_COMM_WORLD));
  }
  OK(MPI_Finalize());
  if (is_told)
    printf("%d before MPI_Init, %d behind MPI_Finalize\n", before, told_processes(argc, argv));
  return 0;
}
