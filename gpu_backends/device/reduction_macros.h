/* Macros that define the kernels of reductions.h and reductions_double.h: to[i] = left[i] op
 * right[i], for the predefined operations of MPI (MPI 5.0, sections 6.9.2 and 6.9.4), with a kernel
 * for each type of number. A kernel also takes up to six more operands, which follow from left to
 * right, and up to seven more places for the result: `how` is the operation, and in its second and
 * third byte how many of these there are.
 *
 * Integers wrap; a product of complex numbers is computed by its definition; comparisons with a NaN
 * are as in C. ReductionKernel (kernel_list.h) says which operations a type has; a kernel that is
 * given another one changes nothing. Buffers are aligned to their type, and may be the same: an
 * element of each operand is read before that of any result is written. Any number of threads. */
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
  FERRY_DEVICE_WHOLE_ELEMENTS(name, type)                                                   \
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
  FERRY_DEVICE_WHOLE_ELEMENTS(name, type)                                                   \
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
  FERRY_DEVICE_WHOLE_ELEMENTS(name, ferry_device_type_##name)                      \
  FERRY_DEVICE_REDUCTION(name, ferry_device_type_##name)

/* The extreme value, and of equal ones the lowest index. Gaps are left alone: behind the last
 * element's data the buffer may end. */
#define FERRY_DEVICE_REDUCE_PAIRS(name, value_type, index_type)                             \
  typedef struct {                                                                          \
    value_type value;                                                                       \
    index_type index;                                                                       \
  } ferry_device_type_##name;                                                               \
  FERRY_DEVICE_FUNCTION int ferry_device_reduce_##name(                                     \
      ferry_device_type_##name a, ferry_device_type_##name b, ferry_device_u64 op,          \
      ferry_device_type_##name* result) {                                                   \
    const int before = op == FERRY_DEVICE_MAXLOC ? a.value > b.value : a.value < b.value;   \
    const int behind = op == FERRY_DEVICE_MAXLOC ? b.value > a.value : b.value < a.value;   \
    const int take_left = before || (!behind && a.index < b.index);                         \
    result->value = take_left ? a.value : b.value;                                          \
    result->index = take_left ? a.index : b.index;                                          \
    return op == FERRY_DEVICE_MINLOC || op == FERRY_DEVICE_MAXLOC;                          \
  }                                                                                         \
  FERRY_DEVICE_FUNCTION ferry_device_type_##name ferry_device_load_##name(                  \
      const FERRY_DEVICE_GLOBAL ferry_device_type_##name* from) {                           \
    ferry_device_type_##name element;                                                       \
    element.value = from->value;                                                            \
    element.index = from->index;                                                            \
    return element;                                                                         \
  }                                                                                         \
  FERRY_DEVICE_FUNCTION void ferry_device_store_##name(                                     \
      FERRY_DEVICE_GLOBAL ferry_device_type_##name* to, ferry_device_type_##name element) { \
    to->value = element.value;                                                              \
    to->index = element.index;                                                              \
  }                                                                                         \
  FERRY_DEVICE_REDUCTION(name, ferry_device_type_##name)

#define FERRY_DEVICE_WHOLE_ELEMENTS(name, type)                                               \
  FERRY_DEVICE_FUNCTION type ferry_device_load_##name(const FERRY_DEVICE_GLOBAL type* from) { \
    return *from;                                                                             \
  }                                                                                           \
  FERRY_DEVICE_FUNCTION void ferry_device_store_##name(FERRY_DEVICE_GLOBAL type* to,          \
                                                       type element) {                        \
    *to = element;                                                                            \
  }

#define FERRY_DEVICE_MORE_OPERANDS(how) ((how) >> 8 & 0xff)
#define FERRY_DEVICE_MORE_RESULTS(how) ((how) >> 16 & 0xff)

/* Two operands and one result have a loop of their own. Otherwise all operands are loaded at once,
 * for their loads not to wait for each other; one that is not there stands for the first one. */
