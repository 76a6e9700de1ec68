/* Helpers for the programs that tests run as ranks: a check that says what failed, and data to tell
 * apart. It is C99, as users' programs may be.
 */
#ifndef FERRY_TESTS_MPI_RANKS_CHECK_H_
#define FERRY_TESTS_MPI_RANKS_CHECK_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* step = "the beginning"; /* the program's current step */

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      int check_rank = -1;                                                                 \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);                                          \
      fprintf(stderr, "rank %d, %s:%d, in %s: %s\n", check_rank, __FILE__, __LINE__, step, \
              #condition);                                                                 \
      fflush(stderr);                                                                      \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                        \
    }                                                                                      \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Bytes that differ between messages, and between places. */
static inline void fill(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8))) return 0;
  }
  return 1;
}

/* Checks that the call failed with this class, and that MPI_Error_string has the text. */
static inline void expect_error(int error, int error_class, const char* text) {
  char message[MPI_MAX_ERROR_STRING];
  int length;
  OK(MPI_Error_string(error, message, &length));
  if (error != error_class) {
    fprintf(stderr, "in %s: class %d in place of %d: \"%s\"\n", step, error, error_class, message);
    CHECK(!"the class is as it should be");
  }
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

#endif /* FERRY_TESTS_MPI_RANKS_CHECK_H_ */
