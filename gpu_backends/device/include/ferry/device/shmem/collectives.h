/* ferry/device/shmem/collectives.h - barriers and collectives of data over the team of a table. See
 * ferry/device/shmem.h.
 *
 *   int shmemx_device_sync(d), shmemx_device_barrier(d)
 *   int shmemx_device_TYPE_broadcast(d, dest, source, nelems, PE_root)
 *   int shmemx_device_TYPE_fcollect, _collect, _alltoall(d, dest, source, nelems)
 *   int shmemx_device_TYPE_alltoalls(d, dest, source, dst, sst, nelems)
 *   and broadcastmem, fcollectmem, collectmem, alltoallmem, alltoallsmem, in bytes; in all forms
 *
 * Each PE of the team makes the same calls on its table, by one thread or one group at a time: so
 * several groups that are in collectives at once use a table each. `dest` and `source` are in
 * symmetric heaps, the same on all PEs. Each call blocks until all PEs of the team have called;
 * then the PE's own `dest` is complete, and its `source` may be changed. A barrier also completes
 * what the threads that call have begun; a sync does not. Wrong arguments are refused before that:
 * so all PEs, which name the same, return. Once a PE has died or left, the others are out of step:
 * every later collective of the table returns that error. */
#ifndef FERRY_DEVICE_SHMEM_COLLECTIVES_H
#define FERRY_DEVICE_SHMEM_COLLECTIVES_H

#include "ferry/device/shmem/puts_gets.h"
#include "ferry/device/shmem/strided.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

/* ---- Meeting: each PE stores its round into all others' areas, and waits for theirs ---- */

/* What this PE sees of PE `pe`. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_shmem_member* ferry_shmem_own_member(
    shmemx_device_t d, int pe) {
  return ferry_shmem_member_of(d.ways[d.pe].area, pe);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_await_member(shmemx_device_t d, int pe,
                                                   ferry_device_u64 round) {
  FERRY_DEVICE_GLOBAL ferry_shmem_member* const member = ferry_shmem_own_member(d, pe);
  ferry_device_u32 looks;
  for (looks = 0;; ++looks) {
    /* Read before the round: a PE that has come before it died has come. */
    const ferry_device_u64 state = looks % 64 == 63 ? ferry_device_load_acquire(&member->state) : 0;
    if (ferry_device_load_acquire(&member->round) >= round) {
      return SHMEMX_DEVICE_SUCCESS;
    }
    if (state != 0) {
      return (int)state;
    }
    ferry_device_pause();
  }
}

/* Returns once all PEs of the team have come, the same to all threads of the crew. What any thread
 * of a crew has stored in a PE before, or has asked ferryd to do there, all threads of that PE see
 * after it. */