#define FERRY_DEVICE_REDUCTION(name, type)                                                         \
  FERRY_DEVICE_KERNEL ferry_reduce_##name(                                                         \
      const ferry_device_word* control, FERRY_DEVICE_GLOBAL type* to,                              \
      const FERRY_DEVICE_GLOBAL type* left, const FERRY_DEVICE_GLOBAL type* right,                 \
      ferry_device_u64 count, ferry_device_u64 how, const FERRY_DEVICE_GLOBAL type* from2,         \
      const FERRY_DEVICE_GLOBAL type* from3, const FERRY_DEVICE_GLOBAL type* from4,                \
      const FERRY_DEVICE_GLOBAL type* from5, const FERRY_DEVICE_GLOBAL type* from6,                \
      const FERRY_DEVICE_GLOBAL type* from7, FERRY_DEVICE_GLOBAL type* to1,                        \
      FERRY_DEVICE_GLOBAL type* to2, FERRY_DEVICE_GLOBAL type* to3, FERRY_DEVICE_GLOBAL type* to4, \
      FERRY_DEVICE_GLOBAL type* to5, FERRY_DEVICE_GLOBAL type* to6,                                \
      FERRY_DEVICE_GLOBAL type* to7) {                                                             \
    const ferry_device_u64 op = how & 0xff;                                                        \
    const ferry_device_u64 operands = FERRY_DEVICE_MORE_OPERANDS(how);                             \
    const ferry_device_u64 results = FERRY_DEVICE_MORE_RESULTS(how);                               \
    if (!ferry_device_goes_on(control)) {                                                          \
      return;                                                                                      \
    }                                                                                              \
    if (operands == 0 && results == 0) {                                                           \
      FERRY_DEVICE_FOR_EACH(i, count) {                                                            \
        type result;                                                                               \
        if (ferry_device_reduce_##name(ferry_device_load_##name(left + i),                         \
                                       ferry_device_load_##name(right + i), op, &result)) {        \
          ferry_device_store_##name(to + i, result);                                               \
        }                                                                                          \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    from2 = operands > 0 ? from2 : left;                                                           \
    from3 = operands > 1 ? from3 : left;                                                           \
    from4 = operands > 2 ? from4 : left;                                                           \
    from5 = operands > 3 ? from5 : left;                                                           \
    from6 = operands > 4 ? from6 : left;                                                           \
    from7 = operands > 5 ? from7 : left;                                                           \
    FERRY_DEVICE_FOR_EACH(i, count) {                                                              \
      const type first = ferry_device_load_##name(left + i);                                       \
      const type second = ferry_device_load_##name(right + i);                                     \
      const type next2 = ferry_device_load_##name(from2 + i);                                      \
      const type next3 = ferry_device_load_##name(from3 + i);                                      \
      const type next4 = ferry_device_load_##name(from4 + i);                                      \
      const type next5 = ferry_device_load_##name(from5 + i);                                      \
      const type next6 = ferry_device_load_##name(from6 + i);                                      \
      const type next7 = ferry_device_load_##name(from7 + i);                                      \
      type result;                                                                                 \
      if (!ferry_device_reduce_##name(first, second, op, &result)) {                               \
        return;                                                                                    \
      }                                                                                            \
      for (ferry_device_u64 next = 0; next < operands; ++next) {                                   \
        type operand = next2;                                                                      \
        FERRY_DEVICE_TAKE(next == 1, next3)                                                        \
        FERRY_DEVICE_TAKE(next == 2, next4)                                                        \
        FERRY_DEVICE_TAKE(next == 3, next5)                                                        \
        FERRY_DEVICE_TAKE(next == 4, next6)                                                        \
        FERRY_DEVICE_TAKE(next == 5, next7)                                                        \
        (void)ferry_device_reduce_##name(result, operand, op, &result);                            \
      }                                                                                            \
      ferry_device_store_##name(to + i, result);                                                   \
      FERRY_DEVICE_STORE_MORE(name, results > 0, to1)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 1, to2)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 2, to3)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 3, to4)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 4, to5)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 5, to6)                                              \
      FERRY_DEVICE_STORE_MORE(name, results > 6, to7)                                              \
    }                                                                                              \
  }

#define FERRY_DEVICE_TAKE(is_next, value) \
  if (is_next) {                          \
    operand = value;                      \
  }
#define FERRY_DEVICE_STORE_MORE(name, is_there, place) \
  if (is_there) {                                      \
    ferry_device_store_##name(place + i, result);      \
  }

#endif
