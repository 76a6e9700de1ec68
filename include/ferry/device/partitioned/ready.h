/* ferry/device/partitioned/ready.h - partitions that are ready, and how they move. See
 * ferry/device/partitioned.h.
 *
 * A kernel's counter of a unit grows by one atomic addition in the device's own memory for each
 * call; the thread that adds the last bit *completes* the unit, and no other touches the bus. The
 * thread that completes the unit is, as a rule, the only one that writes the unit's words of this
 * round: plain stores do. But
 *   - the host may have claimed the unit, because it stayed incomplete: then the host moves it;
 *   - the receiver may start its round meanwhile. So a unit that is not cleared is put into
 * `ready`, as a host's Pready does, and then looked at again: the receiver stores `cleared`, then
 * looks at `ready`, so at least one of the two sees the other, and the one that changes `taken`
 * moves the unit. */
#ifndef FERRY_DEVICE_PARTITIONED_READY_H
#define FERRY_DEVICE_PARTITIONED_READY_H

#include "ferry/device/bytes.h"
#include "ferry/device/partitioned/prequest.h"

/* ---- Decisions of the leader of a crew ---- */

/* The results of ferry_partitioned_decide for a unit. */
#define FERRY_PARTITIONED_NOTHING 0u
#define FERRY_PARTITIONED_MOVE 1u    /* move it: no other thread knows that it is complete */
#define FERRY_PARTITIONED_DELIVER 2u /* move it: `ready` and `taken` say so already */

/* Keeps the first error of a round for the host; of several at once, one of them. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_note(MPIX_Prequest preq, int status, int partition) {
  FERRY_DEVICE_GLOBAL ferry_device_u64* const noted = &ferry_partitioned_state_of(preq)->noted;
  if (ferry_device_load_relaxed(noted) == 0) {
    ferry_device_store_release(
        noted, (ferry_device_u64)(ferry_device_u32)status << 32 | (ferry_device_u32)partition);
  }
  return status;
}

/* Returns true if data of this round may be moved. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_is_cleared(MPIX_Prequest preq, ferry_device_u64 round) {
  /* Pairs with the release store at the end of this function. */
  if (ferry_device_load_acquire(&preq->known_cleared) == round) {
    return 1;
  }
  /* Pairs with the receiver's store at its start. */
  if (ferry_device_load_acquire((FERRY_DEVICE_GLOBAL ferry_device_u64*)preq->cleared) < round) {
    return 0;
  }
  ferry_device_store_release(&preq->known_cleared, round);
  return 1;
}

/* Returns true if the host has claimed the unit in this round. The counter has grown before: of
 * this thread and a host that claims, then looks at the counter, one sees the other. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_is_claimed(MPIX_Prequest preq, ferry_device_u32 unit,
                                                       ferry_device_u64 round) {
  FERRY_DEVICE_GLOBAL ferry_partitioned_unit* const its = ferry_partitioned_unit_of(preq, unit);
  if (preq->per_unit == 1) {
    return 0; /* never claimed: it is complete at once */
  }
  ferry_device_full_fence();
  if (ferry_device_load_acquire(&its->claimed) != round) {
    return 0;
  }
  ferry_device_store_release(&its->left, round);
  return 1;
}

