/* ferry/device/shmem/overloads.h - the calls of ferry/device/shmem.h for C++, by the types of their
 * arguments: a call's name without its TYPE, as shmem_put is OpenSHMEM's generic name in C11.
 *
 *   shmemx_device_put_work_group(d, row, row + 64, 64, next);     // long* row: ..._long_put_...
 *   shmemx_device_sum_reduce(d, sums, parts, n);
 *   shmemx_device_atomic_add(d, counter, 1, pe);
 *
 * Puts, gets, and collectives that only move data are templates: they take elements of any type
 * that may be copied byte by byte, structures too. Reductions and scans take numbers, waits and
 * atomics integers of 32 and 64 bits, as do the calls that they stand for; p, g, atomic_fetch,
 * _set and _swap float and double, too. A `value` is converted to the type of the variable. */
#ifndef FERRY_DEVICE_SHMEM_OVERLOADS_H
#define FERRY_DEVICE_SHMEM_OVERLOADS_H

#ifdef __cplusplus

#include "ferry/device/shmem/atomics.h"
#include "ferry/device/shmem/collectives.h"
#include "ferry/device/shmem/puts_gets.h"
#include "ferry/device/shmem/reductions.h"
#include "ferry/device/shmem/strided.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"
#include "ferry/device/shmem/waits.h"

/* Keeps an argument of this type from deciding what T is. */
template <typename T>
struct ferry_shmem_just {
  typedef T type;
};
template <typename T>
struct ferry_shmem_checked {
  static_assert(__is_trivially_copyable(T), "elements travel as bytes");
  enum : ferry_device_u64 { bytes = sizeof(T) };
};

/* ---- Puts, gets and collectives of data ---- */

#define FERRY_SHMEM_ANY_MOVE(name, suffix, kind, barrier)                             \
  template <typename T>                                                               \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                             \
      shmemx_device_t d, T* dest, const T* source, ferry_device_u64 nelems, int pe) { \
    const ferry_device_crew crew = ferry_device_crew_of(kind);                        \
    const int status =                                                                \
        ferry_shmem_##name(d, crew, (ferry_device_u64)dest, (ferry_device_u64)source, \
                           nelems * ferry_shmem_checked<T>::bytes, pe);               \
    barrier;                                                                          \
    return status;                                                                    \
  }

#define FERRY_SHMEM_ANY_SIGNALLED(name, suffix, kind)                                           \
  template <typename T>                                                                         \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                       \
      shmemx_device_t d, T* dest, const T* source, ferry_device_u64 nelems,                     \
      __UINT64_TYPE__* sig_addr, ferry_device_u64 signal, int sig_op, int pe) {                 \
    return ferry_shmem_##name(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,            \
                              (ferry_device_u64)source, nelems * ferry_shmem_checked<T>::bytes, \
                              (ferry_device_u64)sig_addr, signal, sig_op, pe);                  \
  }

#define FERRY_SHMEM_ANY_STRIDED(call, suffix, kind, there)                                     \
  template <typename T>                                                                        \
  FERRY_DEVICE_FUNCTION int shmemx_device_ib##call##suffix(                                    \
      shmemx_device_t d, T* dest, const T* source, __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst, \
      ferry_device_u64 bsize, ferry_device_u64 nblocks, int pe) {                              \
    static_assert(sizeof(T) <= 16, "elements that lie apart have 16 bytes at most");           \
    const ferry_device_crew crew = ferry_device_crew_of(kind);                                 \
    const int is_asked = ferry_shmem_asks_for(d, (ferry_device_u64)(there), pe);               \
    const int mark = is_asked ? ferry_shmem_mark(d, crew, 0) : SHMEMX_DEVICE_SUCCESS;          \
    int status;                                                                                \
    const ferry_shmem_blocks blocks =                                                          \
        ferry_shmem_blocks_of((ferry_device_u64)dst, (ferry_device_u64)sst, bsize, nblocks,    \
                              ferry_shmem_checked<T>::bytes, &status);                         \
    if (status == SHMEMX_DEVICE_SUCCESS) {                                                     \
      status = ferry_shmem_begin_##call##_blocks(d, crew, (ferry_device_u64)dest,              \
                                                 (ferry_device_u64)source, blocks, pe);        \
    }                                                                                          \
    return ferry_shmem_end_blocks(d, crew, is_asked, mark, status, pe);                        \
  }                                                                                            \
  template <typename T>                                                                        \
  FERRY_DEVICE_FUNCTION int shmemx_device_i##call##suffix(                                     \
      shmemx_device_t d, T* dest, const T* source, __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst, \
      ferry_device_u64 nelems, int pe) {                                                       \
    return shmemx_device_ib##call##suffix(d, dest, source, dst, sst, 1, nelems, pe);           \
  }

