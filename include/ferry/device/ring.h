/* ferry/device/ring.h - how threads of a GPU hand requests to their node's ferryd, and get answers:
 * the "reverse-offload" ring of "Intel SHMEM" (section III-D).
 *
 * The ring lies in host memory that the device reaches; ferry_ring_create makes it and
 * ferry_ring_address gives the address that kernels take (ferry/device_ring.h). A request is one
 * store of 64 bytes: a thread takes a slot by one fetch-add, however many others do so at the same
 * time, writes 56 bytes and then its number. It looks at how far ferryd has come only when its slot
 * could still be in use. Many requests at once, of a thread or a group, take one fetch-add together
 * (ring_batch.h). Answers lie apart, in completions that the caller chooses, one for each request
 * that is under way: they come in any order, and a slot is free again before its request is
 * answered.
 *
 *   FERRY_DEVICE_KERNEL step(FERRY_DEVICE_GLOBAL void* address, ferry_device_place counter) {
 *     ferry_device_ring ring = ferry_device_ring_open(address);
 *     ferry_device_u32 mine = (ferry_device_u32)ferry_device_thread();
 *     ferry_device_u64 number = ferry_device_ring_add(ring, counter, 1, mine);
 *     if (ferry_device_ring_wait(ring, mine, number) == 0) { ... ferry_device_ring_value(ring,
 * mine)
 *
 * Every function may be called by any thread of a launch. Only ferry_device_ring_wait blocks, until
 * ferryd answers, and the functions that post, while the ring is full. Both end with an error when
 * the ring does. Statuses are those of ferry.h: 0 is success.
 *
 * A request may touch only memory of the rank that owns the ring; ferryd checks each one. */
#ifndef FERRY_DEVICE_RING_H
#define FERRY_DEVICE_RING_H

#include "ferry/device/ring_slots.h"

/* Kinds of requests. */
#define FERRY_DEVICE_RING_NOP 1u
#define FERRY_DEVICE_RING_COUNTER_ADD 2u
#define FERRY_DEVICE_RING_COUNTER_WAIT 3u
#define FERRY_DEVICE_RING_START 4u

/* Used in place of a completion: ferryd sends no answer to the request. */
#define FERRY_DEVICE_RING_SILENT 0xffffffffu
/* Returned by ferry_device_ring_test: there is no answer yet. */
#define FERRY_DEVICE_RING_PENDING (-1)
/* The status of a request that was never posted, in a ring that goes on. */
#define FERRY_DEVICE_RING_ERR_ARGUMENT 2

/* A place in the rank's memory, as ferry_ring_place tells it. */
#ifndef FERRY_DEVICE_PLACE
#define FERRY_DEVICE_PLACE
typedef struct {
  ferry_device_u32 region;
  ferry_device_u32 reserved;
  ferry_device_u64 offset;
} ferry_device_place;
#endif

/* ---- Requests whose answers, if any, go to a completion of the ring: an index below what
 * ferry_ring_create was given, for one request at a time; or FERRY_DEVICE_RING_SILENT ---- */

/* Returns the place of the completion of that index; region 0 for FERRY_DEVICE_RING_SILENT. */
FERRY_DEVICE_FUNCTION ferry_device_place
ferry_device_ring_completion_place(ferry_device_ring ring, ferry_device_u32 completion) {
  ferry_device_place place;
  place.region = completion == FERRY_DEVICE_RING_SILENT ? 0 : ring.region;
  place.reserved = 0;
  place.offset =
      completion == FERRY_DEVICE_RING_SILENT
          ? 0
          : ring.completions_offset + completion * (ferry_device_u64)sizeof(*ring.completions);
  return place;
}

