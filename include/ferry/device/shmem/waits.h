/* ferry/device/shmem/waits.h - waits and tests for variables in the calling PE's own symmetric
 * heap. See ferry/device/shmem.h.
 *
 *   int shmemx_device_TYPE_wait_until(d, ivar, cmp, value)    integers of 32 and 64 bits
 *   int shmemx_device_TYPE_test(d, ivar, cmp, value)          1: it compares so; 0; or -status
 *   int shmemx_device_signal_wait_until(d, sig_addr, cmp, value)
 *   int ..._wait_until_all, _test_all(d, ivars, nelems, status, cmp, value)
 *   size_t ..._wait_until_any, _test_any(d, ivars, nelems, status, cmp, value)
 *   size_t ..._wait_until_some, _test_some(d, ivars, nelems, indices, status, cmp, value)
 *   and those with _vector behind their name: `values`, a value for each variable
 *
 * All in all forms: of a group one thread looks, and all threads get its answer, at a barrier of
 * the group.
 *
 * A wait blocks until the variable compares so (SHMEM_CMP_...): _all until each has done so, _any
 * and _some until one does. Variables whose `status`, unless that is null, is not 0 do not count.
 * _any returns the index of a variable, or SIZE_MAX where there is none: of several, each in one of
 * many calls. _some writes the indices of all, and returns how many. Where they fail they return
 * SIZE_MAX, or 0, and quiet returns the error.
 *
 * The others return 0, or, if a PE of the team has died by then, its error; what was stored before
 * the death counts. Stores before the one that ends a wait are visible after the wait. */
#ifndef FERRY_DEVICE_SHMEM_WAITS_H
#define FERRY_DEVICE_SHMEM_WAITS_H

#include "ferry/device/atomics.h"
#include "ferry/device/bytes.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

#ifndef SHMEM_CMP_EQ
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6
#endif

/* ---- The variables of a wait ---- */

#define FERRY_SHMEM_ALL 0u /* a wait for one variable is a wait for all of one */
#define FERRY_SHMEM_ANY 1u
#define FERRY_SHMEM_SOME 2u

typedef struct {
  ferry_device_u64 variables; /* addresses */
  ferry_device_u64 values;    /* one for each; 0: all have the same, which is passed beside this */
  const FERRY_DEVICE_GLOBAL int* status;
  FERRY_DEVICE_GLOBAL __SIZE_TYPE__* indices;
  ferry_device_u64 count;
  ferry_device_u32 what;
  ferry_device_u32 blocks; /* 0: a test */
  int cmp;
} ferry_shmem_watch;

