/* ferry/device/shmem/table.h - the table by which kernels find the symmetric heaps, order and
 * completion. See ferry/device/shmem.h. */
#ifndef FERRY_DEVICE_SHMEM_TABLE_H
#define FERRY_DEVICE_SHMEM_TABLE_H

#include "ferry/device/groups.h"
#include "ferry/device/ring_operations.h"

/* The values that calls return, as in ferry.h. */
#define SHMEMX_DEVICE_SUCCESS 0
#define SHMEMX_DEVICE_ERR_ARGUMENT 2     /* no such PE, comparison or signal operation */
#define SHMEMX_DEVICE_ERR_PEER_DIED 14   /* a PE of the team has died */
#define SHMEMX_DEVICE_ERR_DAEMON_DIED 15 /* the node's ferryd has died */
#define SHMEMX_DEVICE_ERR_NOT_FOUND 19   /* a PE does not come: it has called shmem_finalize */
/* There is no ring by which to ask ferryd for an operation that loads and stores cannot do: the PE
 * is on another node, or the device's link to the host has no atomic operations. */
#define SHMEMX_DEVICE_ERR_UNSUPPORTED 21
#define SHMEMX_DEVICE_ERR_BUFFER 22 /* not all in one symmetric heap, or not aligned */

/* ---- Layout: shmem/device/devices.cc fills it in ---- */

#define FERRY_SHMEM_TABLE_VERSION 3u

/* The number of heaps. Heap 0 is in host memory; the others are in memory of devices (spaces). */
#define FERRY_SHMEM_HEAPS 4

/* How a PE of the team is reached. */
typedef struct {
  /* The addresses of its heaps for kernels; 0: loads and stores do not reach it, or there is no
   * such heap. */
  ferry_device_u64 heaps[FERRY_SHMEM_HEAPS];
  ferry_device_u64 area;        /* ferry_shmem_area, for collectives; 0: out of reach */
  ferry_device_u64 area_offset; /* where that lies in segments[0] */
  ferry_device_u32 segments[FERRY_SHMEM_HEAPS]; /* what ferryd calls its heaps' memory */
  ferry_device_u32 rank;                        /* what ferryd calls it */
  ferry_device_u32 reserved0;
  ferry_device_u64 reserved1;
} ferry_shmem_way;

/* The number of bytes from which on the leader of a crew asks ferryd, in place of stores and loads
 * by all of the crew: for each operation, and for each number of the crew's threads as a power of
 * two, rounded down. */
#define FERRY_SHMEM_PUT 0
#define FERRY_SHMEM_GET 1
#define FERRY_SHMEM_CUTOVER_SIZES 16
#define FERRY_SHMEM_NEVER (~(ferry_device_u64)0)

/* The table, in memory that the device reads fast; constant but for `turn`. One ferry_shmem_way for
 * each PE follows, then, if there is a ring, ferry_shmem_asks, at a multiple of 128 bytes. */
typedef struct {
  ferry_device_u32 version;
  ferry_device_u32 pe;
  ferry_device_u32 pe_count;
  ferry_device_u32 is_one_node; /* all PEs of the team are on this node */
  ferry_device_u32 has_atomics; /* the device's operations on the heaps are atomic to CPUs */
  ferry_device_u32 reserved0;
  ferry_device_u64 heap_bytes[FERRY_SHMEM_HEAPS];   /* 0: there is no such heap */
  ferry_device_u64 heap_offsets[FERRY_SHMEM_HEAPS]; /* where each begins in its segment */
  /* This PE's addresses of the heaps, by which programs name the data there; kernels need not reach
   * them. */
  ferry_device_u64 heap_bases[FERRY_SHMEM_HEAPS];
  ferry_device_u64 ring;          /* the ring by which kernels ask ferryd; 0: none */
  ferry_device_u64 ring_words[4]; /* the ring's description of itself (ferry_device_ring_open_by) */
  /* Memory of this PE for collectives with PEs that loads and stores do not reach; 0: there is no
   * ring. */
  ferry_device_u64 scratch;
  ferry_device_u64 scratch_bytes;
  ferry_device_u64 turn; /* by kernels: numbers the looks for any one of several variables */
  ferry_device_u64 reserved1;
  ferry_device_u64 cutovers[2][FERRY_SHMEM_CUTOVER_SIZES];
} ferry_shmem_table;

