/* For the programs that tests run as ranks: checks that say what failed. C99, as users write it. */
#ifndef FERRY_TESTS_MPI_PROGRAM_CHECK_H_
#define FERRY_TESTS_MPI_PROGRAM_CHECK_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* step = "the beginning"; /* what the program does just now */

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "%s:%d, in %s: not so: %s\n", __FILE__, __LINE__, step, #condition); \
      fflush(stderr);                                                                      \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                        \
    }                                                                                      \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* The call failed with this class, and MPI_Error_string has the text. */
static inline void expect_error(int error, int error_class, const char* text) {
  char message[MPI_MAX_ERROR_STRING];
  int length;
  CHECK(error == error_class);
  OK(MPI_Error_string(error, message, &length));
  if (strstr(message, text) == NULL) {
    fprintf(stderr, "in %s: \"%s\" says nothing of \"%s\"\n", step, message, text);
    CHECK(!"the message is as it should be");
  }
}

/* Errors are returned from now on. */
static inline void begin(int* argc, char*** argv) {
  OK(MPI_Init(argc, argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

static inline int end(void) {
  int rank;
  step = "the end";
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Finalize());
  printf("rank %d: ok\n", rank);
  return 0;
}

#endif /* FERRY_TESTS_MPI_PROGRAM_CHECK_H_ */
