/* ferry/device/ring_operations.h - operations in the memory of other ranks, as a device asks its
 * node's ferryd for them: ferry/one_sided.h for kernels. See ferry/device/ring.h.
 *
 * Memory of the other rank is named by rank, segment and offset, as ferry_locate has told that
 * rank. The own bytes are memory that ferry_ring_place names, or, if they are few, in the request.
 *
 * Put answers once the source may be changed, get once the data are there. put_value has up to 16
 * bytes in the request, get_value up to 8 in the answer; atomic answers what was there before.
 * put_signal changes a word of the same rank once its bytes are there, and answers after that.
 * fence and quiet order, and complete.
 *
 * All but quiet post a request and return its number, as ferry_device_ring_post does: 0 if the ring
 * has ended. With FERRY_DEVICE_RING_SILENT nothing is answered; quiet waits for all of them, and
 * tells the first failure of those without an answer, and of puts that failed after theirs.
 *
 * Order: up to 8 KiB at a time, requests of a thread with one rank keep their order. Longer ones
 * are in order only with FERRY_DEVICE_RING_IN_ORDER, or a fence before. */
#ifndef FERRY_DEVICE_RING_OPERATIONS_H
#define FERRY_DEVICE_RING_OPERATIONS_H

#include "ferry/device/ring.h"

#define FERRY_DEVICE_RING_PUT 5u
#define FERRY_DEVICE_RING_GET 6u
#define FERRY_DEVICE_RING_PUT_VALUE 7u
#define FERRY_DEVICE_RING_ATOMIC 8u
#define FERRY_DEVICE_RING_FENCE 9u
#define FERRY_DEVICE_RING_SIGNAL 10u /* of the put that follows */

/* A flag: the request comes, at its rank, after all that the ring was asked for there before it. */
#define FERRY_DEVICE_RING_IN_ORDER 1u
/* A flag of puts, for put_signal: the request before this one names the signal. */
#define FERRY_DEVICE_RING_SIGNALLED 2u

/* How a signal changes its word: FERRY_SIGNAL_... of ferry/one_sided.h. */
#define FERRY_DEVICE_RING_SIGNAL_SET 1u
#define FERRY_DEVICE_RING_SIGNAL_ADD 2u

/* Atomic operations: FERRY_ATOMIC_... of ferry/one_sided.h. */
#define FERRY_DEVICE_RING_FETCH 3u
#define FERRY_DEVICE_RING_SET 4u
#define FERRY_DEVICE_RING_SWAP 5u
#define FERRY_DEVICE_RING_COMPARE_SWAP 6u
#define FERRY_DEVICE_RING_ADD 7u
#define FERRY_DEVICE_RING_AND 8u
#define FERRY_DEVICE_RING_OR 9u
#define FERRY_DEVICE_RING_XOR 10u

/* A place in any rank's memory, as ferry_place of ferry/one_sided.h. */
typedef struct {
  ferry_device_u32 rank;
  ferry_device_u32 segment;
  ferry_device_u64 offset;
} ferry_device_far_place;

/* Makes a request whose answer, if `completion.region` is not 0, goes to a
 * ferry_device_ring_completion anywhere in this rank's memory. `own_region`: 0 for requests that
 * carry their bytes. `details`: the operation, above it 8 bits of width, and 16 of flags. */
FERRY_DEVICE_FUNCTION ferry_device_ring_request ferry_device_ring_operation(
    ferry_device_u32 kind, ferry_device_far_place there, ferry_device_u32 own_region,
    ferry_device_u32 details, ferry_device_u64 operand, ferry_device_u64 compare,
    ferry_device_place completion) {
  ferry_device_ring_request request;
  request.kind = kind;
  request.completion_region = completion.region;
  request.completion = completion.offset;
  request.region = own_region;
  request.flags = details;
  request.offset = operand;
  request.value = there.offset;
  request.reserved[0] = there.rank | (ferry_device_u64)there.segment << 32;
  request.reserved[1] = compare;
  return request;
}

/* Writes the two requests of a put with a signal into reserved slots. */
FERRY_DEVICE_FUNCTION void ferry_device_ring_fill_put_signal(
    ferry_device_ring ring, ferry_device_u64 first, ferry_device_far_place to,
    ferry_device_place from, ferry_device_u64 size_bytes, ferry_device_far_place signal,
    ferry_device_u32 update, ferry_device_u64 value, ferry_device_u32 flags,
    ferry_device_place answer) {
  ferry_device_place nowhere;
  nowhere.region = 0;
  nowhere.reserved = 0;
  nowhere.offset = 0;
  ferry_device_ring_fill(
      ring, first,
      ferry_device_ring_operation(FERRY_DEVICE_RING_SIGNAL, signal, 0, update, value, 0, nowhere));
  ferry_device_ring_fill(ring, first + 1,
                         ferry_device_ring_operation(FERRY_DEVICE_RING_PUT, to, from.region,
                                                     (flags | FERRY_DEVICE_RING_SIGNALLED) << 16,
                                                     from.offset, size_bytes, answer));
}

