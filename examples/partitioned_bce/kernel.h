/* The kernel of partitioned_bce: OpenCL C, CUDA, HIP or, for emulated devices, C++. */
#ifndef FERRY_EXAMPLES_PARTITIONED_BCE_KERNEL_H
#define FERRY_EXAMPLES_PARTITIONED_BCE_KERNEL_H

#include "ferry/device/groups.h"

#if defined(FERRY_DEVICE_IS_HOST)
#include <math.h>
#endif

typedef struct {
  ferry_device_u64 outputs; /* of the network, of a part */
  ferry_device_u64 parts;
  ferry_device_u64 batch; /* samples of this rank */
} bce_shape;

/* The binary cross-entropy of each output, summed over the rank's samples: of each sample,
 * -log(predicted) if the output should be 1, -log(1 - predicted) if 0. Samples follow each other,
 * each with all parts' outputs. A work-group takes one part after another, and then stores `round`
 * into its word of `done`, for the host to see. */
FERRY_DEVICE_FUNCTION void bce_losses(bce_shape shape, const FERRY_DEVICE_GLOBAL double* predicted,
                                      const FERRY_DEVICE_GLOBAL double* wanted,
                                      FERRY_DEVICE_GLOBAL double* losses,
                                      FERRY_DEVICE_GLOBAL ferry_device_u64* done,
                                      ferry_device_u64 round) {
  const ferry_device_u64 groups = ferry_device_thread_count() / ferry_device_group_size();
  const ferry_device_u64 all = shape.outputs * shape.parts;
  ferry_device_u64 part;
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
    ferry_device_fence();
    ferry_device_group_barrier();
    if (ferry_device_group_thread() == 0) {
      ferry_device_store_release(done + part, round);
    }
  }
}

#endif
