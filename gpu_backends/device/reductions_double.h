/* The reductions (reduction_macros.h) of numbers of double precision, which not every device has:
 * they are in an image of their own. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_REDUCTIONS_DOUBLE_H
#define FERRY_GPU_BACKENDS_DEVICE_REDUCTIONS_DOUBLE_H

#include "gpu_backends/device/reduction_macros.h"

FERRY_DEVICE_REDUCE_FLOATS(f64, double)
FERRY_DEVICE_REDUCE_COMPLEX(c64, double)
FERRY_DEVICE_REDUCE_PAIRS(f64_i32, double, ferry_device_i32)
FERRY_DEVICE_REDUCE_PAIRS(f64_f64, double, double) /* MPI_2DOUBLE_PRECISION */

#endif