FERRY_DEVICE_FUNCTION int ferry_shmem_meet(shmemx_device_t d, ferry_device_crew crew) {
  const int step = (int)crew.count;
  ferry_device_u64 round;
  ferry_device_u64 failed;
  int pe;
  if (!d.is_one_node && d.table->ring == 0) {
    return SHMEMX_DEVICE_ERR_UNSUPPORTED;
  }
  ferry_device_fence(); /* this thread's stores, before any thread's round */
  ferry_device_crew_barrier(crew);
  round = ferry_device_load_relaxed(&d.own->round) + 1;
  failed = ferry_device_load_relaxed(&d.own->failed);
  for (pe = (int)crew.thread; pe < d.pe_count; pe += step) {
    (void)ferry_shmem_store_member(d, pe, FERRY_SHMEM_MEMBER_ROUND, round);
  }
  for (pe = (int)crew.thread; pe < d.pe_count && failed == 0; pe += step) {
    failed = (ferry_device_u64)ferry_shmem_await_member(d, pe, round);
    if (failed != 0) { /* of several threads' errors one stays */
      ferry_device_store_relaxed(&d.own->failed, failed);
    }
  }
  ferry_device_crew_barrier(crew);
  ferry_device_fence(); /* what the others have stored, before this thread's loads */
  /* The next call changes these two only after its first barrier. */
  if (crew.thread == 0) {
    ferry_device_store_relaxed(&d.own->round, round);
  }
  return (int)ferry_device_load_relaxed(&d.own->failed);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_barrier(shmemx_device_t d, ferry_device_crew crew) {
  (void)ferry_shmem_quiet_together(d, crew); /* quiet tells of what has failed */
  return ferry_shmem_meet(d, crew);
}

/* The end of a collective: all PEs come, and have what this one has sent; its source is free. */
FERRY_DEVICE_FUNCTION int ferry_shmem_end(shmemx_device_t d, ferry_device_crew crew) {
  int status;
  if (d.table->ring == 0) {
    return ferry_shmem_meet(d, crew);
  }
  ferry_device_crew_barrier(crew); /* all have asked */
  if (crew.thread == 0 && ferry_device_load_relaxed(&ferry_shmem_asks_of(d)->asked_near) != 0) {
    (void)ferry_shmem_quiet_ring(d); /* in this node, a round is a store, which would overtake */
  }
  status = ferry_shmem_meet(d, crew);
  if (status == SHMEMX_DEVICE_SUCCESS && !d.is_one_node) {
    return ferry_shmem_quiet_together(d, crew);
  }
  return status;
}

/* ---- The true ones: bytes, by a crew ---- */

/* Whether such ranges are symmetric: this PE's own tells, since all PEs name the same. */
FERRY_DEVICE_FUNCTION int ferry_shmem_check(shmemx_device_t d, ferry_device_u64 dest,
                                            ferry_device_u64 dest_bytes, ferry_device_u64 source,
                                            ferry_device_u64 source_bytes) {
  const int status = ferry_shmem_find(d, dest, dest_bytes, d.pe).status;
  return status != SHMEMX_DEVICE_SUCCESS ? status
                                         : ferry_shmem_find(d, source, source_bytes, d.pe).status;
}

/* To the same place of all PEs, beginning with the next one, so that not all write to one. */
FERRY_DEVICE_FUNCTION void ferry_shmem_put_to_all(shmemx_device_t d, ferry_device_crew crew,
                                                  ferry_device_u64 dest, ferry_device_u64 source,
                                                  ferry_device_u64 bytes) {
  int i;
  for (i = 1; i <= d.pe_count; ++i) {
    (void)ferry_shmem_put_nbi(d, crew, dest, source, bytes, (d.pe + i) % d.pe_count);
  }
}

FERRY_DEVICE_FUNCTION int ferry_shmem_broadcast(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 bytes, int root) {
  const int status = ferry_shmem_check(d, dest, bytes, source, bytes);
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  if (root < 0 || root >= d.pe_count) {
    return SHMEMX_DEVICE_ERR_ARGUMENT;
  }
  if (root == d.pe) {
    ferry_shmem_put_to_all(d, crew, dest, source, bytes);
  }
  return ferry_shmem_end(d, crew);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_fcollect(shmemx_device_t d, ferry_device_crew crew,
                                               ferry_device_u64 dest, ferry_device_u64 source,
                                               ferry_device_u64 bytes) {
  const int status =
      ferry_shmem_check(d, dest, bytes * (ferry_device_u64)d.pe_count, source, bytes);
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  ferry_shmem_put_to_all(d, crew, dest + bytes * (ferry_device_u64)d.pe, source, bytes);
  return ferry_shmem_end(d, crew);
}

/* The PEs tell one another their lengths first. */
FERRY_DEVICE_FUNCTION int ferry_shmem_collect(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_device_u64 dest, ferry_device_u64 source,
                                              ferry_device_u64 bytes) {
  ferry_device_u64 before = 0;
  ferry_device_u64 all = 0;
  int status;
  int pe;
  for (pe = (int)crew.thread; pe < d.pe_count; pe += (int)crew.count) {
    (void)ferry_shmem_store_member(d, pe, FERRY_SHMEM_MEMBER_BYTES, bytes);
  }
  status = ferry_shmem_meet(d, crew);
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  for (pe = 0; pe < d.pe_count; ++pe) {
    const ferry_device_u64 theirs =
        ferry_device_load_relaxed(&ferry_shmem_own_member(d, pe)->bytes);
    before += pe < d.pe ? theirs : 0;
    all += theirs;
  }
  status = ferry_shmem_check(d, dest, all, source, bytes);
  if (status == SHMEMX_DEVICE_SUCCESS) {
    ferry_shmem_put_to_all(d, crew, dest + before, source, bytes);
  }
  /* In any case: before it nobody may tell the lengths of the next collect. */
  all = (ferry_device_u64)ferry_shmem_end(d, crew);
  return status != SHMEMX_DEVICE_SUCCESS ? status : (int)all;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_alltoall(shmemx_device_t d, ferry_device_crew crew,
                                               ferry_device_u64 dest, ferry_device_u64 source,
                                               ferry_device_u64 bytes) {
  const ferry_device_u64 whole = bytes * (ferry_device_u64)d.pe_count;
  const int status = ferry_shmem_check(d, dest, whole, source, whole);
  int i;
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  for (i = 1; i <= d.pe_count; ++i) {
    const int pe = (d.pe + i) % d.pe_count;
    (void)ferry_shmem_put_nbi(d, crew, dest + bytes * (ferry_device_u64)d.pe,
                              source + bytes * (ferry_device_u64)pe, bytes, pe);
  }
  return ferry_shmem_end(d, crew);
}

/* Strides in elements of `size` bytes. */
FERRY_DEVICE_FUNCTION int ferry_shmem_alltoalls(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 dest_stride,
                                                ferry_device_u64 source_stride,
                                                ferry_device_u64 count, ferry_device_u64 size) {
  const ferry_device_u64 pes = (ferry_device_u64)d.pe_count;
  int status;
  int i;
  /* Of all PEs, then those for one. */
  ferry_shmem_blocks blocks =
      ferry_shmem_blocks_of(dest_stride, source_stride, 1, count * pes, size, &status);
  if (status == SHMEMX_DEVICE_SUCCESS) {
    status = count * pes / pes != count
                 ? SHMEMX_DEVICE_ERR_BUFFER
                 : ferry_shmem_check(d, dest, ferry_shmem_extent(blocks.dest_stride, blocks),
                                     source, ferry_shmem_extent(blocks.source_stride, blocks));
  }
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  blocks.count = count;
  for (i = 1; i <= d.pe_count; ++i) {
    const int pe = (d.pe + i) % d.pe_count;
    (void)ferry_shmem_begin_put_blocks(
        d, crew, dest + count * blocks.dest_stride * (ferry_device_u64)d.pe,
        source + count * blocks.source_stride * (ferry_device_u64)pe, blocks, pe);
  }
  return ferry_shmem_end(d, crew);
}

/* ---- Their names ---- */

#define FERRY_SHMEM_COLLECTIVE(name, suffix, kind, type, size, call)                             \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nelems) {                                                                 \
    return ferry_shmem_##call(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,             \
                              (ferry_device_u64)source, nelems * (size));                        \
  }

#define FERRY_SHMEM_BROADCAST(name, suffix, kind, type, size)                                    \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nelems, int PE_root) {                                                    \
    return ferry_shmem_broadcast(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,          \
                                 (ferry_device_u64)source, nelems * (size), PE_root);            \
  }

