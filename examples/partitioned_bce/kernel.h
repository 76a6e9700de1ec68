/* The kernel of partitioned_bce: OpenCL C, CUDA, HIP or, for emulated devices, C++. */
#ifndef FERRY_EXAMPLES_PARTITIONED_BCE_KERNEL_H
#define FERRY_EXAMPLES_PARTITIONED_BCE_KERNEL_H

#include "ferry/device/partitioned.h"

#if defined(FERRY_DEVICE_IS_HOST)
#include <math.h>
#endif

typedef struct {
  ferry_device_u64 outputs; /* of the network, of a part */
  ferry_device_u64 parts;
  ferry_device_u64 batch; /* samples of this rank */
} bce_shape;

/* The binary cross-entropy of each output, summed over the rank's samples: of each sample,
 * -log(predicted) if the output should be 1, -log(1 - predicted) if 0. Samples follow each
 * other, each with all parts' outputs. A work-group takes one part after another, and marks each
 * as ready to be summed over the ranks. `allreduce` is null where the host sums. Returns 0, or
 * the status of the call that failed. */
FERRY_DEVICE_FUNCTION int bce_losses(bce_shape shape, const FERRY_DEVICE_GLOBAL double* predicted,
                                     const FERRY_DEVICE_GLOBAL double* wanted,
                                     FERRY_DEVICE_GLOBAL double* losses, MPIX_Prequest allreduce) {
  const ferry_device_u64 groups = ferry_device_thread_count() / ferry_device_group_size();
  const ferry_device_u64 all = shape.outputs * shape.parts;
  ferry_device_u64 part;
  int failed = MPIX_DEVICE_SUCCESS;
  for (part = ferry_device_group(); part < shape.parts; part += groups) {
    const ferry_device_u64 begin = part * shape.outputs;
    ferry_device_u64 i;
    for (i = begin + ferry_device_group_thread(); i < begin + shape.outputs;
         i += ferry_device_group_size()) {
      double loss = 0;
      ferry_device_u64 sample;
      for (sample = 0; sample < shape.batch; ++sample) {
        const double p = predicted[sample * all + i];
        const double y = wanted[sample * all + i];
        loss -= y * log(p) + (1 - y) * log(1 - p);
      }
      losses[i] = loss;
    }
    if (allreduce != FERRY_PARTITIONED_NULL) {
      const int status = MPIX_Pready_work_group((int)part, allreduce);
      failed = failed != MPIX_DEVICE_SUCCESS ? failed : status;
    }
  }
  return failed;
}

#endif
