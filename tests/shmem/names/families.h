/* What each family of functions has to do, in plain C. cases.py writes a line for each function:
 *   PUT(name, function, context, T, bytes)
 * `name` is for messages, `context` is nothing or WITH_CONTEXT, T the element type (void, and its
 * `bytes`, where the function's name has a size). CASE begins each; settle() is between what a PE
 * prepares, what both do, and what they look at. For C and C++. */
#ifndef FERRY_TESTS_SHMEM_NAMES_FAMILIES_H_
#define FERRY_TESTS_SHMEM_NAMES_FAMILIES_H_

#include "tests/shmem/names/case.h"

#define CASE(name) static void case_##name(void)
#define WITH_CONTEXT ctx,
/* An element of memory that may be void. */
#define AT(T, base, i, bytes) ((T*)(void*)((unsigned char*)(base) + (size_t)(i) * (bytes)))

/* ---- Puts and gets ---- */

#define PUT(name, function, context, T, bytes)                                               \
  CASE(name) {                                                                               \
    memcpy(private_arena, source_arena, kArenaBytes);                                        \
    function(context AT(T, dest_arena, 1, bytes), (const T*)(void*)private_arena, 5, other); \
    function(context AT(T, dest_arena, 9, bytes), (const T*)(void*)private_arena, 0, other); \
    settle();                                                                                \
    CHECK(holds(AT(void, dest_arena, 1, bytes), other, 0, 5, bytes));                        \
    CHECK(untouched(dest_arena, 6 * (bytes)) && dest_arena[0] == kCanary);                   \
  }

#define GET(name, function, context, T, bytes)                                                 \
  CASE(name) {                                                                                 \
    function(context AT(T, private_arena, 1, bytes), AT(T, source_arena, 2, bytes), 5, other); \
    settle();                                                                                  \
    CHECK(holds(AT(void, private_arena, 1, bytes), other, 2, 5, bytes));                       \
    CHECK(untouched(private_arena, 6 * (bytes)) && private_arena[0] == kCanary);               \
  }

#define P(name, function, context, T, value)                                             \
  CASE(name) {                                                                           \
    T* place = (T*)(void*)dest_arena + 1;                                                \
    function(context place, value(T, me, 3), other);                                     \
    settle();                                                                            \
    CHECK(*place == value(T, other, 3));                                                 \
    CHECK(untouched(dest_arena, 2 * sizeof(T)) && dest_arena[sizeof(T) - 1] == kCanary); \
  }

#define G(name, function, context, T, value)                     \
  CASE(name) {                                                   \
    T* place = (T*)(void*)source_arena + 1;                      \
    const T* readable = place;                                   \
    *place = value(T, me, 5);                                    \
    settle();                                                    \
    CHECK(function(context place, other) == value(T, other, 5)); \
    CHECK(function(context readable, me) == value(T, me, 5));    \
  }

/* The same with a place for the result. */
#define G_INTO(name, function, context, T, value) \
  CASE(name) {                                    \
    T* place = (T*)(void*)source_arena + 1;       \
    const T* readable = place;                    \
    T found[3];                                   \
    found[0] = found[1] = found[2] = (T)0;        \
    *place = value(T, me, 5);                     \
    settle();                                     \
    function(context place, other, &found[1]);    \
    CHECK(found[1] == value(T, other, 5));        \
    function(context readable, me, &found[1]);    \
    CHECK(found[1] == value(T, me, 5));           \
    CHECK(found[0] == (T)0 && found[2] == (T)0);  \
  }

#define IPUT(name, function, context, T, bytes)                                              \
  CASE(name) {                                                                               \
    size_t i;                                                                                \
    memcpy(private_arena, source_arena, kArenaBytes);                                        \
    function(context(T*)(void*) dest_arena, (const T*)(void*)private_arena, 2, 3, 4, other); \
    settle();                                                                                \
    for (i = 0; i < 4; ++i) {                                                                \
      CHECK(holds(AT(void, dest_arena, 2 * i, bytes), other, 3 * i, 1, bytes));              \
      CHECK(dest_arena[(2 * i + 1) * (bytes)] == kCanary);                                   \
    }                                                                                        \
    CHECK(untouched(dest_arena, 7 * (bytes)));                                               \
  }