/* The number of threads that may wait for an answer of the ring at a time; others wait for them. A
 * table's ring must have so many completions. */
#define FERRY_SHMEM_PLACES 4096u

/* Says which crew uses a completion of the ring: one at a time. */
typedef struct {
  ferry_device_u64 taken;  /* not 0: a crew uses it */
  ferry_device_u64 status; /* of its call, for all of its threads */
} ferry_shmem_answer_place;

/* The words that kernels of this PE write when they use the ring; zero at first. */
typedef struct {
  ferry_device_u64 producers[16]; /* the ring's (ferry_device_ring_open_with) */
  ferry_device_u64 fenced;        /* the number of the last fence */
  ferry_device_u64 asked_near;    /* not 0: silent requests for PEs of this node, too */
  /* The state of meetings (meetings.h): the ring's tickets when the last meeting had waited for all
   * of them, and those of its own rounds; and the failure that the ring told then. */
  ferry_device_u64 met;
  ferry_device_u64 known;
  ferry_device_u64 reserved[12];
  ferry_shmem_answer_place places[FERRY_SHMEM_PLACES];
} ferry_shmem_asks;

/* A PE's words for the collectives of a table, in host memory, with the heap; one for each table of
 * each PE. One ferry_shmem_member for each PE of the team follows. */
typedef struct {
  /* Written by the host: why waits end, once a PE of the team has died, or the daemon. */
  ferry_device_u64 error;
  ferry_device_u64 reserved0[15];
  /* Written by kernels of this PE. */
  ferry_device_u64 noted;  /* the first error of calls that return a value */
  ferry_device_u64 round;  /* of collectives: the last one */
  ferry_device_u64 failed; /* of collectives: the first error; they are out of step from then on */
  /* For PEs that wait for this PE's round, and do not see it: the last round that it has come to,
   * with all its earlier requests over; above 48 bits, `failed`. */
  ferry_device_u64 told;
  ferry_device_u64 reserved1[12];
} ferry_shmem_area;

/* The number of words of elements that travel with the rounds of small reductions: four of 8
 * bytes. */
#define FERRY_SHMEM_VALUES 4

/* The words in which a PE sees another one. */
typedef struct {
  ferry_device_u64 round; /* written by that PE: the last meeting that it has come to */
  ferry_device_u64 bytes; /* written by that PE: the length of its block in a collect */
  ferry_device_u64 state; /* written by this PE's host: why that PE does not come any more, or 0 */
  ferry_device_u64 reserved[5];
  /* Written by that PE: its elements of a small reduction, those of even rounds and those of odd
   * ones: it comes to the next round but one only once this PE has done with the values. */
  ferry_device_u64 values[2][FERRY_SHMEM_VALUES];
} ferry_shmem_member;

/* ---- A kernel's view of it ---- */

/* A kernel's view of a table, small enough for registers. */
typedef struct {
  const FERRY_DEVICE_GLOBAL ferry_shmem_table* table;
  const FERRY_DEVICE_GLOBAL ferry_shmem_way* ways;
  FERRY_DEVICE_GLOBAL ferry_shmem_area* own;
  ferry_device_u64 heap; /* the address of the first heap */
  ferry_device_u64 heap_bytes;
  int pe;
  int pe_count;
  int is_one_node;
  int has_atomics;
} shmemx_device_t;

