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
 * what the threads that call have begun; a sync need not.
 *
 * Errors: wrong arguments are refused before that: so all PEs, which name the same, return, and the
 * table goes on. The lengths of a collect differ: all PEs refuse one that goes past a heap. A later
 * failure at one PE is a failure at all: where a part of the work could not be done, or a PE has
 * died or left, all return an error, and `dest` holds anything. From then on they are out of step:
 * every later collective of the table returns an error; a new table begins anew. Only failures of
 * the call's own requests count, not those of earlier calls that the table's ring remembers; but
 * failures of requests that other threads make of the same table meanwhile do. */
#ifndef FERRY_DEVICE_SHMEM_COLLECTIVES_H
#define FERRY_DEVICE_SHMEM_COLLECTIVES_H

#include "ferry/device/shmem/meetings.h"
#include "ferry/device/shmem/puts_gets.h"
#include "ferry/device/shmem/strided.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

/* ---- The true ones: bytes, by a crew ---- */

/* Returns 0 if such ranges are symmetric, else an error: this PE's own ranges tell, since all PEs
 * name the same. */
FERRY_DEVICE_FUNCTION int ferry_shmem_check(shmemx_device_t d, ferry_device_u64 dest,
                                            ferry_device_u64 dest_bytes, ferry_device_u64 source,
                                            ferry_device_u64 source_bytes) {
  const int status = ferry_shmem_find(d, dest, dest_bytes, d.pe).status;
  return status != SHMEMX_DEVICE_SUCCESS ? status
                                         : ferry_shmem_find(d, source, source_bytes, d.pe).status;
}

/* Puts bytes at the same place of all PEs, beginning with the next PE, so that not all write to one
 * at the same time. */
FERRY_DEVICE_FUNCTION int ferry_shmem_put_to_all(shmemx_device_t d, ferry_device_crew crew,
                                                 ferry_device_u64 dest, ferry_device_u64 source,
                                                 ferry_device_u64 bytes) {
  int status = SHMEMX_DEVICE_SUCCESS;
  int i;
  for (i = 1; i <= d.pe_count && status == SHMEMX_DEVICE_SUCCESS; ++i) {
    status = ferry_shmem_put_nbi(d, crew, dest, source, bytes, (d.pe + i) % d.pe_count);
  }
  return status;
}

/* Ends a collective whose puts were asked for with `status`, after `mark`: all PEs have come, and
 * have the data that this one has sent; its source is free. */
FERRY_DEVICE_FUNCTION int ferry_shmem_end(shmemx_device_t d, ferry_device_crew crew, int mark,
                                          int status) {
  return ferry_shmem_end_with(d, crew, ferry_shmem_outcome(d, crew, mark, status, -1));
}

