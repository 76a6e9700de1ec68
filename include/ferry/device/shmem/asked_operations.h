/* ferry/device/shmem/asked_operations.h - puts, gets and atomic operations that ferryd carries out,
 * and how calls of several of them end. See ferry/device/shmem.h, and asks.h for how it is asked.
 */
#ifndef FERRY_DEVICE_SHMEM_ASKED_OPERATIONS_H
#define FERRY_DEVICE_SHMEM_ASKED_OPERATIONS_H

#include "ferry/device/shmem/asks.h"
#include "ferry/device/shmem/table.h"

/* ---- Puts, gets, atomics ---- */

/* Returns true if the leader is to ask ferryd, rather than the crew to load and store. `own`: this
 * PE's end, which ferryd must know to do it well. */
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

/* Puts bytes that travel in requests: each thread of the crew posts its share. */
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

/* Returns 0 if ferryd can put blocks of `block` bytes, which lie in `extent` bytes from `source`
 * on, else an error: bytes that travel in requests cannot go into memory that only streams
 * reach. */
FERRY_DEVICE_FUNCTION int ferry_shmem_check_put(shmemx_device_t d, ferry_shmem_place to,
                                                ferry_device_u64 source, ferry_device_u64 block,
                                                ferry_device_u64 extent, int pe) {
  ferry_shmem_request request;
  if (d.ways[pe].segments[to.heap] >> 31 == 0 || extent == 0 ||
      (block > FERRY_SHMEM_PUT_VALUE_BYTES && ferry_shmem_name_own(d, source, extent, &request))) {
    return SHMEMX_DEVICE_SUCCESS;
  }
  return SHMEMX_DEVICE_ERR_UNSUPPORTED;
}

/* Asks ferryd for a put. All threads of the crew call it. `is_nbi`: the source may be changed after
 * a quiet only. */