#define FERRY_SHMEM_ANY_COLLECTIVE(name, suffix, kind)                                           \
  template <typename T>                                                                          \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, T* dest, const T* source, ferry_device_u64 nelems) {                    \
    return ferry_shmem_##name(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,             \
                              (ferry_device_u64)source, nelems * ferry_shmem_checked<T>::bytes); \
  }

#define FERRY_SHMEM_ANY_DATA(suffix, kind)                                                         \
  FERRY_SHMEM_ANY_MOVE(put, suffix, kind, ferry_device_crew_barrier(crew))                         \
  FERRY_SHMEM_ANY_MOVE(get, suffix, kind, ferry_device_crew_barrier(crew))                         \
  FERRY_SHMEM_ANY_MOVE(put_nbi, suffix, kind, (void)0)                                             \
  FERRY_SHMEM_ANY_MOVE(get_nbi, suffix, kind, (void)0)                                             \
  FERRY_SHMEM_ANY_SIGNALLED(put_signal, suffix, kind)                                              \
  FERRY_SHMEM_ANY_SIGNALLED(put_signal_nbi, suffix, kind)                                          \
  FERRY_SHMEM_ANY_STRIDED(put, suffix, kind, dest)                                                 \
  FERRY_SHMEM_ANY_STRIDED(get, suffix, kind, source)                                               \
  FERRY_SHMEM_ANY_COLLECTIVE(fcollect, suffix, kind)                                               \
  FERRY_SHMEM_ANY_COLLECTIVE(collect, suffix, kind)                                                \
  FERRY_SHMEM_ANY_COLLECTIVE(alltoall, suffix, kind)                                               \
  template <typename T>                                                                            \
  FERRY_DEVICE_FUNCTION int shmemx_device_broadcast##suffix(                                       \
      shmemx_device_t d, T* dest, const T* source, ferry_device_u64 nelems, int PE_root) {         \
    return ferry_shmem_broadcast(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,            \
                                 (ferry_device_u64)source, nelems * ferry_shmem_checked<T>::bytes, \
                                 PE_root);                                                         \
  }                                                                                                \
  template <typename T>                                                                            \
  FERRY_DEVICE_FUNCTION int shmemx_device_alltoalls##suffix(                                       \
      shmemx_device_t d, T* dest, const T* source, __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst,     \
      ferry_device_u64 nelems) {                                                                   \
    static_assert(sizeof(T) <= 16, "elements that lie apart have 16 bytes at most");               \
    return ferry_shmem_alltoalls(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,            \
                                 (ferry_device_u64)source, (ferry_device_u64)dst,                  \
                                 (ferry_device_u64)sst, nelems, ferry_shmem_checked<T>::bytes);    \
  }

FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_ANY_DATA)

/* ---- Calls that compute ---- */

/* The types of C++, each once: M(name, type). */
#define FERRY_SHMEM_OWN_INTEGERS(M) \
  M(schar, signed char)             \
  M(uchar, unsigned char)           \
  M(short, short)                   \
  M(ushort, unsigned short)         \
  M(int, int)                       \
  M(uint, unsigned int)             \
  M(long, long)                     \
  M(ulong, unsigned long)           \
  M(longlong, long long)            \
  M(ulonglong, unsigned long long)
#define FERRY_SHMEM_OWN_WORDS(M) \
  M(int, int)                    \
  M(uint, unsigned int)          \
  M(long, long)                  \
  M(ulong, unsigned long)        \
  M(longlong, long long)         \
  M(ulonglong, unsigned long long)
#define FERRY_SHMEM_OWN_REALS(M) M(float, float) M(double, double)