#define IGET(name, function, context, T, bytes)                                                \
  CASE(name) {                                                                                 \
    size_t i;                                                                                  \
    function(context(T*)(void*) private_arena, (const T*)(void*)source_arena, 3, 2, 4, other); \
    for (i = 0; i < 4; ++i) {                                                                  \
      CHECK(holds(AT(void, private_arena, 3 * i, bytes), other, 2 * i, 1, bytes));             \
      CHECK(private_arena[(3 * i + 1) * (bytes)] == kCanary);                                  \
    }                                                                                          \
    CHECK(untouched(private_arena, 10 * (bytes)));                                             \
  }

#define IBPUT(name, function, context, T, bytes)                                                \
  CASE(name) {                                                                                  \
    size_t i;                                                                                   \
    memcpy(private_arena, source_arena, kArenaBytes);                                           \
    function(context(T*)(void*) dest_arena, (const T*)(void*)private_arena, 3, 4, 2, 3, other); \
    settle();                                                                                   \
    for (i = 0; i < 3; ++i) {                                                                   \
      CHECK(holds(AT(void, dest_arena, 3 * i, bytes), other, 4 * i, 2, bytes));                 \
      CHECK(dest_arena[(3 * i + 2) * (bytes)] == kCanary);                                      \
    }                                                                                           \
    CHECK(untouched(dest_arena, 8 * (bytes)));                                                  \
  }

#define IBGET(name, function, context, T, bytes)                                                  \
  CASE(name) {                                                                                    \
    size_t i;                                                                                     \
    function(context(T*)(void*) private_arena, (const T*)(void*)source_arena, 4, 3, 2, 3, other); \
    for (i = 0; i < 3; ++i) {                                                                     \
      CHECK(holds(AT(void, private_arena, 4 * i, bytes), other, 3 * i, 2, bytes));                \
      CHECK(private_arena[(4 * i + 2) * (bytes)] == kCanary);                                     \
    }                                                                                             \
    CHECK(untouched(private_arena, 10 * (bytes)));                                                \
  }

#define PUT_SIGNAL(name, function, context, T, bytes)                                             \
  CASE(name) {                                                                                    \
    memcpy(private_arena, source_arena, kArenaBytes);                                             \
    function(context AT(T, dest_arena, 1, bytes), (const T*)(void*)private_arena, 2, signal_word, \
             0x700000000u + (unsigned)me, SHMEM_SIGNAL_SET, other);                               \
    settle();                                                                                     \
    CHECK(*signal_word == 0x700000000u + (unsigned)other);                                        \
    CHECK(holds(AT(void, dest_arena, 1, bytes), other, 0, 2, bytes));                             \
    settle();                                                                                     \
    function(context AT(T, dest_arena, 3, bytes), AT(const T, private_arena, 2, bytes), 1,        \
             signal_word, 5, SHMEM_SIGNAL_ADD, other);                                            \
    settle();                                                                                     \
    CHECK(*signal_word == 0x700000005u + (unsigned)other);                                        \
    CHECK(holds(AT(void, dest_arena, 1, bytes), other, 0, 3, bytes));                             \
    CHECK(untouched(dest_arena, 4 * (bytes)) && dest_arena[0] == kCanary);                        \
  }

/* ---- Atomics: each PE on a word of the other's, which nobody else touches ---- */