FERRY_DEVICE_FUNCTION int ferry_shmem_ask_put(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_shmem_place to, ferry_device_u64 source,
                                              ferry_device_u64 bytes, int pe, int is_nbi) {
  ferry_shmem_request request =
      ferry_shmem_request_of(FERRY_DEVICE_RING_PUT, ferry_shmem_there(d, to, pe), 0, 0);
  const int status = ferry_shmem_check_put(d, to, source, bytes, bytes, pe);
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
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

/* Asks ferryd for a get. All threads of the crew call it. `is_nbi`: the bytes are there after a
 * quiet. */
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

/* Asks ferryd to put a value of up to 8 bytes. One thread calls it. */
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

/* Makes a request for an atomic operation: FERRY_DEVICE_RING_FETCH and so on. One thread calls
 * it. */
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
/* Asks ferryd to change a word of 8 bytes, after everything that was asked for at that PE
 * before. */
FERRY_DEVICE_FUNCTION void ferry_shmem_ask_signal(shmemx_device_t d, ferry_device_far_place word,
                                                  ferry_device_u32 operation,
                                                  ferry_device_u64 operand, int pe) {
  ferry_shmem_request request = ferry_shmem_request_of(FERRY_DEVICE_RING_ATOMIC, word, operand, 0);
  request.details = operation | 8u << 8 | FERRY_DEVICE_RING_IN_ORDER << 16;
  ferry_shmem_ask_silently(d, request, pe);
}

/* ---- How a call ends that asks for several operations ----
 *
 * The ring tells the first failure of all that it was ever asked for. So a call waits for older
 * requests, notes the failure that the ring tells then, its *mark*, and asks; a failure that the
 * ring tells at the end, and has not told before, is the call's own. Failures of requests that
 * other threads make of the same table meanwhile count, too. */

/* Asks ferryd for the word by which PE `pe` tells its state to PEs that do not see its round. One
 * thread calls it. */
FERRY_DEVICE_FUNCTION ferry_shmem_answer ferry_shmem_ask_told(shmemx_device_t d, int pe) {
  ferry_device_far_place there;
  there.rank = d.ways[pe].rank;
  there.segment = d.ways[pe].segments[0];
  there.offset = d.ways[pe].area_offset + __builtin_offsetof(ferry_shmem_area, told);
  return ferry_shmem_ask(
      d, ferry_shmem_request_of(FERRY_DEVICE_RING_GET, there, 0, sizeof(ferry_device_u64)));
}

/* Waits until the requests made so far are over, unless they can only be rounds of the last
 * meeting. Returns why the ring has ended, or 0. `failure`: the failure that the ring tells. */
FERRY_DEVICE_FUNCTION int ferry_shmem_finish(shmemx_device_t d, int* failure) {
  FERRY_DEVICE_GLOBAL ferry_shmem_asks* const asks = ferry_shmem_asks_of(d);
  const ferry_device_u64 met = ferry_device_load_acquire(&asks->met); /* `known` is as new */
  int ended;
  if (ferry_device_load_relaxed(asks->producers) == met) {
    *failure = (int)ferry_device_load_relaxed(&asks->known);
    return SHMEMX_DEVICE_SUCCESS;
  }
  ended = ferry_device_ring_finish(ferry_shmem_ring(d));
  *failure = ferry_device_ring_failure(ferry_shmem_ring(d));
  return ended;
}

/* Returns the call's mark, which only the leader's counts. All threads of the crew call it before
 * they ask. Collectives, which fail with any PE of the team, need not wait for the rounds of the
 * last meeting. */
FERRY_DEVICE_FUNCTION int ferry_shmem_mark(shmemx_device_t d, ferry_device_crew crew,
                                           int is_collective) {
  int mark = SHMEMX_DEVICE_SUCCESS;
  if (d.table->ring == 0) {
    return mark;
  }
  ferry_device_crew_barrier(crew); /* all threads have made their older requests */
  if (crew.thread == 0 && is_collective) {
    (void)ferry_shmem_finish(d, &mark); /* ferry_shmem_outcome reports an end of the ring */
  } else if (crew.thread == 0) {
    (void)ferry_device_ring_finish(ferry_shmem_ring(d));
    mark = ferry_device_ring_failure(ferry_shmem_ring(d));
  }
  ferry_device_crew_barrier(crew);
  return mark;
}

/* Tests if the ring still carries out requests at PE `pe`, or, if that is less than 0, at all: it
 * does not at a PE where an operation has failed, and a fence came after that. */
FERRY_DEVICE_FUNCTION int ferry_shmem_probe(shmemx_device_t d, int pe) {
  const int last = pe < 0 ? d.pe_count - 1 : pe;
  int status = SHMEMX_DEVICE_SUCCESS;
  for (pe = pe < 0 ? 0 : pe; pe <= last && status == SHMEMX_DEVICE_SUCCESS; ++pe) {
    status = ferry_shmem_ask_told(d, pe).status;
  }
  return status;
}

/* Waits until all requests of the call are over. Returns `status`, which is the call's error so
 * far, or how the operations have ended; the same to all threads of the crew. `pe`: the PE whose
 * memory they are in; less than 0: any. */
FERRY_DEVICE_FUNCTION int ferry_shmem_outcome(shmemx_device_t d, ferry_device_crew crew, int mark,
                                              int status, int pe) {
  int failure;
  int ended;
  if (d.table->ring == 0) {
    return status;
  }
  ferry_device_crew_barrier(crew); /* all threads have made their requests */
  if (crew.thread == 0) {
    ended = ferry_shmem_finish(d, &failure);
    if (status == SHMEMX_DEVICE_SUCCESS) {
      status = ended != SHMEMX_DEVICE_SUCCESS ? ended : failure == mark ? status : failure;
    }
    if (status == SHMEMX_DEVICE_SUCCESS && mark != SHMEMX_DEVICE_SUCCESS) {
      status = ferry_shmem_probe(d, pe); /* a ring tells of no second failure */
    }
  }
  status = (int)ferry_device_crew_broadcast(crew, (ferry_device_u64)status);
  ferry_device_fence(); /* the data that ferryd has brought, before this thread's loads */
  return status;
}

#endif