#define FERRY_SHMEM_OWN_SINGLE(name, type)                                                        \
  FERRY_DEVICE_FUNCTION void shmemx_device_p(shmemx_device_t d, type* dest, type value, int pe) { \
    shmemx_device_##name##_p(d, dest, value, pe);                                                 \
  }                                                                                               \
  FERRY_DEVICE_FUNCTION type shmemx_device_g(shmemx_device_t d, const type* source, int pe) {     \
    return shmemx_device_##name##_g(d, source, pe);                                               \
  }
FERRY_SHMEM_OWN_INTEGERS(FERRY_SHMEM_OWN_SINGLE)
FERRY_SHMEM_OWN_REALS(FERRY_SHMEM_OWN_SINGLE)
FERRY_SHMEM_OWN_SINGLE(char, char)

#define FERRY_SHMEM_OWN_CHANGE(name, type, call)                                             \
  FERRY_DEVICE_FUNCTION void shmemx_device_##call(shmemx_device_t d, type* dest, type value, \
                                                  int pe) {                                  \
    shmemx_device_##name##_##call(d, dest, value, pe);                                       \
  }
#define FERRY_SHMEM_OWN_FETCHING(name, type, call)                                           \
  FERRY_DEVICE_FUNCTION type shmemx_device_##call(shmemx_device_t d, type* dest, type value, \
                                                  int pe) {                                  \
    return shmemx_device_##name##_##call(d, dest, value, pe);                                \
  }
#define FERRY_SHMEM_OWN_ATOMICS_OF_ALL(name, type)                                             \
  FERRY_DEVICE_FUNCTION type shmemx_device_atomic_fetch(shmemx_device_t d, const type* source, \
                                                        int pe) {                              \
    return shmemx_device_##name##_atomic_fetch(d, source, pe);                                 \
  }                                                                                            \
  FERRY_SHMEM_OWN_CHANGE(name, type, atomic_set)                                               \
  FERRY_SHMEM_OWN_FETCHING(name, type, atomic_swap)
#define FERRY_SHMEM_OWN_ATOMICS(name, type)                                                     \
  FERRY_DEVICE_FUNCTION type shmemx_device_atomic_compare_swap(shmemx_device_t d, type* dest,   \
                                                               type cond, type value, int pe) { \
    return shmemx_device_##name##_atomic_compare_swap(d, dest, cond, value, pe);                \
  }                                                                                             \
  FERRY_DEVICE_FUNCTION type shmemx_device_atomic_fetch_inc(shmemx_device_t d, type* dest,      \
                                                            int pe) {                           \
    return shmemx_device_##name##_atomic_fetch_inc(d, dest, pe);                                \
  }                                                                                             \
  FERRY_DEVICE_FUNCTION void shmemx_device_atomic_inc(shmemx_device_t d, type* dest, int pe) {  \
    shmemx_device_##name##_atomic_inc(d, dest, pe);                                             \
  }                                                                                             \
  FERRY_SHMEM_OWN_CHANGE(name, type, atomic_add)                                                \
  FERRY_SHMEM_OWN_CHANGE(name, type, atomic_and)                                                \
  FERRY_SHMEM_OWN_CHANGE(name, type, atomic_or)                                                 \
  FERRY_SHMEM_OWN_CHANGE(name, type, atomic_xor)                                                \
  FERRY_SHMEM_OWN_FETCHING(name, type, atomic_fetch_add)                                        \
  FERRY_SHMEM_OWN_FETCHING(name, type, atomic_fetch_and)                                        \
  FERRY_SHMEM_OWN_FETCHING(name, type, atomic_fetch_or)                                         \
  FERRY_SHMEM_OWN_FETCHING(name, type, atomic_fetch_xor)
FERRY_SHMEM_OWN_WORDS(FERRY_SHMEM_OWN_ATOMICS_OF_ALL)
FERRY_SHMEM_OWN_REALS(FERRY_SHMEM_OWN_ATOMICS_OF_ALL)
FERRY_SHMEM_OWN_WORDS(FERRY_SHMEM_OWN_ATOMICS)

/* The computations of a type, by a crew. */
template <typename T>
struct ferry_shmem_computations;
#define FERRY_SHMEM_COMPUTES(name, call)                                                           \
  FERRY_DEVICE_FUNCTION int call(shmemx_device_t d, ferry_device_crew crew, ferry_device_u64 dest, \
                                 ferry_device_u64 source, ferry_device_u64 count) {                \
    return ferry_shmem_##name##_##call(d, crew, dest, source, count);                              \
  }
