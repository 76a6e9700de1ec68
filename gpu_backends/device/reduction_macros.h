/* Macros that define the kernels of reductions.h and reductions_double.h: to[i] = left[i] op
 * right[i], for the predefined operations of MPI (MPI 5.0, sections 6.9.2 and 6.9.4), with a kernel
 * for each type of number.
 *
 * Integers wrap; a product of complex numbers is computed by its definition; comparisons with a NaN
 * are as in C. ReductionKernel (kernel_list.h) says which operations a type has; a kernel that is
 * given another one changes nothing. Buffers are aligned to their type, and may be the same. Any
 * number of threads. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_REDUCTION_MACROS_H
#define FERRY_GPU_BACKENDS_DEVICE_REDUCTION_MACROS_H

#include "ferry/device/platform.h"
#include "gpu_backends/device/control.h"

/* The operations, in the order of ReductionOp. */
#define FERRY_DEVICE_SUM 0
#define FERRY_DEVICE_PROD 1
#define FERRY_DEVICE_MIN 2
#define FERRY_DEVICE_MAX 3
#define FERRY_DEVICE_BAND 4
#define FERRY_DEVICE_BOR 5
#define FERRY_DEVICE_BXOR 6
#define FERRY_DEVICE_LAND 7
#define FERRY_DEVICE_LOR 8
#define FERRY_DEVICE_LXOR 9
#define FERRY_DEVICE_MINLOC 10
#define FERRY_DEVICE_MAXLOC 11

#define FERRY_DEVICE_FOR_EACH(i, count)                                                           \
  for (ferry_device_u64 i = ferry_device_thread(), step = ferry_device_thread_count(); i < count; \
       i += step)

#define FERRY_DEVICE_CASE(op, value) \
  case op:                           \
    *result = (value);               \
    return 1;

/* `wide`: an unsigned type in which nothing overflows with undefined results. */
#define FERRY_DEVICE_REDUCE_INTEGERS(name, type, wide)                                      \
  FERRY_DEVICE_FUNCTION int ferry_device_reduce_##name(type a, type b, ferry_device_u64 op, \
                                                       type* result) {                      \
    switch ((int)op) {                                                                      \
      FERRY_DEVICE_CASE(FERRY_DEVICE_SUM, (type)((wide)a + (wide)b))                        \
      FERRY_DEVICE_CASE(FERRY_DEVICE_PROD, (type)((wide)a * (wide)b))                       \
      FERRY_DEVICE_CASE(FERRY_DEVICE_MIN, a < b ? a : b)                                    \
      FERRY_DEVICE_CASE(FERRY_DEVICE_MAX, a > b ? a : b)                                    \
      FERRY_DEVICE_CASE(FERRY_DEVICE_BAND, (type)(a & b))                                   \
      FERRY_DEVICE_CASE(FERRY_DEVICE_BOR, (type)(a | b))                                    \
      FERRY_DEVICE_CASE(FERRY_DEVICE_BXOR, (type)(a ^ b))                                   \
      FERRY_DEVICE_CASE(FERRY_DEVICE_LAND, (type)((a != 0) & (b != 0)))                     \
      FERRY_DEVICE_CASE(FERRY_DEVICE_LOR, (type)((a | b) != 0))                             \
      FERRY_DEVICE_CASE(FERRY_DEVICE_LXOR, (type)((a != 0) != (b != 0)))                    \
      default:                                                                              \
        return 0;                                                                           \
    }                                                                                       \
  }                                                                                         \
  FERRY_DEVICE_REDUCTION(name, type)

#define FERRY_DEVICE_REDUCE_FLOATS(name, type)                                              \
  FERRY_DEVICE_FUNCTION int ferry_device_reduce_##name(type a, type b, ferry_device_u64 op, \
                                                       type* result) {                      \
    switch ((int)op) {                                                                      \
      FERRY_DEVICE_CASE(FERRY_DEVICE_SUM, a + b)                                            \
      FERRY_DEVICE_CASE(FERRY_DEVICE_PROD, (a * b))                                         \
      FERRY_DEVICE_CASE(FERRY_DEVICE_MIN, a < b ? a : b)                                    \
      FERRY_DEVICE_CASE(FERRY_DEVICE_MAX, a > b ? a : b)                                    \
      default:                                                                              \
        return 0;                                                                           \
    }                                                                                       \
  }                                                                                         \
  FERRY_DEVICE_REDUCTION(name, type)

