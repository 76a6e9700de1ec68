/* Kernels of ring.cc. Each thread has the completion of its own number; what goes wrong is counted
 * in wrong[thread]. */
#include "ferry/device/ring_batch.h"
#include "ferry/device/ring_operations.h"

FERRY_DEVICE_FUNCTION ferry_device_u32 failed(ferry_device_ring ring, ferry_device_u32 completion,
                                              ferry_device_u64 number) {
  return ferry_device_ring_wait(ring, completion, number) == 0 ? 0 : 1;
}

/* Round trips, and additions to a counter: alone, and by one fetch-add of the whole group. Then the
 * first thread waits for those of all groups. */
FERRY_DEVICE_KERNEL ask(FERRY_DEVICE_GLOBAL void* address, ferry_device_place counter,
                        ferry_device_u64 before, ferry_device_u32 rounds,
                        FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  FERRY_DEVICE_SHARED ferry_device_u64 word;
  const ferry_device_ring ring = ferry_device_ring_open(address);
  const ferry_device_u32 mine = (ferry_device_u32)ferry_device_thread();
  const ferry_device_ring_request request =
      ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_COUNTER_ADD, counter, 1, mine);
  ferry_device_ring_request two[2];
  ferry_device_u32 found = 0;
  ferry_device_u32 round;
  two[0] = request;
  two[0].completion_region = 0;
  two[1] = request;
  for (round = 0; round < rounds; ++round) {
    ferry_device_u64 number = ferry_device_ring_nop(ring, round * 1000 + mine, mine);
    found += failed(ring, mine, number);
    found += ferry_device_ring_value(ring, mine) != round * 1000 + mine;
    number = ferry_device_ring_post_many(ring, two, 2);
    found += failed(ring, mine, number + 1);
    number = ferry_device_ring_post_work_group(ring, request, ferry_device_group_size(), &word);
    found += failed(ring, mine, number);
    number = ferry_device_ring_post_sub_group(ring, request, ferry_device_sub_group_size());
    found += failed(ring, mine, number);
  }
  ferry_device_group_barrier();
  if (mine == 0) {
    const ferry_device_u64 all = before + ferry_device_thread_count() * rounds * 4;
    found += failed(ring, 0, ferry_device_ring_await(ring, counter, all, 0));
    found += ferry_device_ring_value(ring, 0) != all;
  }
  wrong[mine] = found;
}

/* The partner's memory: a counter at `there`, 128 bytes on a signal for each of 16 groups, after 256 a
 * number for each thread. Threads add to the one, and put the other; then each group signals
 * the partner's, waits for its own signal, and looks at the numbers that have come by then. */
FERRY_DEVICE_KERNEL reach(FERRY_DEVICE_GLOBAL void* address, ferry_device_far_place there,
                          ferry_device_place source, FERRY_DEVICE_GLOBAL ferry_device_u64* own,
                          ferry_device_u64 seed, ferry_device_u64 partners_seed,
                          FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const ferry_device_ring ring = ferry_device_ring_open(address);
  const ferry_device_u32 mine = (ferry_device_u32)ferry_device_thread();
  const ferry_device_u32 group = ferry_device_group();
  ferry_device_far_place place = there;
  ferry_device_u32 found = 0;
  ferry_device_u64 number = ferry_device_ring_atomic(ring, place, FERRY_DEVICE_RING_ADD, 8, 1, 0, 0, mine);
  found += failed(ring, mine, number);
  place.offset = there.offset + 256 + (ferry_device_u64)mine * 8;
  number = ferry_device_ring_put_value(ring, place, seed + mine, 0, 8, 0, mine);
  found += failed(ring, mine, number);
  ferry_device_group_barrier();
  if (ferry_device_group_thread() == 0) {
    ferry_device_far_place signal = there;
    signal.offset = there.offset + 128 + (ferry_device_u64)group * 8;
    place.offset = there.offset + 256 + 16384 + (ferry_device_u64)group * 8;
    found += ferry_device_ring_quiet(ring) != 0;
    number = ferry_device_ring_put_signal(ring, place, source, 8, signal, FERRY_DEVICE_RING_SIGNAL_SET,
                                          seed + group, 0,
                                          ferry_device_ring_completion_place(ring, mine));
    found += failed(ring, mine, number);
    while (ferry_device_load_acquire(own + 16 + group) != partners_seed + group) {
      ferry_device_pause();
    }
  }
  ferry_device_group_barrier();
  found += own[32 + mine] != partners_seed + mine;
  found += own[32 + 2048 + group] != partners_seed;
  wrong[mine] = found;
}
