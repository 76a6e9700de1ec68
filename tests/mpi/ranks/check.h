/* For the programs that tests run as ranks: a check that says what failed, and data to tell apart.
 * C99, so that the programs are what users write.
 */
#ifndef FERRY_TESTS_MPI_RANKS_CHECK_H_
#define FERRY_TESTS_MPI_RANKS_CHECK_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* step = "the beginning"; /* what the program does just now */

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

/* Bytes that differ from message to message, and from place to place. */
static inline void fill(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8))) return 0;
  }
  return 1;
}

#endif /* FERRY_TESTS_MPI_RANKS_CHECK_H_ */