#define FERRY_SHMEM_ARITHMETIC_OF(name)   \
  FERRY_SHMEM_COMPUTES(name, sum_reduce)  \
  FERRY_SHMEM_COMPUTES(name, prod_reduce) \
  FERRY_SHMEM_COMPUTES(name, min_reduce)  \
  FERRY_SHMEM_COMPUTES(name, max_reduce)  \
  FERRY_SHMEM_COMPUTES(name, sum_inscan)  \
  FERRY_SHMEM_COMPUTES(name, sum_exscan)
#define FERRY_SHMEM_NUMBERS(name, type)   \
  template <>                             \
  struct ferry_shmem_computations<type> { \
    FERRY_SHMEM_ARITHMETIC_OF(name)       \
  };
#define FERRY_SHMEM_BITS(name, type)       \
  template <>                              \
  struct ferry_shmem_computations<type> {  \
    FERRY_SHMEM_ARITHMETIC_OF(name)        \
    FERRY_SHMEM_COMPUTES(name, and_reduce) \
    FERRY_SHMEM_COMPUTES(name, or_reduce)  \
    FERRY_SHMEM_COMPUTES(name, xor_reduce) \
  };
/* OpenSHMEM's bitwise reductions have names of a size for signed integers. */
FERRY_SHMEM_BITS(int8, signed char)
FERRY_SHMEM_BITS(uchar, unsigned char)
FERRY_SHMEM_BITS(int16, short)
FERRY_SHMEM_BITS(ushort, unsigned short)
FERRY_SHMEM_BITS(int32, int)
FERRY_SHMEM_BITS(uint, unsigned int)
FERRY_SHMEM_BITS(int64, long)
FERRY_SHMEM_BITS(ulong, unsigned long)
FERRY_SHMEM_BITS(int64, long long)
FERRY_SHMEM_BITS(ulonglong, unsigned long long)
FERRY_SHMEM_NUMBERS(char, char)
FERRY_SHMEM_NUMBERS(float, float)
FERRY_SHMEM_NUMBERS(double, double)
static_assert(sizeof(long) == 8, "long is int64's type");

#define FERRY_SHMEM_ANY_COMPUTATION(call, suffix, kind)                                            \
  template <typename T>                                                                            \
  FERRY_DEVICE_FUNCTION int shmemx_device_##call##suffix(                                          \
      shmemx_device_t d, T* dest, const T* source, ferry_device_u64 nreduce) {                     \
    return ferry_shmem_computations<T>::call(                                                      \
        d, ferry_device_crew_of(kind), (ferry_device_u64)dest, (ferry_device_u64)source, nreduce); \
  }
#define FERRY_SHMEM_ANY_COMPUTATIONS(suffix, kind)       \
  FERRY_SHMEM_ANY_COMPUTATION(sum_reduce, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(prod_reduce, suffix, kind) \
  FERRY_SHMEM_ANY_COMPUTATION(min_reduce, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(max_reduce, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(and_reduce, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(or_reduce, suffix, kind)   \
  FERRY_SHMEM_ANY_COMPUTATION(xor_reduce, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(sum_inscan, suffix, kind)  \
  FERRY_SHMEM_ANY_COMPUTATION(sum_exscan, suffix, kind)
FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_ANY_COMPUTATIONS)

/* ---- Waits and tests ---- */

template <typename T>
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_watch_any(shmemx_device_t d,
                                                             ferry_device_u32 kind,
                                                             ferry_shmem_watch watch, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "waits are for integers of 32 and 64 bits");
  static_assert((T)0.5 == (T)0, "waits are for integers");
  if (sizeof(T) == 4) {
    return (T)-1 < (T)1 ? ferry_shmem_watch_i32(d, kind, watch, (ferry_device_i32)value)
                        : ferry_shmem_watch_u32(d, kind, watch, (ferry_device_u32)value);
  }
  return (T)-1 < (T)1 ? ferry_shmem_watch_i64(d, kind, watch, (ferry_device_i64)value)
                      : ferry_shmem_watch_u64(d, kind, watch, (ferry_device_u64)value);
}

#define FERRY_SHMEM_ANY_WATCHES(verb, suffix, kind, blocks, vector, last, value, values)          \
  template <typename T>                                                                           \
  FERRY_DEVICE_FUNCTION int shmemx_device_##verb##_all##vector##suffix(                           \
      shmemx_device_t d, T* ivars, ferry_device_u64 nelems, const int* status, int cmp, last) {   \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_ALL, blocks, (ferry_device_u64)ivars, nelems, 0, status, cmp, values);        \
    return (int)ferry_shmem_watch_any<T>(d, kind, watch, value);                                  \
  }                                                                                               \
  template <typename T>                                                                           \
  FERRY_DEVICE_FUNCTION __SIZE_TYPE__ shmemx_device_##verb##_any##vector##suffix(                 \
      shmemx_device_t d, T* ivars, ferry_device_u64 nelems, const int* status, int cmp, last) {   \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_ANY, blocks, (ferry_device_u64)ivars, nelems, 0, status, cmp, values);        \
    return (__SIZE_TYPE__)ferry_shmem_watch_any<T>(d, kind, watch, value);                        \
  }                                                                                               \
  template <typename T>                                                                           \
  FERRY_DEVICE_FUNCTION __SIZE_TYPE__ shmemx_device_##verb##_some##vector##suffix(                \
      shmemx_device_t d, T* ivars, ferry_device_u64 nelems, __SIZE_TYPE__* indices,               \
      const int* status, int cmp, last) {                                                         \
    const ferry_shmem_watch watch = ferry_shmem_watch_for(                                        \
        FERRY_SHMEM_SOME, blocks, (ferry_device_u64)ivars, nelems, indices, status, cmp, values); \
    return (__SIZE_TYPE__)ferry_shmem_watch_any<T>(d, kind, watch, value);                        \
  }

