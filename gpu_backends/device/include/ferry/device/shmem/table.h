/* ferry/device/shmem/table.h - the table by which kernels find the symmetric heaps, order and
 * completion. See ferry/device/shmem.h. */
#ifndef FERRY_DEVICE_SHMEM_TABLE_H
#define FERRY_DEVICE_SHMEM_TABLE_H

#include "ferry/device/groups.h"

/* What calls return, as in ferry.h. */
#define SHMEMX_DEVICE_SUCCESS 0
#define SHMEMX_DEVICE_ERR_ARGUMENT 2     /* no such PE, comparison or signal operation */
#define SHMEMX_DEVICE_ERR_PEER_DIED 14   /* a PE of the team has died */
#define SHMEMX_DEVICE_ERR_DAEMON_DIED 15 /* the node's ferryd has */
#define SHMEMX_DEVICE_ERR_NOT_FOUND 19   /* a PE does not come: it has called shmem_finalize */
/* The PE, or one of the team, is on another node; or the device's link to the host has no atomic
 * operations. */
#define SHMEMX_DEVICE_ERR_UNSUPPORTED 21
#define SHMEMX_DEVICE_ERR_BUFFER 22 /* not all in the symmetric heap, or not aligned */

/* ---- Layout: client/shmem/devices.cc fills it in ---- */

#define FERRY_SHMEM_TABLE_VERSION 1u

/* How a PE of the team is reached. 0: it is on another node. */
typedef struct {
  ferry_device_u64 heap;
  ferry_device_u64 area; /* ferry_shmem_area, for this table's collectives */
} ferry_shmem_way;

/* In memory that the device reads fast; constant. One ferry_shmem_way for each PE follows. */
typedef struct {
  ferry_device_u32 version;
  ferry_device_u32 pe;
  ferry_device_u32 pe_count;
  ferry_device_u32 is_one_node; /* all of the team are here */
  ferry_device_u64 heap_bytes;
  ferry_device_u32 has_atomics; /* the device's operations on the heaps are atomic to CPUs */
  ferry_device_u32 reserved0;
  ferry_device_u64 reserved[4];
} ferry_shmem_table;

/* In host memory, with the heap; one for each table of each PE. One ferry_shmem_member for each PE
 * of the team follows. */
typedef struct {
  /* By the host: why waits end, once a PE of the team has died, or the daemon. */
  ferry_device_u64 error;
  ferry_device_u64 reserved0[15];
  /* By kernels of this PE. */
  ferry_device_u64 noted;  /* the first error of calls that return a value */
  ferry_device_u64 round;  /* of collectives: the last one */
  ferry_device_u64 failed; /* of collectives: the first error; they are out of step from then on */
  ferry_device_u64 reserved1[13];
} ferry_shmem_area;

/* What a PE sees of another one. */
typedef struct {
  ferry_device_u64 round; /* by that one: how far it has come */
  ferry_device_u64 bytes; /* by that one: the length of its block in a collect */
  ferry_device_u64 state; /* by the own host: why that one does not come any more, or 0 */
  ferry_device_u64 reserved[5];
} ferry_shmem_member;

/* ---- A kernel's view of it ---- */

/* Small enough for registers. */
typedef struct {
  const FERRY_DEVICE_GLOBAL ferry_shmem_way* ways;
  FERRY_DEVICE_GLOBAL ferry_shmem_area* own;
  ferry_device_u64 heap;
  ferry_device_u64 heap_bytes;
  int pe;
  int pe_count;
  int is_one_node;
  int has_atomics;
} shmemx_device_t;

/* `table`: what shmemx_device_prepare has returned. */
FERRY_DEVICE_FUNCTION shmemx_device_t shmemx_device_open(const FERRY_DEVICE_GLOBAL void* address) {
  const FERRY_DEVICE_GLOBAL ferry_shmem_table* const table =
      (const FERRY_DEVICE_GLOBAL ferry_shmem_table*)address;
  shmemx_device_t d;
  d.ways = (const FERRY_DEVICE_GLOBAL ferry_shmem_way*)(table + 1);
  d.pe = (int)table->pe;
  d.pe_count = (int)table->pe_count;
  d.is_one_node = (int)table->is_one_node;
  d.has_atomics = (int)table->has_atomics;
  d.heap = d.ways[d.pe].heap;
  d.heap_bytes = table->heap_bytes;
  d.own = (FERRY_DEVICE_GLOBAL ferry_shmem_area*)d.ways[d.pe].area;
  return d;
}