FERRY_DEVICE_FUNCTION int ferry_shmem_broadcast(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 bytes, int root) {
  int status = ferry_shmem_check(d, dest, bytes, source, bytes);
  int mark;
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  if (root < 0 || root >= d.pe_count) {
    return SHMEMX_DEVICE_ERR_ARGUMENT;
  }
  if (root != d.pe) {
    return ferry_shmem_meet(d, crew);
  }
  mark = ferry_shmem_mark(d, crew, 1);
  status = ferry_shmem_put_to_all(d, crew, dest, source, bytes);
  return ferry_shmem_end(d, crew, mark, status);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_fcollect(shmemx_device_t d, ferry_device_crew crew,
                                               ferry_device_u64 dest, ferry_device_u64 source,
                                               ferry_device_u64 bytes) {
  int status = ferry_shmem_check(d, dest, bytes * (ferry_device_u64)d.pe_count, source, bytes);
  int mark;
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  mark = ferry_shmem_mark(d, crew, 1);
  status = ferry_shmem_put_to_all(d, crew, dest + bytes * (ferry_device_u64)d.pe, source, bytes);
  return ferry_shmem_end(d, crew, mark, status);
}

/* The value that a PE sends in place of a length that goes past the heap. */
#define FERRY_SHMEM_NO_LENGTH (~(ferry_device_u64)0)

/* Collects blocks of different lengths, which the PEs tell one another first. */
FERRY_DEVICE_FUNCTION int ferry_shmem_collect(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_device_u64 dest, ferry_device_u64 source,
                                              ferry_device_u64 bytes) {
  const int mark = ferry_shmem_mark(d, crew, 1);
  const int has_source = ferry_shmem_find(d, source, bytes, d.pe).status == SHMEMX_DEVICE_SUCCESS;
  ferry_device_u64 before = 0;
  ferry_device_u64 all = 0;
  int wrong;
  int status;
  int pe;
  if (!d.is_one_node && d.table->ring == 0) {
    return SHMEMX_DEVICE_ERR_UNSUPPORTED;
  }
  ferry_shmem_store_members(d, crew, FERRY_SHMEM_MEMBER_BYTES,
                            has_source ? bytes : FERRY_SHMEM_NO_LENGTH);
  /* A PE whose length has not arrived everywhere does not come to the meeting: the others would
   * take the length of an earlier collect. */
  status = ferry_shmem_end(d, crew, mark, SHMEMX_DEVICE_SUCCESS);
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  wrong = SHMEMX_DEVICE_SUCCESS;
  for (pe = 0; pe < d.pe_count; ++pe) {
    const ferry_device_u64 theirs =
        ferry_device_load_relaxed(&ferry_shmem_own_member(d, pe)->bytes);
    if (theirs == FERRY_SHMEM_NO_LENGTH) {
      wrong = SHMEMX_DEVICE_ERR_BUFFER;
    }
    before += pe < d.pe ? theirs : 0;
    all += theirs;
  }
  if (wrong == SHMEMX_DEVICE_SUCCESS) {
    wrong = ferry_shmem_find(d, dest, all, d.pe).status;
  }
  if (wrong == SHMEMX_DEVICE_SUCCESS) {
    status = ferry_shmem_put_to_all(d, crew, dest + before, source, bytes);
  }
  /* Ends in any case: before it no PE may tell the length of the next collect. */
  status = ferry_shmem_end(d, crew, mark, status);
  return wrong != SHMEMX_DEVICE_SUCCESS ? wrong : status;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_alltoall(shmemx_device_t d, ferry_device_crew crew,
                                               ferry_device_u64 dest, ferry_device_u64 source,
                                               ferry_device_u64 bytes) {
  const ferry_device_u64 whole = bytes * (ferry_device_u64)d.pe_count;
  int status = ferry_shmem_check(d, dest, whole, source, whole);
  int mark;
  int i;
  if (status != SHMEMX_DEVICE_SUCCESS) {
    return status;
  }
  mark = ferry_shmem_mark(d, crew, 1);
  for (i = 1; i <= d.pe_count && status == SHMEMX_DEVICE_SUCCESS; ++i) {
    const int pe = (d.pe + i) % d.pe_count;
    status = ferry_shmem_put_nbi(d, crew, dest + bytes * (ferry_device_u64)d.pe,
                                 source + bytes * (ferry_device_u64)pe, bytes, pe);
  }
  return ferry_shmem_end(d, crew, mark, status);
}

/* Exchanges elements that lie apart. Strides are in elements of `size` bytes. */
FERRY_DEVICE_FUNCTION int ferry_shmem_alltoalls(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 dest_stride,
                                                ferry_device_u64 source_stride,
                                                ferry_device_u64 count, ferry_device_u64 size) {
  const ferry_device_u64 pes = (ferry_device_u64)d.pe_count;
  int status;
  int mark;
  int i;
  /* The blocks of all PEs; then those for one. */
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
  mark = ferry_shmem_mark(d, crew, 1);
  for (i = 1; i <= d.pe_count && status == SHMEMX_DEVICE_SUCCESS; ++i) {
    const int pe = (d.pe + i) % d.pe_count;
    status = ferry_shmem_begin_put_blocks(
        d, crew, dest + count * blocks.dest_stride * (ferry_device_u64)d.pe,
        source + count * blocks.source_stride * (ferry_device_u64)pe, blocks, pe);
  }
  return ferry_shmem_end(d, crew, mark, status);
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
    return ferry_shmem_meet(d, ferry_device_crew_of(kind));                    \
  }

FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_TYPED_COLLECTIVES)
FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_BYTE_COLLECTIVES)

#undef FERRY_SHMEM_COLLECTIVE
#undef FERRY_SHMEM_BROADCAST
#undef FERRY_SHMEM_STRIDED_COLLECTIVE
#undef FERRY_SHMEM_TYPED_COLLECTIVES
#undef FERRY_SHMEM_BYTE_COLLECTIVES

#endif
