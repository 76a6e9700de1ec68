/* As families.h: collectives of both PEs. */
#ifndef FERRY_TESTS_SHMEM_NAMES_FAMILIES_TOGETHER_H_
#define FERRY_TESTS_SHMEM_NAMES_FAMILIES_TOGETHER_H_

#include "tests/shmem/names/families.h"

/* ---- Data ---- */

#define TO(T) ((T*)(void*)dest_arena)
#define FROM(T) ((T*)(void*)source_arena)

#define BROADCAST(name, function, T, bytes)                       \
  CASE(name) {                                                    \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), 3, 1) == 0); \
    settle();                                                     \
    CHECK(holds(dest_arena, 1, 0, 3, bytes));                     \
    CHECK(untouched(dest_arena, 3 * (bytes)));                    \
  }

/* PE 0 has one element, PE 1 has two; then PE 0 has none. */
#define COLLECT(name, function, T, bytes)                                    \
  CASE(name) {                                                               \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), me == 0 ? 1 : 2) == 0); \
    CHECK(holds(dest_arena, 0, 0, 1, bytes));                                \
    CHECK(holds(AT(void, dest_arena, 1, bytes), 1, 0, 2, bytes));            \
    CHECK(untouched(dest_arena, 3 * (bytes)));                               \
    settle();                                                                \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), me == 0 ? 0 : 2) == 0); \
    CHECK(holds(dest_arena, 1, 0, 2, bytes));                                \
  }

#define FCOLLECT(name, function, T, bytes)                        \
  CASE(name) {                                                    \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), 2) == 0);    \
    CHECK(holds(dest_arena, 0, 0, 2, bytes));                     \
    CHECK(holds(AT(void, dest_arena, 2, bytes), 1, 0, 2, bytes)); \
    CHECK(untouched(dest_arena, 4 * (bytes)));                    \
  }

#define ALLTOALL(name, function, T, bytes)                             \
  CASE(name) {                                                         \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), 2) == 0);         \
    CHECK(holds(dest_arena, 0, 2 * me, 2, bytes));                     \
    CHECK(holds(AT(void, dest_arena, 2, bytes), 1, 2 * me, 2, bytes)); \
    CHECK(untouched(dest_arena, 4 * (bytes)));                         \
  }

/* Element k of the block of PE j lies at (2 * j + k) * 2 in dest and at (2 * j + k) * 3 in source.
 */
#define CHECK_ALLTOALLS(bytes)                                                       \
  for (int i = 0; i < 4; ++i) {                                                      \
    const int from = (2 * me + i % 2) * 3;                                           \
    CHECK(holds(AT(void, dest_arena, 2 * i, bytes), i / 2, (size_t)from, 1, bytes)); \
    CHECK(dest_arena[(2 * i + 1) * (bytes)] == kCanary);                             \
  }                                                                                  \
  CHECK(untouched(dest_arena, 7 * (bytes)))

#define ALLTOALLS(name, function, T, bytes)                          \
  CASE(name) {                                                       \
    CHECK(function(SHMEM_TEAM_WORLD, TO(T), FROM(T), 2, 3, 2) == 0); \
    CHECK_ALLTOALLS(bytes);                                          \
  }

/* The same of an active set, PEs 0 and 1; the root's own dest is left alone. */
#define ACTIVE_SET 0, 0, 2

#define OLD_BROADCAST(name, function, T, bytes)                                    \
  CASE(name) {                                                                     \
    function(TO(T), FROM(T), 3, 1, ACTIVE_SET, sync_array);                        \
    settle();                                                                      \
    CHECK(me == 1 ? untouched(dest_arena, 0) : holds(dest_arena, 1, 0, 3, bytes)); \
    CHECK(untouched(dest_arena, 3 * (bytes)));                                     \
  }

#define OLD_COLLECT(name, function, T, bytes)                          \
  CASE(name) {                                                         \
    function(TO(T), FROM(T), me == 0 ? 1 : 2, ACTIVE_SET, sync_array); \
    CHECK(holds(dest_arena, 0, 0, 1, bytes));                          \
    CHECK(holds(AT(void, dest_arena, 1, bytes), 1, 0, 2, bytes));      \
    CHECK(untouched(dest_arena, 3 * (bytes)));                         \
  }

#define OLD_FCOLLECT(name, function, T, bytes)                    \
  CASE(name) {                                                    \
    function(TO(T), FROM(T), 2, ACTIVE_SET, sync_array);          \
    CHECK(holds(dest_arena, 0, 0, 2, bytes));                     \
    CHECK(holds(AT(void, dest_arena, 2, bytes), 1, 0, 2, bytes)); \
    CHECK(untouched(dest_arena, 4 * (bytes)));                    \
  }