/* Returns the unit's mover (FERRY_PARTITIONED_BY_...) at this moment. A host thread that waits has
 * a shorter way to other nodes than ferryd. If it stops waiting just then, the library's own thread
 * finds the marked units. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_partitioned_way(MPIX_Prequest preq,
                                                             ferry_device_u64 round) {
  return preq->leaves_to_waiting != 0 &&
                 ferry_device_load_relaxed(&ferry_partitioned_state_of(preq)->attended) == round
             ? FERRY_PARTITIONED_BY_HOST
             : preq->way;
}

/* Decides what to do about a unit that this thread has completed. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_partitioned_decide(MPIX_Prequest preq,
                                                                ferry_device_u32 unit,
                                                                ferry_device_u64 round,
                                                                ferry_device_u64 full) {
  FERRY_DEVICE_GLOBAL ferry_partitioned_words* const words = ferry_partitioned_words_of(preq, unit);
  const ferry_device_u64 base = (round - 1) * full;
  ferry_device_u32 way;
  if (ferry_partitioned_is_claimed(preq, unit, round)) {
    return FERRY_PARTITIONED_NOTHING;
  }
  way = ferry_partitioned_way(preq, round);
  if (way != FERRY_PARTITIONED_BY_HOST && ferry_partitioned_is_cleared(preq, round)) {
    return FERRY_PARTITIONED_MOVE;
  }
  ferry_device_store_release(&words->ready, base + full);
  if (way == FERRY_PARTITIONED_BY_HOST || !preq->has_atomics) {
    return FERRY_PARTITIONED_NOTHING;
  }
  ferry_device_full_fence();
  return ferry_partitioned_is_cleared(preq, round) &&
                 ferry_device_compare_exchange(&words->taken, base, base + full) == base
             ? FERRY_PARTITIONED_DELIVER
             : FERRY_PARTITIONED_NOTHING;
}

/* Returns those of `bits` that a counter already has, after it has grown by `grown` in this round;
 * all of them, if the counter has not begun the round, or is past it. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_partitioned_again(ferry_device_u64 grown,
                                                               ferry_device_u64 bits,
                                                               ferry_device_u64 full) {
  return grown > full ? bits : grown & bits;
}

/* Adds the bits of partitions [low, high] that are in the unit to its counter. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_partitioned_count(MPIX_Prequest preq,
                                                               ferry_device_u32 unit,
                                                               ferry_device_u32 low,
                                                               ferry_device_u32 high, int* status) {
  FERRY_DEVICE_GLOBAL ferry_device_u64* const counter = ferry_partitioned_counter(preq, unit);
  const ferry_device_u64 round = ferry_device_load_relaxed(&preq->round);
  const ferry_device_u64 full = ferry_partitioned_full(preq, unit);
  const ferry_device_u64 base = (round - 1) * full;
  const ferry_device_u64 asked = ferry_partitioned_bits(preq, unit, low, high);
  ferry_device_u64 bits;
  ferry_device_u64 before = 0;
  if (round == 0) {
    *status = ferry_partitioned_note(preq, MPIX_DEVICE_ERR_REQUEST, (int)low);
    return FERRY_PARTITIONED_NOTHING;
  }
  /* A send to MPI_PROC_NULL: its rounds end without their kernels, so these may belong to any of
   * them. */
  if (preq->way == FERRY_PARTITIONED_NOWHERE) {
    return FERRY_PARTITIONED_NOTHING;
  }
  /* Looks first: a bit that is added twice reads as the next one until it is taken back, so a wrong
   * call of the program would disturb the right ones. */
  bits = asked & ~ferry_partitioned_again(ferry_device_load_relaxed(counter) - base, asked, full);
  if (bits != 0) {
    ferry_device_u64 again;
    /* Acquires the data that other threads have stored, and releases them to the thread that adds
     * the last bit. */
    before = ferry_device_fetch_add(counter, bits) - base;
    again = ferry_partitioned_again(before, bits, full);
    if (again != 0) { /* another thread has added them just now */
      ferry_device_fetch_add(counter, 0 - again);
      bits -= again;
    }
  }
  if (bits != asked) {
    *status =
        ferry_partitioned_note(preq, MPIX_DEVICE_ERR_REQUEST,
                               (int)(low > unit * preq->per_unit ? low : unit * preq->per_unit));
  }
  return bits != 0 && before + bits == full ? ferry_partitioned_decide(preq, unit, round, full)
                                            : FERRY_PARTITIONED_NOTHING;
}

/* ---- Moving a unit ---- */

/* Marks the unit as taken, then as ready: in this order, so that the host never sees it ready and
 * not taken. Must be called before the unit arrives: from then on the round may be over, and the
 * words belong to the next one. */
FERRY_DEVICE_FUNCTION void ferry_partitioned_take(MPIX_Prequest preq, ferry_device_u32 unit,
                                                  ferry_device_u64 end) {
  FERRY_DEVICE_GLOBAL ferry_partitioned_words* const words = ferry_partitioned_words_of(preq, unit);
  ferry_device_store_release(&words->taken, end);
  ferry_device_store_release(&words->ready, end);
}

/* Asks ferryd to put the unit's bytes, with the word of its arrival as their signal. By the leader.
 */