#define FERRY_SHMEM_STRIDED_COLLECTIVE(name, suffix, kind, type, size)                           \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst, ferry_device_u64 nelems) {                     \
    return ferry_shmem_alltoalls(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,          \
                                 (ferry_device_u64)source, (ferry_device_u64)dst,                \
                                 (ferry_device_u64)sst, nelems, size);                           \
  }

#define FERRY_SHMEM_TYPED_COLLECTIVES(suffix, kind, name, type)                       \
  FERRY_SHMEM_BROADCAST(name##_broadcast, suffix, kind, type, sizeof(type))           \
  FERRY_SHMEM_COLLECTIVE(name##_fcollect, suffix, kind, type, sizeof(type), fcollect) \
  FERRY_SHMEM_COLLECTIVE(name##_collect, suffix, kind, type, sizeof(type), collect)   \
  FERRY_SHMEM_COLLECTIVE(name##_alltoall, suffix, kind, type, sizeof(type), alltoall) \
  FERRY_SHMEM_STRIDED_COLLECTIVE(name##_alltoalls, suffix, kind, type, sizeof(type))

#define FERRY_SHMEM_BYTE_COLLECTIVES(suffix, kind)                             \
  FERRY_SHMEM_BROADCAST(broadcastmem, suffix, kind, void, 1)                   \
  FERRY_SHMEM_COLLECTIVE(fcollectmem, suffix, kind, void, 1, fcollect)         \
  FERRY_SHMEM_COLLECTIVE(collectmem, suffix, kind, void, 1, collect)           \
  FERRY_SHMEM_COLLECTIVE(alltoallmem, suffix, kind, void, 1, alltoall)         \
  FERRY_SHMEM_STRIDED_COLLECTIVE(alltoallsmem, suffix, kind, void, 1)          \
  FERRY_DEVICE_FUNCTION int shmemx_device_sync##suffix(shmemx_device_t d) {    \
    return ferry_shmem_meet(d, ferry_device_crew_of(kind));                    \
  }                                                                            \
  FERRY_DEVICE_FUNCTION int shmemx_device_barrier##suffix(shmemx_device_t d) { \
    return ferry_shmem_barrier(d, ferry_device_crew_of(kind));                 \
  }

FERRY_SHMEM_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_TYPED_COLLECTIVES)
FERRY_SHMEM_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_BYTE_COLLECTIVES)

#undef FERRY_SHMEM_COLLECTIVE
#undef FERRY_SHMEM_BROADCAST
#undef FERRY_SHMEM_STRIDED_COLLECTIVE
#undef FERRY_SHMEM_TYPED_COLLECTIVES
#undef FERRY_SHMEM_BYTE_COLLECTIVES

#endif