/* Posts an operation that is answered at a completion of the ring. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_operate(
    ferry_device_ring ring, ferry_device_u32 kind, ferry_device_far_place there,
    ferry_device_u32 own_region, ferry_device_u32 details, ferry_device_u64 operand,
    ferry_device_u64 compare, ferry_device_u32 completion) {
  return ferry_device_ring_post(
      ring, ferry_device_ring_operation(kind, there, own_region, details, operand, compare,
                                        ferry_device_ring_completion_place(ring, completion)));
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_put(
    ferry_device_ring ring, ferry_device_far_place to, ferry_device_place from,
    ferry_device_u64 size_bytes, ferry_device_u32 flags, ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_PUT, to, from.region, flags << 16,
                                   from.offset, size_bytes, completion);
}

/* Puts `size_bytes`, not 0; then ferryd sets the word of 8 bytes at `signal`, of the same rank, to
 * `value`, or adds it (FERRY_DEVICE_RING_SIGNAL_...). It posts two requests in a row, and returns
 * the number of the one that is answered, at `answer`, which may be anywhere in this rank's
 * memory. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_put_signal(
    ferry_device_ring ring, ferry_device_far_place to, ferry_device_place from,
    ferry_device_u64 size_bytes, ferry_device_far_place signal, ferry_device_u32 update,
    ferry_device_u64 value, ferry_device_u32 flags, ferry_device_place answer) {
  const ferry_device_u64 first = ferry_device_ring_reserve(ring, 2);
  if (first != 0) {
    ferry_device_ring_fill_put_signal(ring, first, to, from, size_bytes, signal, update, value,
                                      flags, answer);
  }
  return first == 0 ? 0 : first + 1;
}

/* Puts up to 16 bytes, which travel in the request: `low` has the first 8, `high` the rest. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_put_value(
    ferry_device_ring ring, ferry_device_far_place to, ferry_device_u64 low, ferry_device_u64 high,
    ferry_device_u32 size_bytes, ferry_device_u32 flags, ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_PUT_VALUE, to, 0,
                                   size_bytes << 8 | flags << 16, low, high, completion);
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_get(ferry_device_ring ring,
                                                             ferry_device_place to,
                                                             ferry_device_far_place from,
                                                             ferry_device_u64 size_bytes,
                                                             ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_GET, from, to.region, 0, to.offset,
                                   size_bytes, completion);
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_get_value(ferry_device_ring ring,
                                                                   ferry_device_far_place from,
                                                                   ferry_device_u64 size_bytes,
                                                                   ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_GET, from, 0, 0, 0, size_bytes,
                                   completion);
}

/* Changes a word of `width` bytes, 4 or 8. ferryd answers its previous value, if there is a
 * completion. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_atomic(
    ferry_device_ring ring, ferry_device_far_place word, ferry_device_u32 operation,
    ferry_device_u32 width, ferry_device_u64 operand, ferry_device_u64 compare,
    ferry_device_u32 flags, ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_ATOMIC, word, 0,
                                   operation | width << 8 | flags << 16, operand, compare,
                                   completion);
}

/* Orders requests: those posted after it come, at each rank, after those posted before it. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_fence(ferry_device_ring ring) {
  ferry_device_far_place nowhere;
  nowhere.rank = 0;
  nowhere.segment = 0;
  nowhere.offset = 0;
  return ferry_device_ring_operate(ring, FERRY_DEVICE_RING_FENCE, nowhere, 0, 0, 0, 0,
                                   FERRY_DEVICE_RING_SILENT);
}

/* Blocks until every operation that was posted before, by whatever thread, is over. Returns 0, or
 * why the ring has ended. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_finish(ferry_device_ring ring) {
  const ferry_device_u64 posted = ferry_device_load_acquire(ring.producers);
  ferry_device_u32 looks;
  for (looks = 0;; ++looks) {
    /* Read before the other word: operations that were over before the ring's end count. */
    const ferry_device_u64 ended =
        looks % 64 == 63 ? ferry_device_load_acquire(ring.words + 17) : 0;
    /* Pairs with the daemon's store of it: acquires what gets have brought, and the failure. */
    if (ferry_device_load_acquire(ring.words + 18) >= posted) {
      return 0;
    }
    if (ended != 0) {
      return (int)ended;
    }
    ferry_device_pause();
  }
}

/* Returns the first failure since the ring was made that no answer has told, among the operations
 * that a call has waited for; 0: there is none. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_failure(ferry_device_ring ring) {
  return (int)ferry_device_load_relaxed(ring.words + 19);
}

/* Waits as ferry_device_ring_finish does. Returns the first failure that no answer has told, since
 * the ring was made; or why the ring has ended. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_quiet(ferry_device_ring ring) {
  const int ended = ferry_device_ring_finish(ring);
  return ended != 0 ? ended : ferry_device_ring_failure(ring);
}

#endif