/* Returns a view of the table at `address`, which shmemx_device_prepare has returned. */
FERRY_DEVICE_FUNCTION shmemx_device_t shmemx_device_open(const FERRY_DEVICE_GLOBAL void* address) {
  const FERRY_DEVICE_GLOBAL ferry_shmem_table* const table =
      (const FERRY_DEVICE_GLOBAL ferry_shmem_table*)address;
  shmemx_device_t d;
  d.table = table;
  d.ways = (const FERRY_DEVICE_GLOBAL ferry_shmem_way*)(table + 1);
  d.pe = (int)table->pe;
  d.pe_count = (int)table->pe_count;
  d.is_one_node = (int)table->is_one_node;
  d.has_atomics = (int)table->has_atomics;
  d.heap = d.ways[d.pe].heaps[0];
  d.heap_bytes = table->heap_bytes[0];
  d.own = (FERRY_DEVICE_GLOBAL ferry_shmem_area*)d.ways[d.pe].area;
  return d;
}

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_shmem_asks* ferry_shmem_asks_of(shmemx_device_t d) {
  const ferry_device_u64 end = (ferry_device_u64)(d.ways + d.pe_count);
  return (FERRY_DEVICE_GLOBAL ferry_shmem_asks*)((end + 127) & ~(ferry_device_u64)127);
}
FERRY_DEVICE_FUNCTION ferry_device_ring ferry_shmem_ring(shmemx_device_t d) {
  return ferry_device_ring_open_by((FERRY_DEVICE_GLOBAL void*)d.table->ring, d.table->ring_words,
                                   ferry_shmem_asks_of(d)->producers);
}

FERRY_DEVICE_FUNCTION int shmemx_device_my_pe(shmemx_device_t d) { return d.pe; }
FERRY_DEVICE_FUNCTION int shmemx_device_n_pes(shmemx_device_t d) { return d.pe_count; }

/* Returns the words in which a PE's area describes PE `of`. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_shmem_member* ferry_shmem_member_of(
    ferry_device_u64 area, int of) {
  return (FERRY_DEVICE_GLOBAL ferry_shmem_member*)((FERRY_DEVICE_GLOBAL ferry_shmem_area*)area +
                                                   1) +
         of;
}

/* ---- Addresses ---- */

/* A PE's place in a heap. */
typedef struct {
  ferry_device_u64 address; /* for loads and stores; 0: only ferryd reaches it */
  ferry_device_u64 offset;  /* in the heap */
  int heap;
  int status;
} ferry_shmem_place;

/* Returns the heap in which all of this PE's `bytes` bytes at `symmetric` lie, and sets *offset;
 * -1: there is none. */
FERRY_DEVICE_FUNCTION int ferry_shmem_heap_of(shmemx_device_t d, ferry_device_u64 symmetric,
                                              ferry_device_u64 bytes, ferry_device_u64* offset) {
  int heap;
  *offset = symmetric - d.heap; /* huge for an address before it */
  if (*offset <= d.heap_bytes && bytes <= d.heap_bytes - *offset) {
    return 0;
  }
  for (heap = 1; heap < FERRY_SHMEM_HEAPS; ++heap) {
    const ferry_device_u64 size = d.table->heap_bytes[heap];
    *offset = symmetric - d.table->heap_bases[heap];
    if (size != 0 && *offset <= size && bytes <= size - *offset) {
      return heap;
    }
  }
  return -1;
}

/* Returns the place in PE `pe` of the `bytes` bytes at this PE's address `symmetric`. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find(shmemx_device_t d,
                                                         ferry_device_u64 symmetric,
                                                         ferry_device_u64 bytes, int pe) {
  ferry_shmem_place place;
  place.address = 0;
  place.offset = 0;
  place.heap = 0;
  place.status = SHMEMX_DEVICE_SUCCESS;
  if (pe < 0 || pe >= d.pe_count) {
    place.status = SHMEMX_DEVICE_ERR_ARGUMENT;
    return place;
  }
  place.heap = ferry_shmem_heap_of(d, symmetric, bytes, &place.offset);
  if (place.heap < 0) {
    place.status = SHMEMX_DEVICE_ERR_BUFFER;
  } else {
    const ferry_device_u64 heap = d.ways[pe].heaps[place.heap];
    place.address = heap == 0 ? 0 : heap + place.offset;
    if (heap == 0 && d.table->ring == 0) {
      place.status = SHMEMX_DEVICE_ERR_UNSUPPORTED;
    }
  }
  return place;
}

/* Returns the place in PE `pe` of a word, which must be aligned. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find_word(shmemx_device_t d,
                                                              ferry_device_u64 symmetric,
                                                              ferry_device_u64 bytes, int pe) {
  ferry_shmem_place place = ferry_shmem_find(d, symmetric, bytes, pe);
  if (place.status == SHMEMX_DEVICE_SUCCESS && symmetric % bytes != 0) {
    place.status = SHMEMX_DEVICE_ERR_BUFFER;
  }
  return place;
}

/* Returns true if this heap is a space that only streams reach: inside the node ferryd leaves those
 * to kernels. */
