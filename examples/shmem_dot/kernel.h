/* The kernel of shmem_dot: OpenCL C, CUDA, HIP or, for emulated devices, C++. */
#ifndef FERRY_EXAMPLES_SHMEM_DOT_KERNEL_H
#define FERRY_EXAMPLES_SHMEM_DOT_KERNEL_H

#include "ferry/device/shmem.h"

/* The dot product of two vectors that are spread over all PEs. Each work-group takes a share of
 * this PE's `count` elements, and adds it up with those of the same group of all PEs, by the table
 * tables[group]: so all groups are in a reduction at once. `partials` has a place for each thread,
 * `sums` one for each group, all in the symmetric heap. Returns 0, or the status of the reduction;
 * sums[group] is then this group's part of the product, on all PEs. */
FERRY_DEVICE_FUNCTION int dot_run(const FERRY_DEVICE_GLOBAL ferry_device_u64* tables,
                                  const FERRY_DEVICE_GLOBAL double* x,
                                  const FERRY_DEVICE_GLOBAL double* y, ferry_device_u64 count,
                                  FERRY_DEVICE_GLOBAL double* partials,
                                  FERRY_DEVICE_GLOBAL double* sums) {
  const ferry_device_u64 thread = ferry_device_thread();
  const ferry_device_u32 group = ferry_device_group();
  const shmemx_device_t d = shmemx_device_open((const FERRY_DEVICE_GLOBAL void*)tables[group]);
  double partial = 0;
  ferry_device_u64 i;
  for (i = thread; i < count; i += ferry_device_thread_count()) {
    partial += x[i] * y[i];
  }
  partials[thread] = partial;
  ferry_device_group_barrier();
  if (ferry_device_group_thread() == 0) {
    double sum = 0;
    for (i = 0; i < ferry_device_group_size(); ++i) {
      sum += partials[thread + i];
    }
    sums[group] = sum;
  }
  return shmemx_device_double_sum_reduce_work_group(d, sums + group, sums + group, 1);
}

#endif
