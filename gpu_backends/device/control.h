/* The words by which the host reaches the kernels of one stream: in pinned memory, zero at first,
 * and kept until the stream has nothing to do any more. Once the stream is abandoned, its kernels
 * do nothing, and those that wait end. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_CONTROL_H
#define FERRY_GPU_BACKENDS_DEVICE_CONTROL_H

#include "ferry/device/platform.h"

typedef FERRY_DEVICE_GLOBAL ferry_device_u64 ferry_device_word;

#define FERRY_DEVICE_CONTROL_ABANDONED                      \
  0 /* set by the host; not 0: the stream has been given up \
     */
#define FERRY_DEVICE_CONTROL_MOVES \
  1 /* set by kernels: whether this end moves the current message */

FERRY_DEVICE_FUNCTION int ferry_device_goes_on(const ferry_device_word* control) {
  return ferry_device_load_acquire(control + FERRY_DEVICE_CONTROL_ABANDONED) == 0;
}

#endif
