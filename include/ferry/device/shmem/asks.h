/* ferry/device/shmem/asks.h - requests of kernels to ferryd by the table's ring: operations with
 * PEs of other nodes, and those that loads and stores do not reach, or do not do well. See
 * ferry/device/shmem.h.
 *
 * One thread asks, the leader of its crew. The ring counts silent requests, and quiet waits for
 * them. A request with an answer takes a *place*, one for the crew, by the number of the leader's
 * thread: so the threads of a wave never wait for each other's. All threads of the crew find the
 * status there. */
#ifndef FERRY_DEVICE_SHMEM_ASKS_H
#define FERRY_DEVICE_SHMEM_ASKS_H

#include "ferry/device/ring_operations.h"
#include "ferry/device/shmem/table.h"

/* The most bytes that travel in a request, or in its answer. */
#define FERRY_SHMEM_PUT_VALUE_BYTES 16u
#define FERRY_SHMEM_GET_VALUE_BYTES 8u

typedef struct {
  ferry_device_far_place there;
  ferry_device_u64 operand;
  ferry_device_u64 compare;
  ferry_device_u32 kind;
  ferry_device_u32 own_region;
  ferry_device_u32 details; /* as ferry_device_ring_operate has them */
} ferry_shmem_request;

typedef struct {
  ferry_device_u64 value;
  int status;
} ferry_shmem_answer;

/* Returns the name that ferryd has for `place` in the memory of PE `pe`. */
FERRY_DEVICE_FUNCTION ferry_device_far_place ferry_shmem_there(shmemx_device_t d,
                                                               ferry_shmem_place place, int pe) {
  ferry_device_far_place there;
  there.rank = d.ways[pe].rank;
  there.segment = d.ways[pe].segments[place.heap];
  there.offset = d.table->heap_offsets[place.heap] + place.offset;
  return there;
}

FERRY_DEVICE_FUNCTION ferry_shmem_request ferry_shmem_request_of(ferry_device_u32 kind,
                                                                 ferry_device_far_place there,
                                                                 ferry_device_u64 operand,
                                                                 ferry_device_u64 compare) {
  ferry_shmem_request request;
  request.there = there;
  request.operand = operand;
  request.compare = compare;
  request.kind = kind;
  request.own_region = 0;
  request.details = 0;
  return request;
}

/* Names `bytes` bytes of this PE's memory at `address` in the request. Returns 0 if they are in
 * none of this PE's heaps, nor in its scratch memory. */
