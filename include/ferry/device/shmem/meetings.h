/* ferry/device/shmem/meetings.h - how the PEs of a table's team meet, and how they tell one another
 * of failures. See ferry/device/shmem.h, and collectives.h, which stand on it.
 *
 * In a meeting each PE stores its *round*, the number of the meeting, into the areas of all others,
 * and waits for theirs in its own. Before that it waits for all that the table's ring was asked
 * for, so a round depends on nothing that may fail.
 *
 * A PE whose own part of a collective has failed does not come to the meeting at its end, nor to
 * any later one: the table has ended for collectives, as if the PE had died. It says so in its own
 * area. A thread that has waited for a PE for long looks there: by a load, or by a get of ferryd's.
 * That also tells how far the PE has come, should its rounds not get through: where an operation
 * had failed, and a fence came after that, ferryd carries out no more requests of the ring at that
 * PE. */
#ifndef FERRY_DEVICE_SHMEM_MEETINGS_H
#define FERRY_DEVICE_SHMEM_MEETINGS_H

#include "ferry/device/shmem/asked_operations.h"
#include "ferry/device/shmem/table.h"

/* ---- Between the areas ---- */

/* The words of ferry_shmem_member that other PEs store. */
#define FERRY_SHMEM_MEMBER_ROUND 0
#define FERRY_SHMEM_MEMBER_BYTES 1
#define FERRY_SHMEM_MEMBER_VALUES 8 /* the first of them */

/* Stores `value` into that word of this PE's ferry_shmem_member at PE `pe`. Called by one thread,
 * which stores into the words of one PE in order. */
FERRY_DEVICE_FUNCTION void ferry_shmem_store_member(shmemx_device_t d, int pe, int word,
                                                    ferry_device_u64 value) {
  const ferry_device_u64 area = d.ways[pe].area;
  if (area != 0) {
    ferry_device_store_release(&ferry_shmem_member_of(area, d.pe)->round + word, value);
  } else {
    ferry_shmem_request request;
    ferry_device_far_place there;
    there.rank = d.ways[pe].rank;
    there.segment = d.ways[pe].segments[0];
    there.offset = d.ways[pe].area_offset + sizeof(ferry_shmem_area) +
                   (ferry_device_u64)d.pe * sizeof(ferry_shmem_member) +
                   (ferry_device_u64)word * sizeof(ferry_device_u64);
    request = ferry_shmem_request_of(FERRY_DEVICE_RING_ATOMIC, there, value, 0);
    request.details = FERRY_DEVICE_RING_SET | 8u << 8;
    (void)ferry_shmem_post(ferry_shmem_ring(d), request, FERRY_DEVICE_RING_SILENT);
  }
}

/* Stores `value` into that word at all PEs. All threads of the crew call it. */
FERRY_DEVICE_FUNCTION void ferry_shmem_store_members(shmemx_device_t d, ferry_device_crew crew,
                                                     int word, ferry_device_u64 value) {
  int pe;
  for (pe = (int)crew.thread; pe < d.pe_count; pe += (int)crew.count) {
    ferry_shmem_store_member(d, pe, word, value);
  }
}

/* Returns the words in which this PE sees PE `pe`. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_shmem_member* ferry_shmem_own_member(
    shmemx_device_t d, int pe) {
  return ferry_shmem_member_of(d.ways[d.pe].area, pe);
}

/* ---- States that PEs tell of themselves ---- */

#define FERRY_SHMEM_TOLD_BITS 48
#define FERRY_SHMEM_TOLD_ROUND (((ferry_device_u64)1 << FERRY_SHMEM_TOLD_BITS) - 1)

/* Stores that the collectives of this PE have failed, after it had come to the meeting `round`. Of
 * several errors the first stays, or, of several threads' at once, one. */
FERRY_DEVICE_FUNCTION void ferry_shmem_tell_failure(shmemx_device_t d, ferry_device_u64 round,
                                                    int status) {
  if (ferry_device_load_relaxed(&d.own->failed) == 0) {
    ferry_device_store_relaxed(&d.own->failed, (ferry_device_u64)status);
    ferry_device_store_release(&d.own->told,
                               round | (ferry_device_u64)status << FERRY_SHMEM_TOLD_BITS);
  }
}

/* Returns the word that PE `pe` tells. A PE that ferryd does not reach, time and again, has failed
 * with that error: a dead one is reported by the host sooner. `refused` counts the attempts. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_hear(shmemx_device_t d, int pe, int* refused) {
  const ferry_device_u64 area = d.ways[pe].area;
  ferry_shmem_answer answer;
  if (area != 0) {
    return ferry_device_load_acquire(&((FERRY_DEVICE_GLOBAL ferry_shmem_area*)area)->told);
  }
  answer = ferry_shmem_ask_told(d, pe);
  if (answer.status == SHMEMX_DEVICE_SUCCESS) {
    return answer.value;
  }
  ++*refused;
  return *refused < 3 ? 0 : (ferry_device_u64)answer.status << FERRY_SHMEM_TOLD_BITS;
}

/* ---- Meeting ---- */

/* The number of looks after which a thread has waited for long: some milliseconds. */
#define FERRY_SHMEM_LOOKS 16384