FERRY_DEVICE_FUNCTION ferry_shmem_watch
ferry_shmem_watch_for(ferry_device_u32 what, ferry_device_u32 blocks, ferry_device_u64 variables,
                      ferry_device_u64 count, FERRY_DEVICE_GLOBAL __SIZE_TYPE__* indices,
                      const FERRY_DEVICE_GLOBAL int* status, int cmp, ferry_device_u64 values) {
  ferry_shmem_watch watch;
  watch.variables = variables;
  watch.values = values;
  watch.status = status;
  watch.indices = indices;
  watch.count = count;
  watch.what = what;
  watch.blocks = blocks;
  watch.cmp = cmp;
  return watch;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_counts(ferry_shmem_watch watch, ferry_device_u64 index) {
  return watch.status == (const FERRY_DEVICE_GLOBAL int*)0 || watch.status[index] == 0;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_is_empty(ferry_shmem_watch watch) {
  ferry_device_u64 i;
  for (i = 0; i < watch.count; ++i) {
    if (ferry_shmem_counts(watch, i)) {
      return 0;
    }
  }
  return 1;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_check_watch(shmemx_device_t d, ferry_shmem_watch watch,
                                                  ferry_device_u64 width) {
  const ferry_device_u64 bytes = watch.count * width;
  ferry_shmem_place own;
  if (watch.cmp < SHMEM_CMP_EQ || watch.cmp > SHMEM_CMP_LE) {
    return SHMEMX_DEVICE_ERR_ARGUMENT;
  }
  if (watch.count == 0) {
    return SHMEMX_DEVICE_SUCCESS;
  }
  if (bytes / width != watch.count || watch.variables % width != 0) {
    return SHMEMX_DEVICE_ERR_BUFFER;
  }
  own = ferry_shmem_find(d, watch.variables, bytes, d.pe);
  return own.status == SHMEMX_DEVICE_SUCCESS && own.address == 0 ? SHMEMX_DEVICE_ERR_UNSUPPORTED
                                                                 : own.status;
}

/* Returns the result of a call that has found nothing. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_nothing(ferry_shmem_watch watch) {
  return watch.what == FERRY_SHMEM_ANY ? ~(ferry_device_u64)0 : 0;
}

/* Returns the result of a call that has failed, and notes the error if the result cannot tell
 * it. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_fail_watch(shmemx_device_t d,
                                                              ferry_shmem_watch watch, int status) {
  if (watch.what == FERRY_SHMEM_ALL) {
    return (ferry_device_u64)(watch.blocks != 0 ? status : -status);
  }
  ferry_shmem_note(d, status);
  return ferry_shmem_nothing(watch);
}

/* Returns the index at which a call begins to look: the first, or, for a wait for any one, another
 * one in each call (shmem/rma/waits.cc explains the choice). Threads that call at once may begin at
 * the same index. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_first(shmemx_device_t d,
                                                         ferry_shmem_watch watch) {
  FERRY_DEVICE_GLOBAL ferry_device_u64* const turn =
      (FERRY_DEVICE_GLOBAL ferry_device_u64*)&d.table->turn;
  ferry_device_u64 own;
  if (watch.what != FERRY_SHMEM_ANY) {
    return 0;
  }
  own = ferry_device_load_relaxed(turn);
  ferry_device_store_relaxed(turn, own + 0x9e3779b97f4a7c15);
  return ((own >> 32) * watch.count) >> 32;
}

/* ---- The true ones, by width and sign ---- */

/* Defines the functions of a type. `value`: the value to compare with where there is one for all
 * variables. */
#define FERRY_SHMEM_WAITS_OF(tag, type, bits, load)                                           \
  FERRY_DEVICE_FUNCTION int ferry_shmem_holds_##tag(type found, int cmp, type value) {        \
    return cmp == SHMEM_CMP_EQ   ? found == value                                             \
           : cmp == SHMEM_CMP_NE ? found != value                                             \
           : cmp == SHMEM_CMP_GT ? found > value                                              \
           : cmp == SHMEM_CMP_GE ? found >= value                                             \
           : cmp == SHMEM_CMP_LT ? found < value                                              \
                                 : found <= value;                                            \
  }                                                                                           \
  /* Looks once at variables from `first` on. Returns, for ALL, the first that does not hold, \
   * for ANY, one that holds, for SOME, their number. */                                      \
  FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_look_##tag(                              \
      ferry_shmem_watch watch, ferry_device_u64 first, type value) {                          \
    const FERRY_DEVICE_GLOBAL ferry_device_u##bits* const variables =                         \
        (const FERRY_DEVICE_GLOBAL ferry_device_u##bits*)watch.variables;                     \
    const FERRY_DEVICE_GLOBAL ferry_device_any##bits* const values =                          \
        (const FERRY_DEVICE_GLOBAL ferry_device_any##bits*)watch.values;                      \
    ferry_device_u64 held = 0;                                                                \
    ferry_device_u64 i;                                                                       \
    for (i = first; i < watch.count; ++i) {                                                   \
      if (!ferry_shmem_counts(watch, i)) {                                                    \
        continue;                                                                             \
      }                                                                                       \
      if (ferry_shmem_holds_##tag((type)load(variables + i), watch.cmp,                       \
                                  watch.values != 0 ? (type)values[i] : value)) {             \
        if (watch.what == FERRY_SHMEM_ANY) {                                                  \
          return i;                                                                           \
        }                                                                                     \
        if (watch.what == FERRY_SHMEM_SOME && watch.indices != 0) {                           \
          watch.indices[held] = (__SIZE_TYPE__)i;                                             \
        }                                                                                     \
        ++held;                                                                               \
      } else if (watch.what == FERRY_SHMEM_ALL) {                                             \
        return i;                                                                             \
      }                                                                                       \
    }                                                                                         \
    return watch.what == FERRY_SHMEM_ALL   ? i                                                \
           : watch.what == FERRY_SHMEM_ANY ? ferry_shmem_nothing(watch)                       \
                                           : held;                                            \
  }                                                                                           \
  /* Looks once at the variables from `first` on, then at those before it. */                 \
  FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_look_round_##tag(                        \
      ferry_shmem_watch watch, ferry_device_u64 first, type value) {                          \
    const ferry_device_u64 found = ferry_shmem_look_##tag(watch, first, value);               \
    if (first == 0 || found != ferry_shmem_nothing(watch)) {                                  \
      return found;                                                                           \
    }                                                                                         \
    watch.count = first;                                                                      \
    return ferry_shmem_look_##tag(watch, 0, value);                                           \
  }                                                                                           \
  FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_wait_##tag(                              \
      shmemx_device_t d, ferry_shmem_watch watch, type value) {                               \
    const ferry_device_u64 first = ferry_shmem_first(d, watch);                               \
    ferry_device_u64 found = 0;                                                               \
    ferry_device_u32 looks;                                                                   \
    for (looks = 0;; ++looks) {                                                               \
      /* Read before the variables: stores before a death count. */                           \
      const ferry_device_u64 error =                                                          \
          looks % 64 == 63 ? ferry_device_load_acquire(&d.own->error) : 0;                    \
      if (watch.what == FERRY_SHMEM_ALL) { /* one that held need not hold now */              \
        found = ferry_shmem_look_##tag(watch, found, value);                                  \
        if (found >= watch.count) {                                                           \
          return SHMEMX_DEVICE_SUCCESS;                                                       \
        }                                                                                     \
      } else {                                                                                \
        found = ferry_shmem_look_round_##tag(watch, first, value);                            \
        if (found != ferry_shmem_nothing(watch)) {                                            \
          return found;                                                                       \
        }                                                                                     \
      }                                                                                       \
      if (error != 0) {                                                                       \
        return ferry_shmem_fail_watch(d, watch, (int)error);                                  \
      }                                                                                       \
      ferry_device_pause();                                                                   \
    }                                                                                         \
  }                                                                                           \
  /* Carries out the call; returns its result. */                                             \
  FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_watch_##tag(                             \
      shmemx_device_t d, ferry_device_u32 kind, ferry_shmem_watch watch, type value) {        \
    const ferry_device_crew crew = ferry_device_crew_of(kind);                                \
    ferry_device_u64 result = 0;                                                              \
    if (crew.thread == 0) {                                                                   \
      const int status = ferry_shmem_check_watch(d, watch, (bits) / 8);                       \
      if (status != SHMEMX_DEVICE_SUCCESS) {                                                  \
        result = ferry_shmem_fail_watch(d, watch, status);                                    \
      } else if (watch.blocks == 0) {                                                         \
        result = ferry_shmem_look_round_##tag(watch, ferry_shmem_first(d, watch), value);     \
        if (watch.what == FERRY_SHMEM_ALL) {                                                  \
          result = result >= watch.count ? 1 : 0;                                             \
        }                                                                                     \
      } else if (ferry_shmem_is_empty(watch)) { /* there is nothing to wait for */            \
        result = ferry_shmem_nothing(watch);                                                  \
      } else {                                                                                \
        result = ferry_shmem_wait_##tag(d, watch, value);                                     \
      }                                                                                       \
    }                                                                                         \
    return ferry_device_crew_broadcast(crew, result);                                         \
  }

