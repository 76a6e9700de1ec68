/* device_ring.h - rings by which the threads of a GPU ask their node's ferryd for operations,
 * without a CPU of the application: the host's side. ferry/device/ring.h has the device's.
 *
 * After "Intel SHMEM" (section III-D): requests of 64 bytes in a ring in host memory, slots by
 * fetch-add, answers that lie apart and come in any order. docs/device_ring.md explains the whole.
 *
 * As in ferry.h: functions return FERRY_SUCCESS or an error code, may be called by any thread that
 * ferry_init allows, do not block unless they say so, and ferry_last_error() has the error
 * message.
 */
#ifndef FERRY_DEVICE_RING_H_
#define FERRY_DEVICE_RING_H_

#include <stddef.h>
#include <stdint.h>

#include "ferry/ferry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names a ring. A handle that names no ring, or one that was destroyed, is FERRY_ERR_ARGUMENT. */
typedef uint64_t ferry_ring;
#define FERRY_RING_NULL ((ferry_ring)0)

/* A place in this rank's memory, as requests name it. */
#ifndef FERRY_DEVICE_PLACE
#define FERRY_DEVICE_PLACE
typedef struct {
  uint32_t region;
  uint32_t reserved;
  uint64_t offset;
} ferry_device_place;
#endif

/* A counter that requests add to and wait for. It lies in memory of ferry_alloc, at a multiple of
 * 64 bytes, and is zeroed before its use. `value` only grows; add to it with atomic operations
 * only. From 2^62 on it has failed, and `error` says why. */
typedef struct {
  uint64_t value;
  int32_t error;
  uint32_t reserved0;
  uint64_t reserved[6];
} ferry_ring_counter;

/* Makes a ring for the threads of a device: `slots` (a power of two, 2 to 65536) requests may be on
 * their way; answers have `completions` places, one for each request that waits for its answer at
 * the same time (0: the kernels use none, or memory of their own). It takes slots * 64 +
 * completions * 16 bytes of the heap, pinned. A rank that makes no ring pays nothing.
 *
 * Blocks until ferryd serves the ring, which takes at most a turn of ferryd. Errors:
 * FERRY_ERR_ARGUMENT, FERRY_ERR_UNSUPPORTED (no GPU backend is in use), FERRY_ERR_LIMIT (16 rings),
 * FERRY_ERR_MEMORY (the heap has no room: heap_bytes), FERRY_ERR_TIMEOUT. */
FERRY_API int ferry_ring_create(int device, uint32_t slots, uint32_t completions, ferry_ring* ring);
/* Sets *address to the address that kernels give to ferry_device_ring_open. It is valid until the
 * ring is destroyed. */
FERRY_API int ferry_ring_address(ferry_ring ring, void** address);
/* Sets *place to the name that requests use for [pointer, pointer + size_bytes), which must lie in
 * memory of ferry_alloc that CPUs reach: all of it but device memory behind a link
 * (FERRY_ERR_UNSUPPORTED). Returns FERRY_ERR_BUFFER for other memory. */
FERRY_API int ferry_ring_place(ferry_ring ring, const void* pointer, size_t size_bytes,
                               ferry_device_place* place);
/* Prepares one start of a matched request (ferry/stream.h) whose partner is on another node, to be
 * made by a device: *request_place is what ferry_device_ring_start takes. For the rank the request
 * is then active: it must call ferry_wait, or ferry_test, before it prepares, or makes, the next
 * start. The message is read, or written, once the device has started the request and its partner
 * has, too.
 *
 * FERRY_ERR_REQUEST: the request is not matched, or is active. FERRY_ERR_BUFFER: the message is not
 * in memory of ferry_alloc that the network reaches. FERRY_ERR_UNSUPPORTED: its partner is on this
 * node (there the two ends meet without ferryd: start it by the rank or a queue); or it is a short
 * receive that may land in a cell (matched_cell_bytes), from where only the rank takes it. */
FERRY_API int ferry_ring_prepare_start(ferry_ring ring, ferry_request request,
                                       ferry_device_place* request_place);

/* The state of a ring: what ferryd has done with its requests so far. */
typedef struct {
  int error;             /* why the ring is not served any more; FERRY_SUCCESS: it is */
  uint64_t requests;     /* taken out of the ring */
  uint64_t errors;       /* of those, refused or failed, with or without an answer */
  uint64_t first_number; /* of the first of these, as ferry_device_ring_post returned it */
  uint32_t first_kind;
  int first_error;
} ferry_ring_state;
FERRY_API int ferry_ring_get_state(ferry_ring ring, ferry_ring_state* state);

/* Destroys the ring, which no kernel may use any more: synchronise first. Blocks until ferryd
 * has carried out all posted requests; it answers those that still wait for a counter or a
 * message with FERRY_ERR_CANCELLED. ferry_finalize destroys the rings that are left.
 * FERRY_ERR_TIMEOUT: ferryd does not answer; the ring stays. */
FERRY_API int ferry_ring_destroy(ferry_ring* ring);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_DEVICE_RING_H_ */