#define OLD_ALLTOALL(name, function, T, bytes)                         \
  CASE(name) {                                                         \
    function(TO(T), FROM(T), 2, ACTIVE_SET, sync_array);               \
    CHECK(holds(dest_arena, 0, 2 * me, 2, bytes));                     \
    CHECK(holds(AT(void, dest_arena, 2, bytes), 1, 2 * me, 2, bytes)); \
    CHECK(untouched(dest_arena, 4 * (bytes)));                         \
  }

#define OLD_ALLTOALLS(name, function, T, bytes)                \
  CASE(name) {                                                 \
    function(TO(T), FROM(T), 2, 3, 2, ACTIVE_SET, sync_array); \
    CHECK_ALLTOALLS(bytes);                                    \
  }

/* ---- Reductions ---- */
/* Operands show a wrong width or sign: the ordered ones are negative where T is signed and huge
 * where it is not; sums and products of integers reach into the highest bits, and fit. */
#define ORDERED(T, pe, i) ((T)((pe) == (i) % 2 ? -5 - (i) : 7 * (i)))
#define TERM(T, pe, i) ((T)((1ul << (8 * sizeof(T) - 3)) + 3ul * (unsigned)(pe) + (unsigned)(i)))
#define FACTOR(T, pe, i) ((T)((pe) == 0 ? 3ul + (unsigned)(i) : 1ul << (8 * sizeof(T) - 5)))

#define AND_OF(a, b) ((a) & (b))
#define OR_OF(a, b) ((a) | (b))
#define XOR_OF(a, b) ((a) ^ (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define SUM_OF(a, b) ((a) + (b))
#define PROD_OF(a, b) ((a) * (b))

#define PREPARE(T, value)       \
  T* to = TO(T);                \
  T* from = FROM(T);            \
  for (int i = 0; i < 3; ++i) { \
    from[i] = value(T, me, i);  \
  }                             \
  settle()

#define CHECK_REDUCED(T, place, value, combined)  \
  for (int i = 0; i < 3; ++i) {                   \
    const T of_0 = value(T, 0, i);                \
    const T of_1 = value(T, 1, i);                \
    CHECK((place)[i] == (T)combined(of_0, of_1)); \
  }

#define REDUCE(name, function, T, value, combined)         \
  CASE(name) {                                             \
    PREPARE(T, value);                                     \
    CHECK(function(SHMEM_TEAM_WORLD, to, from, 3) == 0);   \
    CHECK_REDUCED(T, to, value, combined)                  \
    CHECK(untouched(dest_arena, 3 * sizeof(T)));           \
    CHECK(function(SHMEM_TEAM_WORLD, from, from, 3) == 0); \
    CHECK_REDUCED(T, from, value, combined)                \
  }

#define TO_ALL(name, function, T, value, combined)         \
  CASE(name) {                                             \
    T* work = (T*)(void*)(source_arena + kArenaBytes / 2); \
    PREPARE(T, value);                                     \
    function(to, from, 3, ACTIVE_SET, work, sync_array);   \
    CHECK_REDUCED(T, to, value, combined)                  \
    CHECK(untouched(dest_arena, 3 * sizeof(T)));           \
  }

#define INSCAN(name, function, T, value)                   \
  CASE(name) {                                             \
    PREPARE(T, value);                                     \
    CHECK(function(SHMEM_TEAM_WORLD, to, from, 3) == 0);   \
    for (int i = 0; i < 3; ++i) {                          \
      const T of_0 = value(T, 0, i);                       \
      const T of_1 = value(T, 1, i);                       \
      CHECK(to[i] == (me == 0 ? of_0 : (T)(of_0 + of_1))); \
    }                                                      \
    CHECK(untouched(dest_arena, 3 * sizeof(T)));           \
  }

#define EXSCAN(name, function, T, value)                 \
  CASE(name) {                                           \
    const T zero = 0;                                    \
    PREPARE(T, value);                                   \
    CHECK(function(SHMEM_TEAM_WORLD, to, from, 3) == 0); \
    for (int i = 0; i < 3; ++i) {                        \
      CHECK(to[i] == (me == 0 ? zero : value(T, 0, i))); \
    }                                                    \
    CHECK(untouched(dest_arena, 3 * sizeof(T)));         \
  }

#endif /* FERRY_TESTS_SHMEM_NAMES_FAMILIES_TOGETHER_H_ */
