/* Waits: plain stores of a neighbour are seen, sleeping takes no core, masks count, a wait for
 * nothing returns, and of several variables that hold none starves. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/shmem/ranks/check.h"

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* By a pointer, as the language has it, if the PE is local: no call of OpenSHMEM tells anybody. */
static void store(int* word, int value, int pe) {
  int* const theirs = shmem_ptr(word, pe);
  CHECK((theirs != NULL) == is_local(pe));
  if (theirs != NULL) {
    *theirs = value;
  } else {
    shmem_int_p(word, value, pe);
  }
}

static void check_plain_stores(int* word) {
  for (int round = 1; round < 200; ++round) {
    store(word, round, after);
    shmem_int_wait_until(word, SHMEM_CMP_EQ, round);
    shmem_barrier_all();
  }
}

/* The last PE makes the others wait for a second. */
static void check_sleep(int* word) {
  *word = 0;
  shmem_barrier_all();
  if (me == pes - 1) {
    const struct timespec second = {1, 0};
    nanosleep(&second, NULL); /* the time that the others are to sleep through */
    for (int pe = 0; pe < pes - 1; ++pe) store(word, 1, pe);
  } else {
    const double before_it = cpu_seconds();
    shmem_int_wait_until(word, SHMEM_CMP_NE, 0);
    const double taken = cpu_seconds() - before_it;
    if (taken > 0.1) fprintf(stderr, "a wait of a second took %g s of a core\n", taken);
    CHECK(taken <= 0.1);
  }
  shmem_barrier_all();
}

static void check_forms(int* words) {
  int status[4] = {0, 1, 0, 0};
  size_t indices[4];
  for (int i = 0; i < 4; ++i) words[i] = 0;
  shmem_barrier_all();
  CHECK(shmem_int_test_any(words, 4, status, SHMEM_CMP_EQ, 9) == SIZE_MAX);
  CHECK(shmem_int_test_all(words, 4, status, SHMEM_CMP_EQ, 9) == 0);
  CHECK(shmem_int_test_some(words, 4, indices, status, SHMEM_CMP_EQ, 9) == 0);
  shmem_barrier_all();
  shmem_int_p(words + 1, 9, after); /* masked */
  shmem_int_p(words + 2, 9, after);
  CHECK(shmem_int_wait_until_any(words, 4, status, SHMEM_CMP_EQ, 9) == 2);
  CHECK(shmem_int_wait_until_some(words, 4, indices, status, SHMEM_CMP_EQ, 9) == 1);
  CHECK(indices[0] == 2);
  shmem_barrier_all();
  shmem_int_p(words + 0, 8, after);
  shmem_int_p(words + 3, 11, after);
  const int wanted[4] = {8, 0, 9, 11};
  shmem_int_wait_until_all_vector(words, 4, status, SHMEM_CMP_EQ, wanted);
  CHECK(shmem_int_test_all_vector(words, 4, status, SHMEM_CMP_EQ, wanted) == 1);
  int masked[4] = {1, 1, 1, 1};
  CHECK(shmem_int_wait_until_any(words, 4, masked, SHMEM_CMP_LT, 0) == SIZE_MAX);
  CHECK(shmem_int_wait_until_some(words, 4, indices, masked, SHMEM_CMP_LT, 0) == 0);
  shmem_int_wait_until_all(words, 4, masked, SHMEM_CMP_LT, 0);
  shmem_int_wait_until_all(words, 0, NULL, SHMEM_CMP_LT, 0);
  CHECK(shmem_int_test(words, SHMEM_CMP_GE, 8) && !shmem_int_test(words, SHMEM_CMP_GT, 8));
  shmem_barrier_all();
}

/* What a call finds in each of two arrays that are watched in turn. */
#define CALL_BOTH(call, values)                                                       \
  do {                                                                                \
    const size_t first = call(words, nelems, status, SHMEM_CMP_EQ, values);           \
    const size_t second = call(words + nelems, nelems, status, SHMEM_CMP_EQ, values); \
    CHECK(first < nelems && second < nelems);                                         \
    ++found[first];                                                                   \
    ++found[nelems + second];                                                         \
  } while (0)

/* All variables hold all the time: a series of calls must return each of them, be it the only one
 * or one of many, by any form. Those that are masked never. */
static void check_that_none_starves(size_t nelems, const int* status) {
  enum { kForms = 4 };
  long* const words = shmem_malloc(2 * nelems * sizeof(long));
  long* const wanted = malloc(nelems * sizeof(long));
  for (size_t i = 0; i < 2 * nelems; ++i) words[i] = 7;
  for (size_t i = 0; i < nelems; ++i) wanted[i] = 7;
  for (int form = 0; form < kForms; ++form) {
    size_t* const found = calloc(2 * nelems, sizeof(size_t));
    for (size_t i = 0; i < 5 * nelems; ++i) {
      if (form == 0) CALL_BOTH(shmem_long_test_any, 7);
      if (form == 1) CALL_BOTH(shmem_long_wait_until_any, 7);
      if (form == 2) CALL_BOTH(shmem_long_test_any_vector, wanted);
      if (form == 3) CALL_BOTH(shmem_long_wait_until_any_vector, wanted);
    }
    for (size_t i = 0; i < 2 * nelems; ++i) {
      const int is_masked = status != NULL && status[i % nelems] != 0;
      CHECK(is_masked ? found[i] == 0 : found[i] != 0);
    }
    free(found);
  }
  free(wanted);
  shmem_free(words);
}

int main(void) {
  begin();
  const int some_masked[8] = {1, 0, 0, 1, 1, 1, 0, 1};
  check_that_none_starves(1, NULL);
  check_that_none_starves(2, NULL);
  check_that_none_starves(3, NULL);
  check_that_none_starves(8, some_masked);
  check_that_none_starves(100, NULL);
  int* const words = shmem_calloc(4, sizeof(int));
  check_plain_stores(words);
  check_forms(words);
  check_sleep(words);
  return end_well();
}
