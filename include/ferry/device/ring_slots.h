/* ferry/device/ring_slots.h - the slots of a ring of a device: how threads take them, and publish
 * requests of 64 bytes in them. See ferry/device/ring.h, which programs include.
 *
 * A slot belongs to a ticket. It is free once the ticket is less than the ring's length past the
 * head, which ferryd moves; its first word, the ticket + 1, says that it holds that ticket's
 * request. */
#ifndef FERRY_DEVICE_RING_SLOTS_H
#define FERRY_DEVICE_RING_SLOTS_H

#include "ferry/device/platform.h"

typedef struct {
  ferry_device_u32 kind;
  ferry_device_u32 completion_region; /* 0: none */
  ferry_device_u64 completion;        /* offset in it */
  ferry_device_u32 region;            /* the place it is about */
  ferry_device_u32 flags;             /* 0 */
  ferry_device_u64 offset;
  ferry_device_u64 value;
  ferry_device_u64 reserved[2]; /* 0; what ring_operations.h needs */
} ferry_device_ring_request;

typedef struct {
  ferry_device_u64 value;
  ferry_device_u64 done; /* the request's number above 16 bits of status */
} ferry_device_ring_completion;

/* A thread's view of a ring, small enough for its registers. */
typedef struct {
  FERRY_DEVICE_GLOBAL ferry_device_u64* words;     /* MpscRingLayout */
  FERRY_DEVICE_GLOBAL ferry_device_u64* producers; /* tickets, and the head that was last seen */
  FERRY_DEVICE_GLOBAL ferry_device_u64* slots;
  FERRY_DEVICE_GLOBAL ferry_device_ring_completion* completions;
  ferry_device_u64 completions_offset;
  ferry_device_u32 completion_count;
  ferry_device_u32 region;
  ferry_device_u32 capacity;
} ferry_device_ring;

/* Returns a view of the ring at `address`. `words`: MpscRingLayout's from `capacity` on, or a copy
 * of these four that the device reads faster; `producers`: as in ferry_device_ring_open_with. */
FERRY_DEVICE_FUNCTION ferry_device_ring ferry_device_ring_open_by(
    FERRY_DEVICE_GLOBAL void* address, const FERRY_DEVICE_GLOBAL ferry_device_u64* words,
    FERRY_DEVICE_GLOBAL ferry_device_u64* producers) {
  ferry_device_ring ring;
  const ferry_device_u64 sizes = words[0];
  ring.words = (FERRY_DEVICE_GLOBAL ferry_device_u64*)address;
  ring.capacity = (ferry_device_u32)sizes;
  ring.completion_count = (ferry_device_u32)(sizes >> 32);
  ring.region = (ferry_device_u32)words[1];
  ring.completions_offset = words[2];
  ring.producers = producers;
  ring.slots = ring.words + 48;
  ring.completions =
      (FERRY_DEVICE_GLOBAL ferry_device_ring_completion*)(ring.slots +
                                                          (ferry_device_u64)ring.capacity * 8);
  return ring;
}

/* Returns a view of the ring at `address`. Each thread that uses the ring calls it once. */
FERRY_DEVICE_FUNCTION ferry_device_ring ferry_device_ring_open(FERRY_DEVICE_GLOBAL void* address) {
  FERRY_DEVICE_GLOBAL ferry_device_u64* const words =
      (FERRY_DEVICE_GLOBAL ferry_device_u64*)address;
  const ferry_device_u64 producers = words[35];
  return ferry_device_ring_open_by(
      address, words + 32,
      producers == 0 ? words : (FERRY_DEVICE_GLOBAL ferry_device_u64*)producers);
}

/* Returns a view of the ring whose producers' words are an argument of the kernel (two words, zero
 * at first, the same for all producers of the ring). Null: uses the words that the ring names. */
FERRY_DEVICE_FUNCTION ferry_device_ring ferry_device_ring_open_with(
    FERRY_DEVICE_GLOBAL void* address, FERRY_DEVICE_GLOBAL ferry_device_u64* producers) {
  ferry_device_ring ring = ferry_device_ring_open(address);
  if (producers != 0) {
    ring.producers = producers;
  }
  return ring;
}

