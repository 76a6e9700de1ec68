/* ferry/device/shmem/reductions.h - reductions over the team of a table. See
 * ferry/device/shmem.h, and collectives.h for what all collectives have in common.
 *
 *   int shmemx_device_TYPE_sum_reduce(d, dest, source, nreduce)    in all forms
 *   and prod, min, max; and, or, xor of the types that OpenSHMEM has them for
 *
 * Each PE computes a share of the elements for all: it loads them from all PEs, in the order of the
 * PEs, and stores the result into all. So results are the same on all PEs, each element crosses a
 * link twice, and `dest` may be `source`. */
#ifndef FERRY_DEVICE_SHMEM_REDUCTIONS_H
#define FERRY_DEVICE_SHMEM_REDUCTIONS_H

#include "ferry/device/shmem/collectives.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

/* How far into `count` elements the shares of the PEs before `pe` go. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_share(shmemx_device_t d, ferry_device_u64 count,
                                                         int pe) {
  const ferry_device_u64 pes = (ferry_device_u64)d.pe_count;
  /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a team has PEs */
  const ferry_device_u64 rest = count % pes;
  const ferry_device_u64 before = (ferry_device_u64)pe;
  return count / pes * before + (before < rest ? before : rest);
}

/* The element of PE `pe`, as an lvalue. */
#define FERRY_SHMEM_ELEMENT(type, pe, offset, index) \
  (((FERRY_DEVICE_GLOBAL type*)(d.ways[pe].heaps[0] + (offset)))[index])

/* `combine` makes of a and b, both of `type`, their result. */
#define FERRY_SHMEM_REDUCTION(name, type, combine)                                             \
  FERRY_DEVICE_FUNCTION int ferry_shmem_##name(shmemx_device_t d, ferry_device_crew crew,      \
                                               ferry_device_u64 dest, ferry_device_u64 source, \
                                               ferry_device_u64 count) {                       \
    const ferry_device_u64 end = ferry_shmem_share(d, count, d.pe + 1);                        \
    const ferry_device_u64 bytes = count * sizeof(type);                                       \
    ferry_device_u64 i;                                                                        \
    int pe;                                                                                    \
    int status = ferry_shmem_check(d, dest, bytes, source, bytes);                             \
    if (status == SHMEMX_DEVICE_SUCCESS) {                                                     \
      status = ferry_shmem_meet(d, crew); /* all have their `source` */                        \
    }                                                                                          \
    if (status != SHMEMX_DEVICE_SUCCESS) {                                                     \
      return status;                                                                           \
    }                                                                                          \
    for (i = ferry_shmem_share(d, count, d.pe) + crew.thread; i < end; i += crew.count) {      \
      type a = FERRY_SHMEM_ELEMENT(type, 0, source - d.heap, i);                               \
      for (pe = 1; pe < d.pe_count; ++pe) {                                                    \
        const type b = FERRY_SHMEM_ELEMENT(type, pe, source - d.heap, i);                      \
        a = (type)(combine);                                                                   \
      }                                                                                        \
      for (pe = 0; pe < d.pe_count; ++pe) {                                                    \
        FERRY_SHMEM_ELEMENT(type, pe, dest - d.heap, i) = a;                                   \
      }                                                                                        \
    }                                                                                          \
    return ferry_shmem_meet(d, crew);                                                          \
  }

#define FERRY_SHMEM_ARITHMETIC(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCTION(name##_sum, type, a + b)         \
  FERRY_SHMEM_REDUCTION(name##_prod, type, a* b)         \
  FERRY_SHMEM_REDUCTION(name##_min, type, b < a ? b : a) \
  FERRY_SHMEM_REDUCTION(name##_max, type, a < b ? b : a)
#define FERRY_SHMEM_BITWISE(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCTION(name##_and, type, a& b)       \
  FERRY_SHMEM_REDUCTION(name##_or, type, a | b)       \
  FERRY_SHMEM_REDUCTION(name##_xor, type, a ^ b)

FERRY_SHMEM_ALL_TYPES(FERRY_SHMEM_ARITHMETIC, , )
FERRY_SHMEM_BITWISE_TYPES(FERRY_SHMEM_BITWISE, , )

/* ---- Their names ---- */

#define FERRY_SHMEM_REDUCE(suffix, kind, name, type)                                             \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##_reduce##suffix(                               \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nreduce) {                                                                \
    return ferry_shmem_##name(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,             \
                              (ferry_device_u64)source, nreduce);                                \
  }

#define FERRY_SHMEM_ARITHMETIC_REDUCE(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_sum, type)            \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_prod, type)           \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_min, type)            \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_max, type)
#define FERRY_SHMEM_BITWISE_REDUCE(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_and, type)         \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_or, type)          \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_xor, type)

FERRY_SHMEM_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_ARITHMETIC_REDUCE)
FERRY_SHMEM_FORMS(FERRY_SHMEM_BITWISE_TYPES, FERRY_SHMEM_BITWISE_REDUCE)

#undef FERRY_SHMEM_ELEMENT
#undef FERRY_SHMEM_REDUCTION
#undef FERRY_SHMEM_ARITHMETIC
#undef FERRY_SHMEM_BITWISE
#undef FERRY_SHMEM_REDUCE
#undef FERRY_SHMEM_ARITHMETIC_REDUCE
#undef FERRY_SHMEM_BITWISE_REDUCE

#endif
