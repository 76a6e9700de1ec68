/* ferry/device/shmem/asked_operations.h - puts, gets and atomic operations that ferryd carries out,
 * and the words by which PEs meet. See ferry/device/shmem.h, and asks.h for how it is asked. */
#ifndef FERRY_DEVICE_SHMEM_ASKED_OPERATIONS_H
#define FERRY_DEVICE_SHMEM_ASKED_OPERATIONS_H

#include "ferry/device/shmem/asks.h"
#include "ferry/device/shmem/table.h"

/* ---- Puts, gets, atomics ---- */

/* Whether the leader is to ask, rather than the crew to load and store. `own`: this PE's end, which
 * ferryd must know to do it well. */
FERRY_DEVICE_FUNCTION int ferry_shmem_is_asked(shmemx_device_t d, ferry_device_crew crew,
                                               int operation, ferry_shmem_place place,
                                               ferry_device_u64 own, ferry_device_u64 bytes) {
  ferry_device_u32 size = 0;
  ferry_device_u64 offset;
  int own_heap;
  if (place.address == 0 || d.table->ring == 0) {
    return place.address == 0;
  }
  while (size + 1 < FERRY_SHMEM_CUTOVER_SIZES && crew.count >> (size + 1) != 0) {
    ++size;
  }
  if (bytes < d.table->cutovers[operation][size]) {
    return 0;
  }
  own_heap = ferry_shmem_heap_of(d, own, bytes, &offset);
  return own_heap >= 0 && !ferry_shmem_is_by_stream(d, own_heap) &&
         !ferry_shmem_is_by_stream(d, place.heap);
}

/* Has the bytes travel in requests: each thread of the crew posts its share. */
FERRY_DEVICE_FUNCTION void ferry_shmem_put_values(shmemx_device_t d, ferry_device_crew crew,
                                                  ferry_device_far_place to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 bytes, int pe) {
  const ferry_device_u64 step = (ferry_device_u64)FERRY_SHMEM_PUT_VALUE_BYTES * crew.count;
  ferry_device_u64 done;
  for (done = (ferry_device_u64)FERRY_SHMEM_PUT_VALUE_BYTES * crew.thread; done < bytes;
       done += step) {
    const ferry_device_u64 rest = bytes - done;
    const ferry_device_u64 size =
        rest < FERRY_SHMEM_PUT_VALUE_BYTES ? rest : FERRY_SHMEM_PUT_VALUE_BYTES;
    ferry_shmem_request request = ferry_shmem_request_of(FERRY_DEVICE_RING_PUT_VALUE, to, 0, 0);
    ferry_device_u64 i;
    request.there.offset += done;
    request.details = (ferry_device_u32)size << 8;
    for (i = 0; i < size; ++i) {
      const ferry_device_u64 byte = from[done + i];
      if (i < 8) {
        request.operand |= byte << 8 * i;
      } else {
        request.compare |= byte << 8 * (i - 8);
      }
    }
    ferry_shmem_ask_silently(d, request, pe);
  }
}

/* By all threads of the crew. `is_nbi`: the source may be changed after a quiet only. */
FERRY_DEVICE_FUNCTION int ferry_shmem_ask_put(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_shmem_place to, ferry_device_u64 source,
                                              ferry_device_u64 bytes, int pe, int is_nbi) {
  ferry_shmem_request request =
      ferry_shmem_request_of(FERRY_DEVICE_RING_PUT, ferry_shmem_there(d, to, pe), 0, 0);
  if (bytes <= FERRY_SHMEM_PUT_VALUE_BYTES || !ferry_shmem_name_own(d, source, bytes, &request)) {
    ferry_shmem_put_values(d, crew, request.there,
                           (const FERRY_DEVICE_GLOBAL ferry_device_u8*)source, bytes, pe);
    return SHMEMX_DEVICE_SUCCESS;
  }
  if (!is_nbi) {
    return ferry_shmem_ask_together(d, crew, request, 0);
  }
  if (crew.thread == 0) {
    ferry_shmem_ask_silently(d, request, pe);
  }
  return SHMEMX_DEVICE_SUCCESS;
}

/* Likewise; `is_nbi`: the bytes are there after a quiet. */
FERRY_DEVICE_FUNCTION int ferry_shmem_ask_get(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_device_u64 dest, ferry_shmem_place from,
                                              ferry_device_u64 bytes, int pe, int is_nbi) {
  ferry_shmem_request request =
      ferry_shmem_request_of(FERRY_DEVICE_RING_GET, ferry_shmem_there(d, from, pe), 0, bytes);
  if (bytes == 0) {
    return SHMEMX_DEVICE_SUCCESS;
  }
  if (!ferry_shmem_name_own(d, dest, bytes, &request) || !is_nbi) {
    return ferry_shmem_ask_together(d, crew, request, dest);
  }
  if (crew.thread == 0) {
    ferry_shmem_ask_silently(d, request, pe);
  }
  return SHMEMX_DEVICE_SUCCESS;
}