FERRY_DEVICE_FUNCTION int ferry_shmem_is_by_stream(shmemx_device_t d, int heap) {
  return (int)(d.ways[d.pe].segments[heap] >> 31);
}

/* Returns the place in PE `pe` of an aligned word for an atomic operation. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find_atomic(shmemx_device_t d,
                                                                ferry_device_u64 symmetric,
                                                                ferry_device_u64 bytes, int pe) {
  ferry_shmem_place place = ferry_shmem_find_word(d, symmetric, bytes, pe);
  if (place.status == SHMEMX_DEVICE_SUCCESS && !d.has_atomics &&
      !ferry_shmem_is_by_stream(d, place.heap)) {
    place.address = 0; /* ferryd's CPU has atomic operations */
    if (d.table->ring == 0) {
      place.status = SHMEMX_DEVICE_ERR_UNSUPPORTED;
    }
  }
  return place;
}

/* Keeps the first error of a call that cannot return it; of several at once, one of them. */
FERRY_DEVICE_FUNCTION void ferry_shmem_note(shmemx_device_t d, int status) {
  if (status != SHMEMX_DEVICE_SUCCESS && ferry_device_load_relaxed(&d.own->noted) == 0) {
    ferry_device_store_relaxed(&d.own->noted, (ferry_device_u64)status);
  }
}

/* Returns the address at which loads and stores of the kernel find `pe`'s object at the symmetric
 * address `dest`; null if they do not reach it. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL void* shmemx_device_ptr(
    shmemx_device_t d, const FERRY_DEVICE_GLOBAL void* dest, int pe) {
  const ferry_shmem_place place = ferry_shmem_find(d, (ferry_device_u64)dest, 1, pe);
  return place.status == SHMEMX_DEVICE_SUCCESS ? (FERRY_DEVICE_GLOBAL void*)place.address
                                               : (FERRY_DEVICE_GLOBAL void*)0;
}

/* ---- Order and completion ---- */

/* Blocks until all requests that the table's ring has got so far are over. Returns the first
 * failure that no call has told, since the table was made; or why the ring has ended. */
FERRY_DEVICE_FUNCTION int ferry_shmem_quiet_ring(shmemx_device_t d) {
  return d.table->ring == 0 ? SHMEMX_DEVICE_SUCCESS : ferry_device_ring_quiet(ferry_shmem_ring(d));
}

/* This thread's puts, atomics and signals before it arrive at each PE before those after it. Blocks
 * only where ferryd was asked for nonblocking puts to PEs of this node, which stores may overtake.
 */
FERRY_DEVICE_FUNCTION void shmemx_device_fence(shmemx_device_t d) {
  FERRY_DEVICE_GLOBAL ferry_shmem_asks* const asks = ferry_shmem_asks_of(d);
  ferry_device_u64 posted;
  ferry_device_fence();
  if (d.table->ring == 0) {
    return;
  }
  posted = ferry_device_load_relaxed(asks->producers);
  if (posted == ferry_device_load_relaxed(&asks->fenced)) {
    return; /* the ring has got no request since the last fence */
  }
  if (ferry_device_load_relaxed(&asks->asked_near) != 0) {
    (void)ferry_shmem_quiet_ring(d); /* a later quiet returns the error, too */
  } else {
    posted = ferry_device_ring_fence(ferry_shmem_ring(d));
  }
  ferry_device_store_relaxed(&asks->fenced, posted);
}
/* Completes the operations that this thread has begun: blocks until ferryd has carried out all
 * requests. Returns the first error since the table was made of calls that return a value, or that
 * returned before their end. */
FERRY_DEVICE_FUNCTION int shmemx_device_quiet(shmemx_device_t d) {
  ferry_device_fence();
  ferry_shmem_note(d, ferry_shmem_quiet_ring(d));
  return (int)ferry_device_load_relaxed(&d.own->noted);
}

#endif