FERRY_SHMEM_WAITS_OF(i32, ferry_device_i32, 32, ferry_device_load_acquire_32)
FERRY_SHMEM_WAITS_OF(u32, ferry_device_u32, 32, ferry_device_load_acquire_32)
FERRY_SHMEM_WAITS_OF(i64, ferry_device_i64, 64, ferry_device_load_acquire)
FERRY_SHMEM_WAITS_OF(u64, ferry_device_u64, 64, ferry_device_load_acquire)
#undef FERRY_SHMEM_WAITS_OF

/* ---- Their names ---- */

#define FERRY_SHMEM_IS_SIGNED(type) ((type)-1 < (type)1)
#define FERRY_SHMEM_WATCH(type, bits, kind, watch, value)                         \
  (FERRY_SHMEM_IS_SIGNED(type)                                                    \
       ? ferry_shmem_watch_i##bits(d, kind, watch, (ferry_device_i##bits)(value)) \
       : ferry_shmem_watch_u##bits(d, kind, watch, (ferry_device_u##bits)(value)))

/* Defines the calls. `one`, `all`, `any`, `some`: the ends of their names. */
#define FERRY_SHMEM_WAITS_NAMED(suffix, kind, type, bits, blocks, one, all, any, some)            \
  FERRY_DEVICE_FUNCTION int shmemx_device_##one##suffix(                                          \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivar, int cmp, type value) {                   \
    const ferry_shmem_watch watch =                                                               \
        ferry_shmem_watch_for(FERRY_SHMEM_ALL, blocks, (ferry_device_u64)ivar, 1, 0, 0, cmp, 0);  \
    return (int)FERRY_SHMEM_WATCH(type, bits, kind, watch, value);                                \
  }                                                                                               \
  FERRY_SHMEM_WAITS_SET(suffix, kind, type, bits, blocks, all, any, some, , type value, value, 0) \
  FERRY_SHMEM_WAITS_SET(suffix, kind, type, bits, blocks, all, any, some, _vector,                \
                        const FERRY_DEVICE_GLOBAL type* values, 0, (ferry_device_u64)values)