FERRY_DEVICE_FUNCTION int shmemx_device_my_pe(shmemx_device_t d) { return d.pe; }
FERRY_DEVICE_FUNCTION int shmemx_device_n_pes(shmemx_device_t d) { return d.pe_count; }

/* What a PE's area says of PE `of`. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_shmem_member* ferry_shmem_member_of(
    ferry_device_u64 area, int of) {
  return (FERRY_DEVICE_GLOBAL ferry_shmem_member*)((FERRY_DEVICE_GLOBAL ferry_shmem_area*)area +
                                                   1) +
         of;
}

/* ---- Addresses ---- */

typedef struct {
  ferry_device_u64 address;
  int status;
} ferry_shmem_place;

/* Where the device finds PE `pe`'s `bytes` bytes at this PE's address `symmetric`. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find(shmemx_device_t d,
                                                         ferry_device_u64 symmetric,
                                                         ferry_device_u64 bytes, int pe) {
  const ferry_device_u64 offset = symmetric - d.heap; /* huge for an address before it */
  ferry_shmem_place place;
  place.address = 0;
  place.status = SHMEMX_DEVICE_SUCCESS;
  if (pe < 0 || pe >= d.pe_count) {
    place.status = SHMEMX_DEVICE_ERR_ARGUMENT;
  } else if (offset > d.heap_bytes || bytes > d.heap_bytes - offset) {
    place.status = SHMEMX_DEVICE_ERR_BUFFER;
  } else {
    const ferry_device_u64 heap = d.ways[pe].heap;
    place.address = heap + offset;
    if (heap == 0) {
      place.status = SHMEMX_DEVICE_ERR_UNSUPPORTED;
    }
  }
  return place;
}

/* The same for a word, which is aligned. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find_word(shmemx_device_t d,
                                                              ferry_device_u64 symmetric,
                                                              ferry_device_u64 bytes, int pe) {
  ferry_shmem_place place = ferry_shmem_find(d, symmetric, bytes, pe);
  if (place.status == SHMEMX_DEVICE_SUCCESS && symmetric % bytes != 0) {
    place.status = SHMEMX_DEVICE_ERR_BUFFER;
  }
  return place;
}

/* The same for a word to read and write at once. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_find_atomic(shmemx_device_t d,
                                                                ferry_device_u64 symmetric,
                                                                ferry_device_u64 bytes, int pe) {
  ferry_shmem_place place = ferry_shmem_find_word(d, symmetric, bytes, pe);
  if (place.status == SHMEMX_DEVICE_SUCCESS && !d.has_atomics) {
    place.status = SHMEMX_DEVICE_ERR_UNSUPPORTED;
  }
  return place;
}

/* Keeps the first error of a call that cannot return it; of several at once, one of them. */
FERRY_DEVICE_FUNCTION void ferry_shmem_note(shmemx_device_t d, int status) {
  if (status != SHMEMX_DEVICE_SUCCESS && ferry_device_load_relaxed(&d.own->noted) == 0) {
    ferry_device_store_relaxed(&d.own->noted, (ferry_device_u64)status);
  }
}

/* Where loads and stores of the kernel find `pe`'s object at the symmetric address `dest`; null if
 * they do not reach it. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL void* shmemx_device_ptr(
    shmemx_device_t d, const FERRY_DEVICE_GLOBAL void* dest, int pe) {
  const ferry_shmem_place place = ferry_shmem_find(d, (ferry_device_u64)dest, 1, pe);
  return place.status == SHMEMX_DEVICE_SUCCESS ? (FERRY_DEVICE_GLOBAL void*)place.address
                                               : (FERRY_DEVICE_GLOBAL void*)0;
}

/* ---- Order and completion ---- */

/* This thread's puts, atomics and signals before it arrive at each PE before those after it. */
FERRY_DEVICE_FUNCTION void shmemx_device_fence(shmemx_device_t d) {
  (void)d;
  ferry_device_fence();
}
/* Completes what this thread has begun. Returns the first error of calls of this table that return
 * a value, from its making on. */
FERRY_DEVICE_FUNCTION int shmemx_device_quiet(shmemx_device_t d) {
  ferry_device_fence();
  return (int)ferry_device_load_relaxed(&d.own->noted);
}

#endif