#define FERRY_SHMEM_ANY_WAIT(verb, suffix, kind, blocks)                                          \
  template <typename T>                                                                           \
  FERRY_DEVICE_FUNCTION int shmemx_device_##verb##suffix(                                         \
      shmemx_device_t d, T* ivar, int cmp, typename ferry_shmem_just<T>::type value) {            \
    const ferry_shmem_watch watch =                                                               \
        ferry_shmem_watch_for(FERRY_SHMEM_ALL, blocks, (ferry_device_u64)ivar, 1, 0, 0, cmp, 0);  \
    return (int)ferry_shmem_watch_any<T>(d, kind, watch, value);                                  \
  }                                                                                               \
  FERRY_SHMEM_ANY_WATCHES(verb, suffix, kind, blocks, , typename ferry_shmem_just<T>::type value, \
                          value, 0)                                                               \
  FERRY_SHMEM_ANY_WATCHES(verb, suffix, kind, blocks, _vector, const T* values, 0,                \
                          (ferry_device_u64)values)

#define FERRY_SHMEM_ANY_WAITS(suffix, kind)         \
  FERRY_SHMEM_ANY_WAIT(wait_until, suffix, kind, 1) \
  FERRY_SHMEM_ANY_WAIT(test, suffix, kind, 0)
FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_ANY_WAITS)

#undef FERRY_SHMEM_ANY_MOVE
#undef FERRY_SHMEM_ANY_SIGNALLED
#undef FERRY_SHMEM_ANY_STRIDED
#undef FERRY_SHMEM_ANY_COLLECTIVE
#undef FERRY_SHMEM_ANY_DATA
#undef FERRY_SHMEM_OWN_INTEGERS
#undef FERRY_SHMEM_OWN_WORDS
#undef FERRY_SHMEM_OWN_REALS
#undef FERRY_SHMEM_OWN_SINGLE
#undef FERRY_SHMEM_OWN_CHANGE
#undef FERRY_SHMEM_OWN_FETCHING
#undef FERRY_SHMEM_OWN_ATOMICS_OF_ALL
#undef FERRY_SHMEM_OWN_ATOMICS
#undef FERRY_SHMEM_COMPUTES
#undef FERRY_SHMEM_ARITHMETIC_OF
#undef FERRY_SHMEM_NUMBERS
#undef FERRY_SHMEM_BITS
#undef FERRY_SHMEM_ANY_COMPUTATION
#undef FERRY_SHMEM_ANY_COMPUTATIONS
#undef FERRY_SHMEM_ANY_WATCHES
#undef FERRY_SHMEM_ANY_WAIT
#undef FERRY_SHMEM_ANY_WAITS

#endif /* __cplusplus */

#endif
