/* As families.h: waits and tests. Each PE waits on its own variables, which the other one writes.
 */
#ifndef FERRY_TESTS_SHMEM_NAMES_FAMILIES_WAITS_H_
#define FERRY_TESTS_SHMEM_NAMES_FAMILIES_WAITS_H_

#include "tests/shmem/names/families_together.h"

/* What is there before, which does not satisfy, and after, which does. */
struct Step {
  int comparison;
  int before;
  int after;
  int bound;
};
enum { kStepCount = 6 };
static const struct Step kSteps[kStepCount] = {
    {SHMEM_CMP_EQ, 1, 5, 5}, {SHMEM_CMP_NE, 5, 1, 5}, {SHMEM_CMP_GT, 5, 6, 5},
    {SHMEM_CMP_GE, 4, 5, 5}, {SHMEM_CMP_LT, 5, 4, 5}, {SHMEM_CMP_LE, 6, 5, 5},
};

#define WRITE_OTHER(T, place, value)                   \
  do {                                                 \
    const T written = (T)(value);                      \
    shmem_putmem((place), &written, sizeof(T), other); \
  } while (0)

#define WAIT_UNTIL(name, function, T)                                     \
  CASE(name) {                                                            \
    T* variable = TO(T);                                                  \
    for (int step = 0; step < kStepCount; ++step) {                       \
      *variable = (T)kSteps[step].before;                                 \
      settle();                                                           \
      WRITE_OTHER(T, variable, kSteps[step].after);                       \
      function(variable, kSteps[step].comparison, (T)kSteps[step].bound); \
      CHECK(*variable == (T)kSteps[step].after);                          \
      settle();                                                           \
    }                                                                     \
    CHECK(untouched(dest_arena, sizeof(T)));                              \
  }

/* At last: the highest bits count, and so does the sign. */
#define TEST(name, function, T)                                                       \
  CASE(name) {                                                                        \
    T* variable = TO(T);                                                              \
    for (int step = 0; step < kStepCount; ++step) {                                   \
      *variable = (T)kSteps[step].before;                                             \
      CHECK(function(variable, kSteps[step].comparison, (T)kSteps[step].bound) == 0); \
      settle();                                                                       \
      WRITE_OTHER(T, variable, kSteps[step].after);                                   \
      settle();                                                                       \
      CHECK(function(variable, kSteps[step].comparison, (T)kSteps[step].bound) == 1); \
    }                                                                                 \
    *variable = (T)(1ul << (8 * sizeof(T) - 2));                                      \
    CHECK(function(variable, SHMEM_CMP_EQ, 0) == 0);                                  \
    *variable = (T)-1;                                                                \
    CHECK(function(variable, SHMEM_CMP_LT, 1) == ((T)-1 < (T)1));                     \
    CHECK(untouched(dest_arena, sizeof(T)));                                          \
  }

/* Of four variables the second is masked. `comparison` and `bound` are SHMEM_CMP_GE, least or
 * SHMEM_CMP_EQ, each: one bound for all, or one for each. */
#define PREPARE_WAIT(T)               \
  T* v = TO(T);                       \
  const int status[4] = {0, 1, 0, 0}; \
  const T each[4] = {9, 10, 11, 12};  \
  const T least = 9;                  \
  (void)each;                         \
  (void)least;                        \
  v[0] = v[1] = v[2] = v[3] = 0;      \
  settle()

#define WAIT_ALL(name, function, T, comparison, bound)         \
  CASE(name) {                                                 \
    PREPARE_WAIT(T);                                           \
    WRITE_OTHER(T, &v[3], 12);                                 \
    WRITE_OTHER(T, &v[0], 9);                                  \
    WRITE_OTHER(T, &v[2], 11);                                 \
    function(v, 4, status, comparison, bound);                 \
    CHECK(v[0] == 9 && v[1] == 0 && v[2] == 11 && v[3] == 12); \
    function(v, 0, NULL, comparison, bound);                   \
  }

#define TEST_ALL(name, function, T, comparison, bound)     \
  CASE(name) {                                             \
    PREPARE_WAIT(T);                                       \
    WRITE_OTHER(T, &v[3], 12);                             \
    WRITE_OTHER(T, &v[0], 9);                              \
    settle();                                              \
    CHECK(function(v, 4, status, comparison, bound) == 0); \
    settle();                                              \
    WRITE_OTHER(T, &v[2], 11);                             \
    settle();                                              \
    CHECK(function(v, 4, status, comparison, bound) == 1); \
    CHECK(function(v, 4, NULL, comparison, bound) == 0);   \
    CHECK(function(v, 0, NULL, comparison, bound) == 1);   \
  }

#define WAIT_ANY(name, function, T, comparison, bound)          \
  CASE(name) {                                                  \
    PREPARE_WAIT(T);                                            \
    WRITE_OTHER(T, &v[1], 10);                                  \
    WRITE_OTHER(T, &v[2], 11);                                  \
    CHECK(function(v, 4, status, comparison, bound) == 2);      \
    CHECK(function(v, 0, NULL, comparison, bound) == SIZE_MAX); \
  }

#define TEST_ANY(name, function, T, comparison, bound)            \
  CASE(name) {                                                    \
    PREPARE_WAIT(T);                                              \
    WRITE_OTHER(T, &v[1], 10);                                    \
    settle();                                                     \
    CHECK(function(v, 4, status, comparison, bound) == SIZE_MAX); \
    CHECK(function(v, 4, NULL, comparison, bound) == 1);          \
    settle();                                                     \
    WRITE_OTHER(T, &v[2], 11);                                    \
    settle();                                                     \
    CHECK(function(v, 4, status, comparison, bound) == 2);        \
  }

#define WAIT_SOME(name, function, T, comparison, bound)             \
  CASE(name) {                                                      \
    size_t indices[4] = {7, 7, 7, 7};                               \
    PREPARE_WAIT(T);                                                \
    WRITE_OTHER(T, &v[1], 10);                                      \
    WRITE_OTHER(T, &v[2], 11);                                      \
    CHECK(function(v, 4, indices, status, comparison, bound) == 1); \
    CHECK(indices[0] == 2 && indices[1] == 7);                      \
    CHECK(function(v, 0, indices, NULL, comparison, bound) == 0);   \
  }

#define TEST_SOME(name, function, T, comparison, bound)                  \
  CASE(name) {                                                           \
    size_t indices[4] = {7, 7, 7, 7};                                    \
    PREPARE_WAIT(T);                                                     \
    WRITE_OTHER(T, &v[1], 10);                                           \
    settle();                                                            \
    CHECK(function(v, 4, indices, status, comparison, bound) == 0);      \
    CHECK(indices[0] == 7);                                              \
    settle();                                                            \
    WRITE_OTHER(T, &v[0], 9);                                            \
    WRITE_OTHER(T, &v[2], 11);                                           \
    settle();                                                            \
    CHECK(function(v, 4, indices, status, comparison, bound) == 2);      \
    CHECK(indices[0] + indices[1] == 2 && indices[0] * indices[1] == 0); \
    CHECK(indices[2] == 7);                                              \
  }

/* The old wait: until it is not that. */
#define WAIT(name, function, T)  \
  CASE(name) {                   \
    T* variable = TO(T);         \
    *variable = 3;               \
    settle();                    \
    WRITE_OTHER(T, variable, 4); \
    function(variable, 3);       \
    CHECK(*variable == 4);       \
  }

#endif /* FERRY_TESTS_SHMEM_NAMES_FAMILIES_WAITS_H_ */