#define FERRY_SHMEM_WAITS_SET(suffix, kind, type, bits, blocks, all, any, some, vector, last,     \
                              value, values)                                                      \
  FERRY_DEVICE_FUNCTION int shmemx_device_##all##vector##suffix(                                  \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivars, ferry_device_u64 nelems,                \
      const FERRY_DEVICE_GLOBAL int* status, int cmp, last) {                                     \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_ALL, blocks, (ferry_device_u64)ivars, nelems, 0, status, cmp, values);        \
    return (int)FERRY_SHMEM_WATCH(type, bits, kind, watch, value);                                \
  }                                                                                               \
  FERRY_DEVICE_FUNCTION __SIZE_TYPE__ shmemx_device_##any##vector##suffix(                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivars, ferry_device_u64 nelems,                \
      const FERRY_DEVICE_GLOBAL int* status, int cmp, last) {                                     \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_ANY, blocks, (ferry_device_u64)ivars, nelems, 0, status, cmp, values);        \
    return (__SIZE_TYPE__)FERRY_SHMEM_WATCH(type, bits, kind, watch, value);                      \
  }                                                                                               \
  FERRY_DEVICE_FUNCTION __SIZE_TYPE__ shmemx_device_##some##vector##suffix(                       \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivars, ferry_device_u64 nelems,                \
      FERRY_DEVICE_GLOBAL __SIZE_TYPE__* indices, const FERRY_DEVICE_GLOBAL int* status, int cmp, \
      last) {                                                                                     \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_SOME, blocks, (ferry_device_u64)ivars, nelems, indices, status, cmp, values); \
    return (__SIZE_TYPE__)FERRY_SHMEM_WATCH(type, bits, kind, watch, value);                      \
  }

#define FERRY_SHMEM_WAITS(suffix, kind, name, type, bits)                                        \
  FERRY_SHMEM_WAITS_NAMED(suffix, kind, type, bits, 1, name##_wait_until, name##_wait_until_all, \
                          name##_wait_until_any, name##_wait_until_some)                         \
  FERRY_SHMEM_WAITS_NAMED(suffix, kind, type, bits, 0, name##_test, name##_test_all,             \
                          name##_test_any, name##_test_some)

#define FERRY_SHMEM_SIGNAL_WAIT(suffix, kind)                                    \
  FERRY_DEVICE_FUNCTION int shmemx_device_signal_wait_until##suffix(             \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr, int cmp, \
      __UINT64_TYPE__ value) {                                                   \
    return shmemx_device_uint64_wait_until##suffix(d, sig_addr, cmp, value);     \
  }

FERRY_DEVICE_FORMS(FERRY_SHMEM_WAIT_TYPES, FERRY_SHMEM_WAITS)
FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_SIGNAL_WAIT)

#undef FERRY_SHMEM_IS_SIGNED
#undef FERRY_SHMEM_WATCH
#undef FERRY_SHMEM_WAITS_NAMED
#undef FERRY_SHMEM_WAITS_SET
#undef FERRY_SHMEM_WAITS
#undef FERRY_SHMEM_SIGNAL_WAIT

#endif