FERRY_DEVICE_FUNCTION int ferry_partitioned_ask(MPIX_Prequest preq, ferry_device_u32 unit,
                                                ferry_device_u32 what, ferry_device_u64 offset,
                                                ferry_device_u64 bytes) {
  const ferry_device_ring ring =
      ferry_device_ring_open_by((FERRY_DEVICE_GLOBAL void*)preq->ring, preq->ring_words,
                                (FERRY_DEVICE_GLOBAL ferry_device_u64*)preq->ring_producers);
  FERRY_DEVICE_GLOBAL ferry_partitioned_unit* const its = ferry_partitioned_unit_of(preq, unit);
  const ferry_device_u64 round = ferry_device_load_relaxed(&preq->round);
  const ferry_device_u32 has_bytes = bytes != 0 ? 1 : 0;
  const ferry_device_u64 first = ferry_device_ring_reserve(ring, 1 + has_bytes);
  ferry_device_far_place arrived;
  ferry_device_place answer;
  if (first == 0) {
    const ferry_device_u64 ended = ferry_device_load_acquire(ring.words + 17);
    return ferry_partitioned_note(preq, ended != 0 ? (int)ended : MPIX_DEVICE_ERR_DAEMON_DIED,
                                  (int)(unit * preq->per_unit));
  }
  /* For the host, which looks at them once the unit is taken. */
  ferry_device_store_relaxed(&its->number, first + has_bytes);
  ferry_device_store_release(&its->asked, round);
  if (what == FERRY_PARTITIONED_MOVE) {
    ferry_partitioned_take(preq, unit, round * ferry_partitioned_full(preq, unit));
  }
  answer.region = preq->state_region;
  answer.reserved = 0;
  answer.offset = preq->state_offset + sizeof(ferry_partitioned_state) +
                  unit * (ferry_device_u64)sizeof(ferry_partitioned_unit);
  arrived.rank = preq->peer;
  arrived.segment = preq->arrived_segment;
  arrived.offset = preq->arrived_offset + unit * (ferry_device_u64)sizeof(ferry_device_u64);
  if (has_bytes != 0) {
    ferry_device_far_place to;
    ferry_device_place from;
    to.rank = preq->peer;
    to.segment = preq->destination_segment;
    to.offset = preq->destination_offset + offset;
    from.region = preq->source_region;
    from.reserved = 0;
    from.offset = preq->source_offset + offset;
    ferry_device_ring_fill_put_signal(ring, first, to, from, bytes, arrived,
                                      FERRY_DEVICE_RING_SIGNAL_ADD,
                                      ferry_partitioned_full(preq, unit), 0, answer);
  } else {
    ferry_device_ring_fill(
        ring, first,
        ferry_device_ring_operation(FERRY_DEVICE_RING_ATOMIC, arrived, 0,
                                    FERRY_DEVICE_RING_ADD | 8u << 8,
                                    ferry_partitioned_full(preq, unit), 0, answer));
  }
  return MPIX_DEVICE_SUCCESS;
}

/* Moves a unit. All threads of the crew call it; the status is the leader's. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_move(ferry_device_crew crew, MPIX_Prequest preq,
                                                 ferry_device_u32 unit, ferry_device_u32 what) {
  const ferry_device_u64 offset = (ferry_device_u64)unit * preq->per_unit * preq->partition_bytes;
  const ferry_device_u64 bytes = ferry_partitioned_count_in(preq, unit) * preq->partition_bytes;
  ferry_device_u64 end; /* of the words, for this round */
  if (preq->way == FERRY_PARTITIONED_BY_KERNEL) {
    ferry_device_fence(); /* the data that others have readied, before this thread's loads */
    ferry_device_copy_part((FERRY_DEVICE_GLOBAL ferry_device_u8*)(preq->destination + offset),
                           (const FERRY_DEVICE_GLOBAL ferry_device_u8*)(preq->source + offset),
                           bytes, crew.thread, crew.count);
    ferry_device_fence();
    ferry_device_crew_barrier(crew);
  }
  if (crew.thread != 0) {
    return MPIX_DEVICE_SUCCESS;
  }
  ferry_device_fetch_add(&preq->moved, 1);
  if (preq->way == FERRY_PARTITIONED_BY_DAEMON) {
    return ferry_partitioned_ask(preq, unit, what, offset, bytes);
  }
  end = ferry_device_load_relaxed(&preq->round) * ferry_partitioned_full(preq, unit);
  if (what == FERRY_PARTITIONED_MOVE) {
    ferry_partitioned_take(preq, unit, end);
  }
  /* Pairs with the acquire loads of the receiver's host and kernels that look for arrivals. */
  ferry_device_store_release((FERRY_DEVICE_GLOBAL ferry_device_u64*)preq->arrived + unit, end);
  return MPIX_DEVICE_SUCCESS;
}