#define FERRY_DEVICE_REDUCE_COMPLEX(name, number)                                  \
  typedef struct {                                                                 \
    number real;                                                                   \
    number imaginary;                                                              \
  } ferry_device_type_##name;                                                      \
  FERRY_DEVICE_FUNCTION int ferry_device_reduce_##name(                            \
      ferry_device_type_##name a, ferry_device_type_##name b, ferry_device_u64 op, \
      ferry_device_type_##name* result) {                                          \
    switch ((int)op) {                                                             \
      case FERRY_DEVICE_SUM:                                                       \
        result->real = a.real + b.real;                                            \
        result->imaginary = a.imaginary + b.imaginary;                             \
        return 1;                                                                  \
      case FERRY_DEVICE_PROD:                                                      \
        result->real = a.real * b.real - a.imaginary * b.imaginary;                \
        result->imaginary = a.real * b.imaginary + a.imaginary * b.real;           \
        return 1;                                                                  \
      default:                                                                     \
        return 0;                                                                  \
    }                                                                              \
  }                                                                                \
  FERRY_DEVICE_REDUCTION(name, ferry_device_type_##name)

#define FERRY_DEVICE_REDUCTION(name, type)                                         \
  FERRY_DEVICE_KERNEL ferry_reduce_##name(                                         \
      const ferry_device_word* control, FERRY_DEVICE_GLOBAL type* to,              \
      const FERRY_DEVICE_GLOBAL type* left, const FERRY_DEVICE_GLOBAL type* right, \
      ferry_device_u64 count, ferry_device_u64 op) {                               \
    if (!ferry_device_goes_on(control)) {                                          \
      return;                                                                      \
    }                                                                              \
    FERRY_DEVICE_FOR_EACH(i, count) {                                              \
      type result;                                                                 \
      if (ferry_device_reduce_##name(left[i], right[i], op, &result)) {            \
        to[i] = result;                                                            \
      }                                                                            \
    }                                                                              \
  }

/* The extreme value, and of equal ones the lowest index. Gaps are left alone: behind the last
 * element's data the buffer may end. */
#define FERRY_DEVICE_REDUCE_PAIRS(name, value_type, index_type)                           \
  typedef struct {                                                                        \
    value_type value;                                                                     \
    index_type index;                                                                     \
  } ferry_device_type_##name;                                                             \
  FERRY_DEVICE_KERNEL ferry_reduce_##name(                                                \
      const ferry_device_word* control, FERRY_DEVICE_GLOBAL ferry_device_type_##name* to, \
      const FERRY_DEVICE_GLOBAL ferry_device_type_##name* left,                           \
      const FERRY_DEVICE_GLOBAL ferry_device_type_##name* right, ferry_device_u64 count,  \
      ferry_device_u64 op) {                                                              \
    if (!ferry_device_goes_on(control) ||                                                 \
        (op != FERRY_DEVICE_MINLOC && op != FERRY_DEVICE_MAXLOC)) {                       \
      return;                                                                             \
    }                                                                                     \
    FERRY_DEVICE_FOR_EACH(i, count) {                                                     \
      const value_type a = left[i].value;                                                 \
      const value_type b = right[i].value;                                                \
      const index_type a_index = left[i].index;                                           \
      const index_type b_index = right[i].index;                                          \
      const int before = op == FERRY_DEVICE_MAXLOC ? a > b : a < b;                       \
      const int behind = op == FERRY_DEVICE_MAXLOC ? b > a : b < a;                       \
      const int take_left = before || (!behind && a_index < b_index);                     \
      to[i].value = take_left ? a : b;                                                    \
      to[i].index = take_left ? a_index : b_index;                                        \
    }                                                                                     \
  }

#endif
