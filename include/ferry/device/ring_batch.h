/* ferry/device/ring_batch.h - many requests to ferryd at once: of one thread, or one of each thread
 * of a group. See ferry/device/ring.h.
 *
 * All requests take their slots by one fetch-add: threads contend for that operation, of which a
 * device's memory makes only so many a second.
 *
 *   FERRY_DEVICE_SHARED ferry_device_u64 word;
 *   request = ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_COUNTER_ADD, counter, 1, mine);
 *   number = ferry_device_ring_post_work_group(ring, request, ferry_device_group_size(), &word);
 *   status = ferry_device_ring_wait(ring, mine, number);
 *
 * Numbers, errors and blocking are those of ferry_device_ring_post. A group's calls are made by all
 * its threads together, with the same `count`. */
#ifndef FERRY_DEVICE_RING_BATCH_H
#define FERRY_DEVICE_RING_BATCH_H

#include "ferry/device/groups.h"
#include "ferry/device/ring.h"

/* Publishes `count` requests of the calling thread, in their order: ferry_device_ring_most of them
 * at most. Returns the number of the first; the others' follow it. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_post_many(
    ferry_device_ring ring, const ferry_device_ring_request* requests, ferry_device_u32 count) {
  const ferry_device_u64 first = ferry_device_ring_reserve(ring, count);
  ferry_device_u32 i;
  for (i = 0; i < count && first != 0; ++i) {
    ferry_device_ring_fill(ring, first + i, requests[i]);
  }
  return first;
}

/* Returns the number of a group's threads that post at once, when `left` have still to. The threads
 * of a group that is larger than the ring has room for take turns. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_ring_part(ferry_device_ring ring,
                                                              ferry_device_u32 left) {
  const ferry_device_u32 most = ferry_device_ring_most(ring);
  return left < most ? left : most;
}

/* Publishes one request of each of the first `count` threads of the calling sub-group (all, if it
 * has fewer). Returns the thread's own number; 0 to those that post nothing. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_post_sub_group(
    ferry_device_ring ring, ferry_device_ring_request request, ferry_device_u32 count) {
  const ferry_device_u32 thread = ferry_device_sub_group_thread();
  const ferry_device_u32 size = ferry_device_sub_group_size();
  const ferry_device_u32 all = count < size ? count : size;
  ferry_device_u64 number = 0;
  ferry_device_u32 from;
  ferry_device_u32 part;
  for (from = 0; from < all; from += part) {
    ferry_device_u64 first = 0;
    part = ferry_device_ring_part(ring, all - from);
    if (thread == 0) {
      first = ferry_device_ring_reserve(ring, part);
    }
    first = ferry_device_sub_group_broadcast(first);
    if (first != 0 && thread - from < part) {
      number = first + (thread - from);
      ferry_device_ring_fill(ring, number, request);
    }
  }
  return number;
}

/* Publishes one request of each of the first `count` threads of the calling work-group (all, if it
 * has fewer). Returns the thread's own number; 0 to those that post nothing. `word` is the group's
 * own, in its local memory, for the time of the call. (On emulated devices any word that its
 * threads share.) */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_post_work_group(
    ferry_device_ring ring, ferry_device_ring_request request, ferry_device_u32 count,
    FERRY_DEVICE_LOCAL ferry_device_u64* word) {
  const ferry_device_u32 thread = ferry_device_group_thread();
  const ferry_device_u32 size = ferry_device_group_size();
  const ferry_device_u32 all = count < size ? count : size;
  ferry_device_u64 number = 0;
  ferry_device_u32 from;
  ferry_device_u32 part;
  for (from = 0; from < all; from += part) {
    ferry_device_u64 first;
    part = ferry_device_ring_part(ring, all - from);
    if (thread == 0) {
      *word = ferry_device_ring_reserve(ring, part);
    }
    ferry_device_group_barrier();
    first = *word;
    if (first != 0 && thread - from < part) {
      number = first + (thread - from);
      ferry_device_ring_fill(ring, number, request);
    }
    /* All threads have read the word before the leader changes it. And no thread goes on, to wait
     * for ferryd, while a slot is empty: the threads of a group may run one after the other between
     * barriers. */
    ferry_device_group_barrier();
  }
  return number;
}

#endif
