/* ferry/device/shmem/types.h - OpenSHMEM's names of types, and the forms that each call has: lists
 * that make the names of ferry/device/shmem.h from few implementations. */
#ifndef FERRY_DEVICE_SHMEM_TYPES_H
#define FERRY_DEVICE_SHMEM_TYPES_H

#include "ferry/device/groups.h"

/* Each list calls M(suffix, kind, name, type) for its types. */

/* and, or, xor: OpenSHMEM's reductions have them for these. */
#define FERRY_SHMEM_BITWISE_TYPES(M, suffix, kind) \
  M(suffix, kind, uchar, unsigned char)            \
  M(suffix, kind, ushort, unsigned short)          \
  M(suffix, kind, uint, unsigned int)              \
  M(suffix, kind, ulong, unsigned long)            \
  M(suffix, kind, ulonglong, ferry_device_u64)     \
  M(suffix, kind, int8, __INT8_TYPE__)             \
  M(suffix, kind, int16, __INT16_TYPE__)           \
  M(suffix, kind, int32, __INT32_TYPE__)           \
  M(suffix, kind, int64, __INT64_TYPE__)           \
  M(suffix, kind, uint8, __UINT8_TYPE__)           \
  M(suffix, kind, uint16, __UINT16_TYPE__)         \
  M(suffix, kind, uint32, __UINT32_TYPE__)         \
  M(suffix, kind, uint64, __UINT64_TYPE__)         \
  M(suffix, kind, size, __SIZE_TYPE__)

/* A device of OpenCL may lack double. */
#if !defined(__OPENCL_C_VERSION__) || defined(cl_khr_fp64)
#define FERRY_SHMEM_DOUBLE(M, suffix, kind) M(suffix, kind, double, double)
#else
#define FERRY_SHMEM_DOUBLE(M, suffix, kind)
#endif

/* The types of puts, gets, data collectives, and arithmetic reductions. */
#define FERRY_SHMEM_ALL_TYPES(M, suffix, kind) \
  FERRY_SHMEM_BITWISE_TYPES(M, suffix, kind)   \
  FERRY_SHMEM_DOUBLE(M, suffix, kind)          \
  M(suffix, kind, float, float)                \
  M(suffix, kind, char, char)                  \
  M(suffix, kind, schar, signed char)          \
  M(suffix, kind, short, short)                \
  M(suffix, kind, int, int)                    \
  M(suffix, kind, long, long)                  \
  M(suffix, kind, longlong, ferry_device_i64)  \
  M(suffix, kind, ptrdiff, __PTRDIFF_TYPE__)

/* The types of waits and tests: M(suffix, kind, name, type, bits). */
#define FERRY_SHMEM_WAIT_TYPES(M, suffix, kind)    \
  M(suffix, kind, int, int, 32)                    \
  M(suffix, kind, uint, unsigned int, 32)          \
  M(suffix, kind, int32, __INT32_TYPE__, 32)       \
  M(suffix, kind, uint32, __UINT32_TYPE__, 32)     \
  M(suffix, kind, long, long, 64)                  \
  M(suffix, kind, ulong, unsigned long, 64)        \
  M(suffix, kind, longlong, ferry_device_i64, 64)  \
  M(suffix, kind, ulonglong, ferry_device_u64, 64) \
  M(suffix, kind, int64, __INT64_TYPE__, 64)       \
  M(suffix, kind, uint64, __UINT64_TYPE__, 64)     \
  M(suffix, kind, size, __SIZE_TYPE__, 64)         \
  M(suffix, kind, ptrdiff, __PTRDIFF_TYPE__, 64)

/* Atomics, which one thread calls, have the same types: M(name, type, bits). */
#define FERRY_SHMEM_WITHOUT_FORM(M, kind, name, type, bits) M(name, type, bits)
#define FERRY_SHMEM_WORD_TYPES(M) FERRY_SHMEM_WAIT_TYPES(FERRY_SHMEM_WITHOUT_FORM, M, )

/* A list of one: for calls without a type. */
#define FERRY_SHMEM_NO_TYPE(M, suffix, kind) M(suffix, kind)

#endif