/* ---- The calls ---- */

/* Marks partitions [low, high], which the threads of the crew have stored so far, as ready. All
 * threads of the crew call it. `preq` is a send. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_ready_some(ferry_device_crew crew, MPIX_Prequest preq,
                                                       int low, int high) {
  ferry_device_u32 unit;
  int status = MPIX_DEVICE_SUCCESS;
  if (low < 0 || high < low || high >= (int)preq->partitions) {
    if (crew.thread == 0) {
      (void)ferry_partitioned_note(preq, MPIX_DEVICE_ERR_ARGUMENT,
                                   low < 0 || low >= (int)preq->partitions ? low : high);
    }
    return MPIX_DEVICE_ERR_ARGUMENT;
  }
  for (unit = (ferry_device_u32)low / preq->per_unit;
       unit <= (ferry_device_u32)high / preq->per_unit; ++unit) {
    ferry_device_u32 what = FERRY_PARTITIONED_NOTHING;
    if (crew.thread == 0) {
      what = ferry_partitioned_count(preq, unit, (ferry_device_u32)low, (ferry_device_u32)high,
                                     &status);
    }
    what = (ferry_device_u32)ferry_device_crew_broadcast(crew, what);
    if (what != FERRY_PARTITIONED_NOTHING) {
      const int moved = ferry_partitioned_move(crew, preq, unit, what);
      status = status == MPIX_DEVICE_SUCCESS ? moved : status;
    }
  }
  return (int)ferry_device_crew_broadcast(crew, (ferry_device_u64)status);
}

FERRY_DEVICE_FUNCTION int ferry_partitioned_ready(ferry_device_crew crew, MPIX_Prequest preq,
                                                  int low, int high) {
  const int status = ferry_partitioned_check(preq, FERRY_PARTITIONED_SEND);
  if (status != MPIX_DEVICE_SUCCESS) {
    return status;
  }
  ferry_device_fence();
  ferry_device_crew_barrier(crew); /* all threads have stored their data */
  return ferry_partitioned_ready_some(crew, preq, low, high);
}

FERRY_DEVICE_FUNCTION int ferry_partitioned_ready_list(ferry_device_crew crew, MPIX_Prequest preq,
                                                       int length, const int* partitions) {
  int status = ferry_partitioned_check(preq, FERRY_PARTITIONED_SEND);
  int i;
  if (status != MPIX_DEVICE_SUCCESS) {
    return status;
  }
  if (length < 0) {
    return MPIX_DEVICE_ERR_ARGUMENT;
  }
  ferry_device_fence();
  ferry_device_crew_barrier(crew);
  for (i = 0; i < length; ++i) {
    const int its = ferry_partitioned_ready_some(crew, preq, partitions[i], partitions[i]);
    status = status == MPIX_DEVICE_SUCCESS ? its : status;
  }
  return status;
}

#define FERRY_PARTITIONED_READY(suffix, kind)                                                  \
  FERRY_DEVICE_FUNCTION int MPIX_Pready##suffix(int partition, MPIX_Prequest preq) {           \
    return ferry_partitioned_ready(ferry_device_crew_of(kind), preq, partition, partition);    \
  }                                                                                            \
  FERRY_DEVICE_FUNCTION int MPIX_Pready_range##suffix(int partition_low, int partition_high,   \
                                                      MPIX_Prequest preq) {                    \
    return ferry_partitioned_ready(ferry_device_crew_of(kind), preq, partition_low,            \
                                   partition_high);                                            \
  }                                                                                            \
  FERRY_DEVICE_FUNCTION int MPIX_Pready_list##suffix(int length, const int* partitions,        \
                                                     MPIX_Prequest preq) {                     \
    return ferry_partitioned_ready_list(ferry_device_crew_of(kind), preq, length, partitions); \
  }
FERRY_PARTITIONED_FORMS(FERRY_PARTITIONED_READY)
#undef FERRY_PARTITIONED_READY

#endif