#define AMO(name, T, value, expected, ...)                                               \
  CASE(name) {                                                                           \
    T* word = (T*)(void*)dest_arena + 1;                                                 \
    const T was = value(T, other, 1); /* at the other PE, before */                      \
    const T mine = value(T, me, 1);                                                      \
    const T operand = value(T, 2, 2); /* the same on both */                             \
    T fetched = was;                                                                     \
    *word = mine;                                                                        \
    settle();                                                                            \
    __VA_ARGS__;                                                                         \
    settle();                                                                            \
    CHECK(fetched == was);                                                               \
    CHECK(*word == (T)(expected));                                                       \
    CHECK(untouched(dest_arena, 2 * sizeof(T)) && dest_arena[sizeof(T) - 1] == kCanary); \
    (void)operand;                                                                       \
  }

/* What is there after it, by what was `mine`: by integers that wrap around. */
#define WRAPPED_SUM ((unsigned long)mine + (unsigned long)operand)
#define WRAPPED_NEXT ((unsigned long)mine + 1u)

#define FETCH(name, function, context, T, value) \
  AMO(name, T, value, mine, fetched = 0; fetched = function(context word, other))
#define SET(name, function, context, T, value) \
  AMO(name, T, value, operand, function(context word, operand, other))
#define SWAP(name, function, context, T, value) \
  AMO(name, T, value, operand, fetched = 0; fetched = function(context word, operand, other))
/* First with a condition that does not hold, which changes nothing. */
#define COMPARE_SWAP(name, function, context, T, value)                                    \
  AMO(name, T, value, operand, CHECK(function(context word, operand, mine, other) == was); \
      fetched = 0; fetched = function(context word, was, operand, other))
#define FETCH_INC(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_NEXT, fetched = 0; fetched = function(context word, other))
#define FETCH_ADD(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_SUM, fetched = 0; fetched = function(context word, operand, other))
#define FETCH_AND(name, function, context, T, value) \
  AMO(name, T, value, (mine & operand), fetched = 0; \
      fetched = function(context word, operand, other))
#define FETCH_OR(name, function, context, T, value)  \
  AMO(name, T, value, (mine | operand), fetched = 0; \
      fetched = function(context word, operand, other))
#define FETCH_XOR(name, function, context, T, value) \
  AMO(name, T, value, (mine ^ operand), fetched = 0; \
      fetched = function(context word, operand, other))
#define INC(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_NEXT, function(context word, other))
#define ADD(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_SUM, function(context word, operand, other))
#define AND(name, function, context, T, value) \
  AMO(name, T, value, (mine & operand), function(context word, operand, other))
#define OR(name, function, context, T, value) \
  AMO(name, T, value, (mine | operand), function(context word, operand, other))
#define XOR(name, function, context, T, value) \
  AMO(name, T, value, (mine ^ operand), function(context word, operand, other))

/* Nonblocking: `fetched` counts from the quiet in settle() on. */
#define FETCH_NBI(name, function, context, T, value) \
  AMO(name, T, value, mine, fetched = 0; function(context & fetched, word, other))
#define SWAP_NBI(name, function, context, T, value) \
  AMO(name, T, value, operand, fetched = 0; function(context & fetched, word, operand, other))
#define COMPARE_SWAP_NBI(name, function, context, T, value) \
  AMO(name, T, value, operand, fetched = 0; function(context & fetched, word, was, operand, other))
#define FETCH_INC_NBI(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_NEXT, fetched = 0; function(context & fetched, word, other))
#define FETCH_ADD_NBI(name, function, context, T, value) \
  AMO(name, T, value, WRAPPED_SUM, fetched = 0; function(context & fetched, word, operand, other))
#define FETCH_AND_NBI(name, function, context, T, value) \
  AMO(name, T, value, (mine & operand), fetched = 0;     \
      function(context & fetched, word, operand, other))
#define FETCH_OR_NBI(name, function, context, T, value) \
  AMO(name, T, value, (mine | operand), fetched = 0;    \
      function(context & fetched, word, operand, other))
#define FETCH_XOR_NBI(name, function, context, T, value) \
  AMO(name, T, value, (mine ^ operand), fetched = 0;     \
      function(context & fetched, word, operand, other))

#endif /* FERRY_TESTS_SHMEM_NAMES_FAMILIES_H_ */