/* ---- Posting ---- */

/* The number of a thread's looks for room before it takes its place in the line. */
#define FERRY_DEVICE_RING_LOOKS 1024u

/* Returns true if the tickets before `end` have slots, seen from a head that may be older, or
 * newer. */
FERRY_DEVICE_FUNCTION int ferry_device_ring_fits(ferry_device_ring ring, ferry_device_u64 head,
                                                 ferry_device_u64 end) {
  return (ferry_device_i64)(end - head) <= (ferry_device_i64)ring.capacity;
}

/* Returns the number of slots that may be taken at once: half of them, so that ferryd reads one
 * half while the other one is written. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_ring_most(ferry_device_ring ring) {
  return ring.capacity / 2;
}

/* Returns the number of slots that stay free for threads that took their tickets at the same time,
 * and did not see each other's. None on devices: their threads run until they end, so one may well
 * wait with a ticket. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_ring_spare(ferry_device_ring ring) {
#if defined(FERRY_DEVICE_IS_HOST)
  return ring.capacity / 8;
#else
  (void)ring;
  return 0;
#endif
}

/* Takes `count` tickets in a row by one fetch-add, and waits until their slots are free. Returns
 * the number of the first; each of them must be filled. 0: the ring has ended, or `count` is 0 or
 * more than ferry_device_ring_most.
 *
 * Where the ring is full a thread first waits without tickets. A waiting thread that does not run
 * (emulated threads may be more than the cores) then delays no other. After FERRY_DEVICE_RING_LOOKS
 * looks it takes its tickets, which keep its place. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_reserve(ferry_device_ring ring,
                                                                 ferry_device_u32 count) {
  /* Pairs with the release by the thread that saw this head: the slots before it have been read. */
  ferry_device_u64 head = ferry_device_load_acquire(ring.producers + 1);
  const ferry_device_u32 wanted = count + ferry_device_ring_spare(ring);
  ferry_device_u64 end = ferry_device_load_relaxed(ring.producers) + wanted;
  ferry_device_u32 looks = 0;
  int is_taken = 0;
  if (count == 0 || count > ferry_device_ring_most(ring)) {
    return 0;
  }
  for (;;) {
    if (ferry_device_ring_fits(ring, head, end)) {
      if (is_taken) {
        return end - count + 1;
      }
    } else if (is_taken || looks < FERRY_DEVICE_RING_LOOKS) {
      head = ferry_device_load_acquire(ring.words + 16);
      if (!is_taken) {
        end = ferry_device_load_relaxed(ring.producers) + wanted;
      }
      if (ferry_device_ring_fits(ring, head, end)) {
        ferry_device_store_release(ring.producers + 1, head); /* an older one does no harm */
        continue;
      }
      if (ferry_device_load_acquire(ring.words + 17) != 0) {
        return 0;
      }
      ++looks;
      ferry_device_pause();
      continue;
    }
    end = ferry_device_fetch_add(ring.producers, count) + count;
    is_taken = 1;
  }
}

/* Publishes the request of a number that ferry_device_ring_reserve gave. */
FERRY_DEVICE_FUNCTION void ferry_device_ring_fill(ferry_device_ring ring, ferry_device_u64 number,
                                                  ferry_device_ring_request request) {
  FERRY_DEVICE_GLOBAL ferry_device_u64* const slot =
      ring.slots + ((number - 1) & (ring.capacity - 1)) * 8;
  slot[1] = request.kind | (ferry_device_u64)request.completion_region << 32;
  slot[2] = request.completion;
  slot[3] = request.region | (ferry_device_u64)request.flags << 32;
  slot[4] = request.offset;
  slot[5] = request.value;
  slot[6] = request.reserved[0];
  slot[7] = request.reserved[1];
  ferry_device_store_release(slot, number);
}

/* Publishes a request. Returns its number, by which its answer is known; 0: the ring has ended. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_ring_post(ferry_device_ring ring,
                                                              ferry_device_ring_request request) {
  const ferry_device_u64 number = ferry_device_ring_reserve(ring, 1);
  if (number != 0) {
    ferry_device_ring_fill(ring, number, request);
  }
  return number;
}

#endif