FERRY_DEVICE_FUNCTION int ferry_shmem_name_own(shmemx_device_t d, ferry_device_u64 address,
                                               ferry_device_u64 bytes,
                                               ferry_shmem_request* request) {
  ferry_device_u64 offset;
  int heap = ferry_shmem_heap_of(d, address, bytes, &offset);
  if (heap < 0) {
    const ferry_device_u64 within = address - d.table->scratch;
    if (within > d.table->scratch_bytes || bytes > d.table->scratch_bytes - within) {
      return 0;
    }
    heap = 0; /* the scratch memory is in the heap's segment, before the heap */
    offset = address - d.heap;
  }
  /* The highest bit says that only streams reach the memory; ferryd knows that of its own
   * regions. */
  request->own_region = d.ways[d.pe].segments[heap] & 0x7fffffffu;
  request->operand = d.table->heap_offsets[heap] + offset;
  request->compare = bytes;
  return 1;
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_post(ferry_device_ring ring,
                                                        ferry_shmem_request request,
                                                        ferry_device_u32 completion) {
  return ferry_device_ring_operate(ring, request.kind, request.there, request.own_region,
                                   request.details, request.operand, request.compare, completion);
}

/* ---- Without an answer ---- */

/* Posts a request without an answer, in the memory of PE `pe`. If the ring has ended, quiet says
 * so. */
FERRY_DEVICE_FUNCTION void ferry_shmem_ask_silently(shmemx_device_t d, ferry_shmem_request request,
                                                    int pe) {
  if (d.ways[pe].area != 0) {
    ferry_device_store_relaxed(&ferry_shmem_asks_of(d)->asked_near, 1);
  }
  (void)ferry_shmem_post(ferry_shmem_ring(d), request, FERRY_DEVICE_RING_SILENT);
}

/* ---- With one ---- */

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_shmem_place_of(ferry_device_crew crew) {
  return (ferry_device_u32)(ferry_device_thread() - crew.thread) & (FERRY_SHMEM_PLACES - 1);
}
/* Takes an answer's place for the crew. The crew that has it releases it without waiting for other
 * threads that want it. */
FERRY_DEVICE_FUNCTION void ferry_shmem_take_place(
    FERRY_DEVICE_GLOBAL ferry_shmem_answer_place* place) {
  while (ferry_device_exchange(&place->taken, 1) != 0) {
    ferry_device_pause();
  }
}
FERRY_DEVICE_FUNCTION void ferry_shmem_leave_place(
    FERRY_DEVICE_GLOBAL ferry_shmem_answer_place* place) {
  ferry_device_store_release(&place->taken, 0);
}

/* Posts a request and waits for its answer. The caller has the place. */
FERRY_DEVICE_FUNCTION ferry_shmem_answer ferry_shmem_await(ferry_device_ring ring,
                                                           ferry_device_u32 place,
                                                           ferry_shmem_request request) {
  const ferry_device_u64 number = ferry_shmem_post(ring, request, place);
  ferry_shmem_answer answer;
  answer.status = ferry_device_ring_wait(ring, place, number);
  answer.value = answer.status == SHMEMX_DEVICE_SUCCESS ? ferry_device_ring_value(ring, place) : 0;
  return answer;
}

/* Posts a request of one thread and waits for its answer. */
FERRY_DEVICE_FUNCTION ferry_shmem_answer ferry_shmem_ask(shmemx_device_t d,
                                                         ferry_shmem_request request) {
  const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
  const ferry_device_u32 index = ferry_shmem_place_of(alone);
  FERRY_DEVICE_GLOBAL ferry_shmem_answer_place* const place =
      &ferry_shmem_asks_of(d)->places[index];
  ferry_shmem_answer answer;
  ferry_shmem_take_place(place);
  answer = ferry_shmem_await(ferry_shmem_ring(d), index, request);
  ferry_shmem_leave_place(place);
  return answer;
}

/* Gets bytes into memory that ferryd does not know, a few with each answer. The caller has the
 * place. */
FERRY_DEVICE_FUNCTION int ferry_shmem_get_values(ferry_device_ring ring, ferry_device_u32 place,
                                                 ferry_device_far_place from,
                                                 FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                 ferry_device_u64 bytes) {
  ferry_device_u64 done = 0;
  while (done < bytes) {
    const ferry_device_u64 rest = bytes - done;
    const ferry_device_u64 size =
        rest < FERRY_SHMEM_GET_VALUE_BYTES ? rest : FERRY_SHMEM_GET_VALUE_BYTES;
    ferry_shmem_answer answer = ferry_shmem_await(
        ring, place, ferry_shmem_request_of(FERRY_DEVICE_RING_GET, from, 0, size));
    ferry_device_u64 i;
    if (answer.status != SHMEMX_DEVICE_SUCCESS) {
      return answer.status;
    }
    for (i = 0; i < size; ++i) {
      to[done + i] = (ferry_device_u8)(answer.value >> 8 * i);
    }
    from.offset += size;
    done += size;
  }
  return SHMEMX_DEVICE_SUCCESS;
}

/* Posts the leader's request and waits for its answer. All threads of the crew call it, and get the
 * leader's status. A request that names no memory of this PE is a get into `to`, which ferryd does
 * not know. */
FERRY_DEVICE_FUNCTION int ferry_shmem_ask_together(shmemx_device_t d, ferry_device_crew crew,
                                                   ferry_shmem_request request,
                                                   ferry_device_u64 to) {
  const ferry_device_u32 index = ferry_shmem_place_of(crew);
  FERRY_DEVICE_GLOBAL ferry_shmem_answer_place* const place =
      &ferry_shmem_asks_of(d)->places[index];
  int status = SHMEMX_DEVICE_SUCCESS;
  if (crew.thread == 0) {
    const ferry_device_ring ring = ferry_shmem_ring(d);
    ferry_shmem_take_place(place);
    status =
        request.own_region != 0
            ? ferry_shmem_await(ring, index, request).status
            : ferry_shmem_get_values(ring, index, request.there,
                                     (FERRY_DEVICE_GLOBAL ferry_device_u8*)to, request.compare);
    ferry_device_store_relaxed(&place->status, (ferry_device_u64)status);
  }
  ferry_device_crew_barrier(crew);
  status = (int)ferry_device_load_relaxed(&place->status);
  ferry_device_crew_barrier(crew);
  if (crew.thread == 0) {
    ferry_shmem_leave_place(place);
  }
  ferry_device_fence(); /* the data that ferryd has brought, before this thread's loads */
  return status;
}

#endif
