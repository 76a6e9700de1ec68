/* A kernel that asks ferryd through a ring (ferry/device/ring.h): for benchmarks and tests of real
 * and emulated devices. Programs write their own. All arguments are of 64 bits, as in kernels.h. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_RING_KERNELS_H
#define FERRY_GPU_BACKENDS_DEVICE_RING_KERNELS_H

#include "ferry/device/ring.h"
#include "gpu_backends/device/control.h"

/* `askers` threads, or as many turns of fewer ones, each of which makes `times` requests, one after
 * the other's answer, to the completion of its number: adding 1 to the counter there, or, with
 * region 0, nops. `producers`: as of ferry_device_ring_open_with. Adds to *failures the requests
 * that had another status than 0. */
FERRY_DEVICE_KERNEL ferry_ring_ask(const ferry_device_word* control, ferry_device_word* address,
                                   ferry_device_word* producers, ferry_device_u64 region,
                                   ferry_device_u64 offset, ferry_device_u64 askers,
                                   ferry_device_u64 times, ferry_device_word* failures) {
  const ferry_device_ring ring = ferry_device_ring_open_with(address, producers);
  ferry_device_place place;
  const ferry_device_u32 kind = region == 0 ? FERRY_DEVICE_RING_NOP : FERRY_DEVICE_RING_COUNTER_ADD;
  ferry_device_u64 asker;
  place.region = (ferry_device_u32)region;
  place.reserved = 0;
  place.offset = offset;
  if (askers > ring.completion_count) {
    askers = ring.completion_count;
  }
  for (asker = ferry_device_thread(); asker < askers; asker += ferry_device_thread_count()) {
    ferry_device_u64 i;
    for (i = 0; i < times && ferry_device_goes_on(control); ++i) {
      const ferry_device_u32 mine = (ferry_device_u32)asker;
      const ferry_device_u64 number = ferry_device_ring_ask(ring, kind, place, 1, mine);
      if (ferry_device_ring_wait(ring, mine, number) != 0) {
        ferry_device_fetch_add(failures, 1);
      }
    }
  }
}

#endif
