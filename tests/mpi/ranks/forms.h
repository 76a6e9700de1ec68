/* The six ways to call one collective: blocking, nonblocking and persistent, with counts as int and
 * as MPI_Count. Each is called after PREPARE() and judged by JUDGE(). `step` is the current form.
 * On a queue (on_queue.h), persistent ones are matched and enqueued, too. */
#ifndef FERRY_TESTS_MPI_RANKS_FORMS_H_
#define FERRY_TESTS_MPI_RANKS_FORMS_H_

#include "tests/mpi/ranks/check.h"
#include "tests/mpi/ranks/on_queue.h"

#define THREE_FORMS(PREPARE, JUDGE, BLOCKING, NONBLOCKING, INIT, ...)            \
  do {                                                                           \
    MPI_Request forms_request = MPI_REQUEST_NULL;                                \
    step = #BLOCKING;                                                            \
    PREPARE();                                                                   \
    OK(BLOCKING(__VA_ARGS__));                                                   \
    JUDGE();                                                                     \
    step = #NONBLOCKING;                                                         \
    PREPARE();                                                                   \
    OK(NONBLOCKING(__VA_ARGS__, &forms_request));                                \
    OK(MPI_Wait(&forms_request, MPI_STATUS_IGNORE));                             \
    JUDGE();                                                                     \
    step = #INIT;                                                                \
    OK(INIT(__VA_ARGS__, MPI_INFO_NULL, &forms_request));                        \
    for (int forms_round = 0; forms_round < 2; ++forms_round) {                  \
      PREPARE();                                                                 \
      OK(MPI_Start(&forms_request));                                             \
      OK(MPI_Wait(&forms_request, MPI_STATUS_IGNORE));                           \
      JUDGE();                                                                   \
    }                                                                            \
    if (is_on_queue()) OK(MPIX_Match(&forms_request));                           \
    for (int forms_round = 0; is_on_queue() && forms_round < 2; ++forms_round) { \
      PREPARE();                                                                 \
      run_on_queue(&forms_request);                                              \
      JUDGE();                                                                   \
    }                                                                            \
    OK(MPI_Request_free(&forms_request));                                        \
  } while (0)

#define SMALL_FORMS(PREPARE, JUDGE, NAME, INAME, ...) \
  THREE_FORMS(PREPARE, JUDGE, MPI_##NAME, MPI_##INAME, MPI_##NAME##_init, __VA_ARGS__)
#define LARGE_FORMS(PREPARE, JUDGE, NAME, INAME, ...) \
  THREE_FORMS(PREPARE, JUDGE, MPI_##NAME##_c, MPI_##INAME##_c, MPI_##NAME##_init_c, __VA_ARGS__)
/* For calls whose counts are no arrays. */
#define ALL_FORMS(PREPARE, JUDGE, NAME, INAME, ...)        \
  do {                                                     \
    SMALL_FORMS(PREPARE, JUDGE, NAME, INAME, __VA_ARGS__); \
    LARGE_FORMS(PREPARE, JUDGE, NAME, INAME, __VA_ARGS__); \
  } while (0)

#endif /* FERRY_TESTS_MPI_RANKS_FORMS_H_ */