FERRY_DEVICE_FUNCTION ferry_device_ring_request ferry_device_ring_request_for(
    ferry_device_ring ring, ferry_device_u32 kind, ferry_device_place place, ferry_device_u64 value,
    ferry_device_u32 completion) {
  const ferry_device_place answer = ferry_device_ring_completion_place(ring, completion);
  ferry_device_ring_request request;
  request.kind = kind;
  request.completion_region = answer.region;
  request.completion = answer.offset;
  request.region = place.region;
  request.flags = 0;
  request.offset = place.offset;
  request.value = value;
  request.reserved[0] = 0;
  request.reserved[1] = 0;
  return request;
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_ask(ferry_device_ring ring,
                                                             ferry_device_u32 kind,
                                                             ferry_device_place place,
                                                             ferry_device_u64 value,
                                                             ferry_device_u32 completion) {
  return ferry_device_ring_post(
      ring, ferry_device_ring_request_for(ring, kind, place, value, completion));
}

/* Posts a request that does nothing. ferryd answers `value`. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_nop(ferry_device_ring ring,
                                                             ferry_device_u64 value,
                                                             ferry_device_u32 completion) {
  ferry_device_place nowhere;
  nowhere.region = 0;
  nowhere.reserved = 0;
  nowhere.offset = 0;
  return ferry_device_ring_ask(ring, FERRY_DEVICE_RING_NOP, nowhere, value, completion);
}

/* Posts a request to add to a counter, which triggers the operations that wait for it. ferryd
 * answers the counter's new value. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_add(ferry_device_ring ring,
                                                             ferry_device_place counter,
                                                             ferry_device_u64 value,
                                                             ferry_device_u32 completion) {
  return ferry_device_ring_ask(ring, FERRY_DEVICE_RING_COUNTER_ADD, counter, value, completion);
}

/* Posts a request that ferryd answers with the value of a counter once it is `threshold` or more,
 * or with the counter's failure. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_await(ferry_device_ring ring,
                                                               ferry_device_place counter,
                                                               ferry_device_u64 threshold,
                                                               ferry_device_u32 completion) {
  return ferry_device_ring_ask(ring, FERRY_DEVICE_RING_COUNTER_WAIT, counter, threshold,
                               completion);
}

/* Starts a matched request that ferry_ring_prepare_start has prepared. ferryd answers once its
 * message is complete, or has failed. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_start(ferry_device_ring ring,
                                                               ferry_device_place request,
                                                               ferry_device_u32 completion) {
  return ferry_device_ring_ask(ring, FERRY_DEVICE_RING_START, request, 0, completion);
}

/* ---- Answers ---- */

/* Returns the status of the request of that number, or FERRY_DEVICE_RING_PENDING while it has no
 * answer. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_test_at(
    FERRY_DEVICE_GLOBAL ferry_device_ring_completion* completion, ferry_device_u64 number) {
  const ferry_device_u64 done = ferry_device_load_acquire(&completion->done);
  if (((done >> 16) ^ number) << 16 != 0) { /* 48 bits of it */
    return FERRY_DEVICE_RING_PENDING;
  }
  return (int)(done & 0xffff);
}

FERRY_DEVICE_FUNCTION int ferry_device_ring_test(ferry_device_ring ring,
                                                 ferry_device_u32 completion,
                                                 ferry_device_u64 number) {
  return ferry_device_ring_test_at(ring.completions + completion, number);
}

/* Waits for the answer and returns its status. For a number of 0, and if the ring ends, it returns
 * the ring's error. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_wait_at(
    ferry_device_ring ring, FERRY_DEVICE_GLOBAL ferry_device_ring_completion* completion,
    ferry_device_u64 number) {
  ferry_device_u32 looks;
  if (number == 0) {
    const ferry_device_u64 ended = ferry_device_load_acquire(ring.words + 17);
    return ended != 0 ? (int)ended : FERRY_DEVICE_RING_ERR_ARGUMENT;
  }
  for (looks = 0;; ++looks) {
    /* Read before the completion: an answer that came before the end counts. */
    const ferry_device_u64 ended =
        looks % 64 == 63 ? ferry_device_load_acquire(ring.words + 17) : 0;
    const int status = ferry_device_ring_test_at(completion, number);
    if (status != FERRY_DEVICE_RING_PENDING) {
      return status;
    }
    if (ended != 0) {
      return (int)ended;
    }
    ferry_device_pause();
  }
}

FERRY_DEVICE_FUNCTION int ferry_device_ring_wait(ferry_device_ring ring,
                                                 ferry_device_u32 completion,
                                                 ferry_device_u64 number) {
  return ferry_device_ring_wait_at(ring, ring.completions + completion, number);
}

/* Returns the value that the request was answered with. To be called after its status is known. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_value(ferry_device_ring ring,
                                                               ferry_device_u32 completion) {
  return ferry_device_load_relaxed(&ring.completions[completion].value);
}

#endif
