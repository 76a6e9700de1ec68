/* The beginning and the end of MPI programs, and how they end when something is wrong: what the
 * argument names. Run by two ranks.
 */
#include "tests/mpi/ranks/check.h"

static int rank;

static void live(int* argc, char*** argv) {
  int flag = -1, version, subversion, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Get_version(&version, &subversion)); /* allowed at any time */
  CHECK(version == 5 && subversion == 0);
  OK(MPI_Get_library_version(text, &length));
  CHECK(strncmp(text, "Ferry ", 6) == 0 && length == (int)strlen(text));
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK(version == 1 && subversion == 0);
  OK(MPI_Init(argc, argv));
  OK(MPI_Initialized(&flag));
  CHECK(flag);
  OK(MPI_Finalized(&flag));
  CHECK(!flag);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
}

static void whole_life(int argc, char** argv) {
  int flag, length;
  char name[MPI_MAX_PROCESSOR_NAME];
  double now, later;
  live(&argc, &argv);
  OK(MPI_Get_processor_name(name, &length));
  CHECK(length > 0 && length == (int)strlen(name));
  now = MPI_Wtime();
  while ((later = MPI_Wtime()) == now) {
  }
  CHECK(later > now && MPI_Wtick() > 0 && MPI_Wtick() < 0.001);
  OK(MPI_Pcontrol(1));
  OK(MPI_Finalize());
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  OK(MPI_Initialized(&flag)); /* it says whether MPI_Init was called, ever */
  CHECK(flag);
  puts("a whole life");
}

int main(int argc, char** argv) {
  int data = 0;
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "whole") == 0) {
    whole_life(argc, argv);
  } else if (strcmp(what, "abort") == 0) {
    live(&argc, &argv);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Recv(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* never comes */
  } else if (strcmp(what, "fatal") == 0) {
    live(&argc, &argv);
    if (rank == 0) MPI_Send(&data, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    MPI_Recv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "before") == 0) {
    MPI_Send(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  } else if (strcmp(what, "after") == 0) {
    live(&argc, &argv);
    MPI_Finalize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  } else if (strcmp(what, "again") == 0) {
    live(&argc, &argv);
    MPI_Finalize();
    MPI_Init(&argc, &argv);
  } else if (strcmp(what, "dies") == 0) {
    /* A rank that ends without a word: whoever waits for it hears of it. */
    live(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (rank == 1) { /* not before the other has joined */
      MPI_Recv(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      _Exit(0);
    }
    OK(MPI_Send(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    data = MPI_Recv(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("class %d\n", data);
    fflush(stdout);
    _Exit(0);
  } else {
    fprintf(stderr, "usage: life whole|abort|fatal|before|after|again|dies\n");
    return 2;
  }
  return 0;
}