FERRY_DEVICE_FUNCTION int ferry_shmem_await_member(shmemx_device_t d, int pe,
                                                   ferry_device_u64 round) {
  FERRY_DEVICE_GLOBAL ferry_shmem_member* const member = ferry_shmem_own_member(d, pe);
  ferry_device_u32 looks;
  int refused = 0;
  for (looks = 1;; ++looks) {
    /* Read before the round: a PE that came to the meeting before it died counts. */
    const ferry_device_u64 state = looks % 64 == 0 ? ferry_device_load_acquire(&member->state) : 0;
    if (ferry_device_load_acquire(&member->round) >= round) {
      return SHMEMX_DEVICE_SUCCESS;
    }
    if (state != 0) {
      return (int)state;
    }
    if (looks % FERRY_SHMEM_LOOKS == 0) {
      const ferry_device_u64 told = ferry_shmem_hear(d, pe, &refused);
      if ((told & FERRY_SHMEM_TOLD_ROUND) >= round) {
        return SHMEMX_DEVICE_SUCCESS;
      }
      if (told >> FERRY_SHMEM_TOLD_BITS != 0) {
        return (int)(told >> FERRY_SHMEM_TOLD_BITS);
      }
    }
    ferry_device_pause();
  }
}

/* Waits for all requests of the crew, then tells the other PEs that this one comes. The crew's
 * leader calls it. Returns the number of the ring's tickets that were taken before. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_come(shmemx_device_t d, ferry_device_u64 round) {
  FERRY_DEVICE_GLOBAL ferry_shmem_asks* const asks = ferry_shmem_asks_of(d);
  const ferry_device_u64 posted = ferry_device_load_relaxed(asks->producers);
  int failure;
  (void)ferry_shmem_finish(d, &failure); /* the host reports an end of the ring, too */
  ferry_device_store_relaxed(&asks->known, (ferry_device_u64)failure);
  ferry_device_store_release(&d.own->told, round);
  return posted;
}

/* Notes the ring's tickets once all rounds have left: if no others came since, a later call has
 * nothing to wait for. */
FERRY_DEVICE_FUNCTION void ferry_shmem_note_met(shmemx_device_t d, ferry_device_u64 posted) {
  int pe;
  for (pe = 0; pe < d.pe_count && !d.is_one_node; ++pe) {
    posted += d.ways[pe].area == 0 ? 1 : 0;
  }
  ferry_device_store_release(&ferry_shmem_asks_of(d)->met, posted); /* and `known` */
}

/* Returns once all PEs of the team have come, the same status to all threads of the crew. Stores
 * that any thread of a crew has made in a PE before, or has asked ferryd for, are visible to all
 * threads of that PE after it. */
FERRY_DEVICE_FUNCTION int ferry_shmem_meet(shmemx_device_t d, ferry_device_crew crew) {
  const int has_ring = d.table->ring != 0;
  ferry_device_u64 round;
  ferry_device_u64 failed;
  ferry_device_u64 posted = 0;
  int status = SHMEMX_DEVICE_SUCCESS;
  int pe;
  if (!d.is_one_node && !has_ring) {
    return SHMEMX_DEVICE_ERR_UNSUPPORTED;
  }
  ferry_device_fence(); /* this thread's stores, before any thread's round */
  ferry_device_crew_barrier(crew);
  round = ferry_device_load_relaxed(&d.own->round) + 1;
  failed = ferry_device_load_relaxed(&d.own->failed);
  if (has_ring) {
    if (crew.thread == 0 && failed == 0) {
      posted = ferry_shmem_come(d, round);
    }
    ferry_device_crew_barrier(crew);
  }
  if (failed == 0) {
    ferry_shmem_store_members(d, crew, FERRY_SHMEM_MEMBER_ROUND, round);
  }
  for (pe = (int)crew.thread; pe < d.pe_count && failed == 0; pe += (int)crew.count) {
    status = ferry_shmem_await_member(d, pe, round);
    if (status != SHMEMX_DEVICE_SUCCESS) {
      ferry_shmem_tell_failure(d, round, status);
      break;
    }
  }
  ferry_device_crew_barrier(crew);
  ferry_device_fence(); /* the others' stores, before this thread's loads */
  /* The next call changes these only after its first barrier. */
  if (crew.thread == 0 && failed == 0) {
    ferry_device_store_relaxed(&d.own->round, round);
    if (has_ring && ferry_device_load_relaxed(&d.own->failed) == 0) {
      ferry_shmem_note_met(d, posted);
    }
  }
  return (int)ferry_device_load_relaxed(&d.own->failed);
}

/* Ends a collective whose own part has ended with `status`. */
FERRY_DEVICE_FUNCTION int ferry_shmem_end_with(shmemx_device_t d, ferry_device_crew crew,
                                               int status) {
  if (status == SHMEMX_DEVICE_SUCCESS) {
    return ferry_shmem_meet(d, crew);
  }
  if (crew.thread == 0) {
    ferry_shmem_tell_failure(d, ferry_device_load_relaxed(&d.own->round), status);
  }
  ferry_device_crew_barrier(crew);
  return (int)ferry_device_load_relaxed(&d.own->failed);
}

#endif