/* A value of up to 8 bytes, by one thread. */
FERRY_DEVICE_FUNCTION void ferry_shmem_ask_p(shmemx_device_t d, ferry_shmem_place to,
                                             ferry_device_u64 value, ferry_device_u32 bytes,
                                             int pe) {
  ferry_shmem_request request =
      ferry_shmem_request_of(FERRY_DEVICE_RING_PUT_VALUE, ferry_shmem_there(d, to, pe), value, 0);
  request.details = bytes << 8;
  ferry_shmem_ask_silently(d, request, pe);
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_ask_g(shmemx_device_t d, ferry_shmem_place from,
                                                         ferry_device_u64 bytes, int pe) {
  const ferry_shmem_answer answer = ferry_shmem_ask(
      d, ferry_shmem_request_of(FERRY_DEVICE_RING_GET, ferry_shmem_there(d, from, pe), 0, bytes));
  ferry_shmem_note(d, answer.status);
  return answer.value;
}

/* `operation`: FERRY_DEVICE_RING_FETCH and so on. By one thread. */
FERRY_DEVICE_FUNCTION ferry_shmem_request ferry_shmem_atomic_request(
    shmemx_device_t d, ferry_shmem_place word, int pe, ferry_device_u32 operation,
    ferry_device_u32 width, ferry_device_u64 operand, ferry_device_u64 compare) {
  ferry_shmem_request request = ferry_shmem_request_of(
      FERRY_DEVICE_RING_ATOMIC, ferry_shmem_there(d, word, pe), operand, compare);
  request.details = operation | width << 8;
  return request;
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_ask_atomic(
    shmemx_device_t d, ferry_shmem_place word, int pe, ferry_device_u32 operation,
    ferry_device_u32 width, ferry_device_u64 operand, ferry_device_u64 compare) {
  const ferry_shmem_answer answer = ferry_shmem_ask(
      d, ferry_shmem_atomic_request(d, word, pe, operation, width, operand, compare));
  ferry_shmem_note(d, answer.status);
  return answer.value;
}
FERRY_DEVICE_FUNCTION void ferry_shmem_ask_update(shmemx_device_t d, ferry_shmem_place word, int pe,
                                                  ferry_device_u32 operation,
                                                  ferry_device_u32 width,
                                                  ferry_device_u64 operand) {
  ferry_shmem_ask_silently(d, ferry_shmem_atomic_request(d, word, pe, operation, width, operand, 0),
                           pe);
}
/* Changes a word of 8 bytes once all that was asked for there before it has been done. */
FERRY_DEVICE_FUNCTION void ferry_shmem_ask_signal(shmemx_device_t d, ferry_device_far_place word,
                                                  ferry_device_u32 operation,
                                                  ferry_device_u64 operand, int pe) {
  ferry_shmem_request request = ferry_shmem_request_of(FERRY_DEVICE_RING_ATOMIC, word, operand, 0);
  request.details = operation | 8u << 8 | FERRY_DEVICE_RING_IN_ORDER << 16;
  ferry_shmem_ask_silently(d, request, pe);
}

/* Returns once all that the ring was asked for, by these threads too, is over: the first failure
 * that no call has told, the same to all threads of the crew. */
FERRY_DEVICE_FUNCTION int ferry_shmem_quiet_together(shmemx_device_t d, ferry_device_crew crew) {
  int status = SHMEMX_DEVICE_SUCCESS;
  if (d.table->ring == 0) {
    return status;
  }
  ferry_device_crew_barrier(crew); /* all have asked */
  if (crew.thread == 0) {
    status = ferry_shmem_quiet_ring(d);
    ferry_shmem_note(d, status);
  }
  status = (int)ferry_device_crew_broadcast(crew, (ferry_device_u64)status);
  ferry_device_fence(); /* what ferryd has brought, before this thread's loads */
  return status;
}

/* ---- Between the areas ---- */

/* The words of ferry_shmem_member that other PEs store. */
#define FERRY_SHMEM_MEMBER_ROUND 0
#define FERRY_SHMEM_MEMBER_BYTES 1

/* Stores `value` into that word of what PE `pe` sees of this one. What this thread has put there
 * before, and whatever the ring was asked for there, comes first. By one thread. */
FERRY_DEVICE_FUNCTION int ferry_shmem_store_member(shmemx_device_t d, int pe, int word,
                                                   ferry_device_u64 value) {
  const ferry_device_u64 area = d.ways[pe].area;
  if (area != 0) {
    FERRY_DEVICE_GLOBAL ferry_shmem_member* const member = ferry_shmem_member_of(area, d.pe);
    ferry_device_store_release(word == FERRY_SHMEM_MEMBER_ROUND ? &member->round : &member->bytes,
                               value);
    return SHMEMX_DEVICE_SUCCESS;
  }
  if (d.table->ring == 0) {
    return SHMEMX_DEVICE_ERR_UNSUPPORTED;
  }
  {
    ferry_device_far_place there;
    there.rank = d.ways[pe].rank;
    there.segment = d.ways[pe].segments[0];
    there.offset = d.ways[pe].area_offset + sizeof(ferry_shmem_area) +
                   (ferry_device_u64)d.pe * sizeof(ferry_shmem_member) +
                   (ferry_device_u64)word * sizeof(ferry_device_u64);
    ferry_shmem_ask_signal(d, there, FERRY_DEVICE_RING_SET, value, pe);
  }
  return SHMEMX_DEVICE_SUCCESS;
}

#endif
