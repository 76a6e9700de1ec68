/* All reductions (reduction_macros.h) but those of double precision. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_REDUCTIONS_H
#define FERRY_GPU_BACKENDS_DEVICE_REDUCTIONS_H

#include "gpu_backends/device/reduction_macros.h"

FERRY_DEVICE_REDUCE_INTEGERS(i8, ferry_device_i8, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(u8, ferry_device_u8, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(i16, ferry_device_i16, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(u16, ferry_device_u16, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(i32, ferry_device_i32, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(u32, ferry_device_u32, ferry_device_u32)
FERRY_DEVICE_REDUCE_INTEGERS(i64, ferry_device_i64, ferry_device_u64)
FERRY_DEVICE_REDUCE_INTEGERS(u64, ferry_device_u64, ferry_device_u64)
FERRY_DEVICE_REDUCE_FLOATS(f32, float)
FERRY_DEVICE_REDUCE_COMPLEX(c32, float)
FERRY_DEVICE_REDUCE_PAIRS(i16_i32, ferry_device_i16, ferry_device_i32)
FERRY_DEVICE_REDUCE_PAIRS(i32_i32, ferry_device_i32, ferry_device_i32)
FERRY_DEVICE_REDUCE_PAIRS(i64_i32, ferry_device_i64, ferry_device_i32)
FERRY_DEVICE_REDUCE_PAIRS(f32_i32, float, ferry_device_i32)
FERRY_DEVICE_REDUCE_PAIRS(f32_f32, float, float) /* MPI_2REAL */

#endif
