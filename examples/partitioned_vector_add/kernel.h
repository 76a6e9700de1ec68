/* The kernel of partitioned_vector_add: OpenCL C, CUDA, HIP or, for emulated devices, C++. */
#ifndef FERRY_EXAMPLES_PARTITIONED_VECTOR_ADD_KERNEL_H
#define FERRY_EXAMPLES_PARTITIONED_VECTOR_ADD_KERNEL_H

#include "ferry/device/partitioned.h"

/* sum = x + y, `count` elements a partition. Each work-group takes one partition after another,
 * and marks each as ready: the partition leaves while the kernel goes on. `send` is null where
 * the host sends the sum. Returns 0, or the status of the call that failed. */
FERRY_DEVICE_FUNCTION int vector_add(const FERRY_DEVICE_GLOBAL double* x,
                                     const FERRY_DEVICE_GLOBAL double* y,
                                     FERRY_DEVICE_GLOBAL double* sum, ferry_device_u64 count,
                                     int partitions, MPIX_Prequest send) {
  const int groups = (int)(ferry_device_thread_count() / ferry_device_group_size());
  int failed = MPIX_DEVICE_SUCCESS;
  int partition;
  for (partition = (int)ferry_device_group(); partition < partitions; partition += groups) {
    const ferry_device_u64 begin = (ferry_device_u64)partition * count;
    ferry_device_u64 i;
    for (i = begin + ferry_device_group_thread(); i < begin + count;
         i += ferry_device_group_size()) {
      sum[i] = x[i] + y[i];
    }
    if (send != FERRY_PARTITIONED_NULL) {
      const int status = MPIX_Pready_work_group(partition, send);
      failed = failed != MPIX_DEVICE_SUCCESS ? failed : status;
    }
  }
  return failed;
}

#endif
