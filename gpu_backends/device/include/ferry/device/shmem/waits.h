/* ferry/device/shmem/waits.h - waits and tests of one thread for a variable in its own PE's
 * symmetric heap. See ferry/device/shmem.h.
 *
 *   int shmemx_device_TYPE_wait_until(d, ivar, cmp, value)    integers of 32 and 64 bits
 *   int shmemx_device_TYPE_test(d, ivar, cmp, value)          1: it compares so; 0; or -status
 *   int shmemx_device_signal_wait_until(d, sig_addr, cmp, value)
 *
 * A wait blocks until the variable compares so (SHMEM_CMP_...). It returns 0 then, or, if a PE of
 * the team has died by then, its error; what was stored before the death counts. What came before
 * the store that ends a wait is visible after it; threads that wait for the caller at a barrier of
 * the group see it, too. */
#ifndef FERRY_DEVICE_SHMEM_WAITS_H
#define FERRY_DEVICE_SHMEM_WAITS_H

#include "ferry/device/atomics.h"
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

/* ---- The true ones, by width and sign ---- */

#define FERRY_SHMEM_WAITS_OF(tag, type, bits, load)                                             \
  FERRY_DEVICE_FUNCTION int ferry_shmem_holds_##tag(type found, int cmp, type value) {          \
    return cmp == SHMEM_CMP_EQ   ? found == value                                               \
           : cmp == SHMEM_CMP_NE ? found != value                                               \
           : cmp == SHMEM_CMP_GT ? found > value                                                \
           : cmp == SHMEM_CMP_GE ? found >= value                                               \
           : cmp == SHMEM_CMP_LT ? found < value                                                \
                                 : found <= value;                                              \
  }                                                                                             \
  FERRY_DEVICE_FUNCTION int ferry_shmem_test_##tag(shmemx_device_t d, ferry_device_u64 ivar,    \
                                                   int cmp, type value) {                       \
    const ferry_shmem_place word = ferry_shmem_find_word(d, ivar, (bits) / 8, d.pe);            \
    if (word.status != SHMEMX_DEVICE_SUCCESS) {                                                 \
      return -word.status;                                                                      \
    }                                                                                           \
    if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {                                             \
      return -SHMEMX_DEVICE_ERR_ARGUMENT;                                                       \
    }                                                                                           \
    return ferry_shmem_holds_##tag(                                                             \
        (type)load((const FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address), cmp, value); \
  }                                                                                             \
  FERRY_DEVICE_FUNCTION int ferry_shmem_wait_##tag(shmemx_device_t d, ferry_device_u64 ivar,    \
                                                   int cmp, type value) {                       \
    ferry_device_u32 looks;                                                                     \
    for (looks = 0;; ++looks) {                                                                 \
      /* Read before the variable: what was stored before a death counts. */                    \
      const ferry_device_u64 error =                                                            \
          looks % 64 == 63 ? ferry_device_load_acquire(&d.own->error) : 0;                      \
      const int found = ferry_shmem_test_##tag(d, ivar, cmp, value);                            \
      if (found != 0) {                                                                         \
        return found > 0 ? SHMEMX_DEVICE_SUCCESS : -found;                                      \
      }                                                                                         \
      if (error != 0) {                                                                         \
        return (int)error;                                                                      \
      }                                                                                         \
      ferry_device_pause();                                                                     \
    }                                                                                           \
  }

FERRY_SHMEM_WAITS_OF(i32, ferry_device_i32, 32, ferry_device_load_acquire_32)
FERRY_SHMEM_WAITS_OF(u32, ferry_device_u32, 32, ferry_device_load_acquire_32)
FERRY_SHMEM_WAITS_OF(i64, ferry_device_i64, 64, ferry_device_load_acquire)
FERRY_SHMEM_WAITS_OF(u64, ferry_device_u64, 64, ferry_device_load_acquire)
#undef FERRY_SHMEM_WAITS_OF

/* ---- Their names ---- */

#define FERRY_SHMEM_IS_SIGNED(type) ((type)-1 < (type)1)
#define FERRY_SHMEM_WAITS(name, type, bits)                                         \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##_wait_until(                      \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivar, int cmp, type value) {     \
    const ferry_device_u64 at = (ferry_device_u64)ivar;                             \
    return FERRY_SHMEM_IS_SIGNED(type)                                              \
               ? ferry_shmem_wait_i##bits(d, at, cmp, (ferry_device_i##bits)value)  \
               : ferry_shmem_wait_u##bits(d, at, cmp, (ferry_device_u##bits)value); \
  }                                                                                 \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##_test(                            \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* ivar, int cmp, type value) {     \
    const ferry_device_u64 at = (ferry_device_u64)ivar;                             \
    return FERRY_SHMEM_IS_SIGNED(type)                                              \
               ? ferry_shmem_test_i##bits(d, at, cmp, (ferry_device_i##bits)value)  \
               : ferry_shmem_test_u##bits(d, at, cmp, (ferry_device_u##bits)value); \
  }

FERRY_SHMEM_WORD_TYPES(FERRY_SHMEM_WAITS)
#undef FERRY_SHMEM_IS_SIGNED
#undef FERRY_SHMEM_WAITS

FERRY_DEVICE_FUNCTION int shmemx_device_signal_wait_until(
    shmemx_device_t d, FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr, int cmp,
    __UINT64_TYPE__ value) {
  return ferry_shmem_wait_u64(d, (ferry_device_u64)sig_addr, cmp, value);
}

#endif
