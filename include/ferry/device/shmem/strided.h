/* ferry/device/shmem/strided.h - puts and gets of elements, or of blocks, that lie apart. See
 * ferry/device/shmem.h.
 *
 *   int shmemx_device_TYPE_iput(d, dest, source, dst, sst, nelems, pe)             and _iget
 *   int shmemx_device_TYPE_ibput(d, dest, source, dst, sst, bsize, nblocks, pe)    and _ibget
 *
 * Element, or block, i goes from source + i * sst to dest + i * dst; all counts are of elements. A
 * stride is at least 1, or at least the block. All forms; a group's call ends with a barrier of the
 * group. */
#ifndef FERRY_DEVICE_SHMEM_STRIDED_H
#define FERRY_DEVICE_SHMEM_STRIDED_H

#include "ferry/device/bytes.h"
#include "ferry/device/shmem/puts_gets.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

/* ---- The true ones: bytes, by a crew ---- */

/* Blocks that lie apart: sizes and strides in bytes. */
typedef struct {
  ferry_device_u64 dest_stride;
  ferry_device_u64 source_stride;
  ferry_device_u64 block;
  ferry_device_u64 count;
} ferry_shmem_blocks;

/* Describes `count` blocks of `block` elements of `size` bytes, at most 16. `*status` is an error
 * if the strides are too short, or go further than any memory does. */
FERRY_DEVICE_FUNCTION ferry_shmem_blocks ferry_shmem_blocks_of(ferry_device_u64 dest_stride,
                                                               ferry_device_u64 source_stride,
                                                               ferry_device_u64 block,
                                                               ferry_device_u64 count,
                                                               ferry_device_u64 size, int* status) {
  const ferry_device_u64 most = ~(ferry_device_u64)0 >> 1;
  ferry_shmem_blocks blocks;
  *status = SHMEMX_DEVICE_SUCCESS;
  if (block == 0) {
    count = 0;
  }
  if (count < 2) { /* there is nothing to step over */
    dest_stride = block;
    source_stride = block;
  } else if (dest_stride > most || source_stride > most || /* less than 0 */
             dest_stride < block || source_stride < block) {
    *status = SHMEMX_DEVICE_ERR_ARGUMENT;
  }
  /* Most calls need no division. */
  if (*status == SHMEMX_DEVICE_SUCCESS && (dest_stride | source_stride | count) >> 29 != 0 &&
      count != 0 && (dest_stride > most / size / count || source_stride > most / size / count)) {
    *status = SHMEMX_DEVICE_ERR_BUFFER;
  }
  blocks.dest_stride = dest_stride * size;
  blocks.source_stride = source_stride * size;
  blocks.block = block * size;
  blocks.count = count;
  return blocks;
}

/* Returns the bytes from the first block's beginning to the last one's end. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_extent(ferry_device_u64 stride,
                                                          ferry_shmem_blocks blocks) {
  return blocks.count == 0 ? 0 : (blocks.count - 1) * stride + blocks.block;
}

FERRY_DEVICE_FUNCTION void ferry_shmem_copy_blocks(ferry_device_crew crew, ferry_device_u64 to,
                                                   ferry_device_u64 from,
                                                   ferry_shmem_blocks blocks) {
  ferry_device_copy_blocks_part((FERRY_DEVICE_GLOBAL ferry_device_u8*)to, blocks.dest_stride,
                                (const FERRY_DEVICE_GLOBAL ferry_device_u8*)from,
                                blocks.source_stride, blocks.count, blocks.block, crew.thread,
                                crew.count);
}

/* Returns the place of block `index`. */
FERRY_DEVICE_FUNCTION ferry_shmem_place ferry_shmem_block_at(ferry_shmem_place first,
                                                             ferry_device_u64 stride,
                                                             ferry_device_u64 index) {
  first.offset += index * stride;
  return first;
}

/* Begins to put blocks. Puts that ferryd is asked for may still be under way when it returns. */
FERRY_DEVICE_FUNCTION int ferry_shmem_begin_put_blocks(shmemx_device_t d, ferry_device_crew crew,
                                                       ferry_device_u64 dest,
                                                       ferry_device_u64 source,
                                                       ferry_shmem_blocks blocks, int pe) {
  const ferry_shmem_place to =
      ferry_shmem_find(d, dest, ferry_shmem_extent(blocks.dest_stride, blocks), pe);
  const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
  ferry_device_u64 i;
  int status = to.status;
  if (status == SHMEMX_DEVICE_SUCCESS && to.address != 0) {
    ferry_shmem_copy_blocks(crew, to.address, source, blocks);
  } else if (status == SHMEMX_DEVICE_SUCCESS) {
    status = ferry_shmem_check_put(d, to, source, blocks.block,
                                   ferry_shmem_extent(blocks.source_stride, blocks), pe);
    /* Each thread asks ferryd for its own blocks. */
    for (i = crew.thread; i < blocks.count && status == SHMEMX_DEVICE_SUCCESS; i += crew.count) {
      (void)ferry_shmem_ask_put(d, alone, ferry_shmem_block_at(to, blocks.dest_stride, i),
                                source + i * blocks.source_stride, blocks.block, pe, 1);
    }
  }
  return status;
}

/* Begins to get blocks. A get into memory that ferryd does not know has an answer, which only its
 * crew gets: so all threads of the crew take part in each. */
FERRY_DEVICE_FUNCTION int ferry_shmem_begin_get_blocks(shmemx_device_t d, ferry_device_crew crew,
                                                       ferry_device_u64 dest,
                                                       ferry_device_u64 source,
                                                       ferry_shmem_blocks blocks, int pe) {
  const ferry_shmem_place from =
      ferry_shmem_find(d, source, ferry_shmem_extent(blocks.source_stride, blocks), pe);
  const ferry_device_u64 extent = ferry_shmem_extent(blocks.dest_stride, blocks);
  ferry_device_u64 i;
  int status = from.status;
  if (status == SHMEMX_DEVICE_SUCCESS && from.address != 0) {
    ferry_shmem_copy_blocks(crew, dest, from.address, blocks);
  } else if (status == SHMEMX_DEVICE_SUCCESS) {
    ferry_shmem_request request;
    const int is_known = ferry_shmem_name_own(d, dest, extent, &request);
    const ferry_device_crew askers =
        is_known ? ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD) : crew;
    const ferry_device_u64 step = is_known ? crew.count : 1;
    for (i = is_known ? crew.thread : 0; i < blocks.count && status == SHMEMX_DEVICE_SUCCESS;
         i += step) {
      status = ferry_shmem_ask_get(d, askers, dest + i * blocks.dest_stride,
                                   ferry_shmem_block_at(from, blocks.source_stride, i),
                                   blocks.block, pe, is_known);
    }
  }
  return status;
}

/* Returns true if ferryd is to be asked for the memory at `there` in PE `pe`. */
FERRY_DEVICE_FUNCTION int ferry_shmem_asks_for(shmemx_device_t d, ferry_device_u64 there, int pe) {
  const ferry_shmem_place place = ferry_shmem_find(d, there, 0, pe);
  return place.status == SHMEMX_DEVICE_SUCCESS && place.address == 0;
}

/* Ends puts or gets of blocks: returns once the source may be changed, or the data are there. */
FERRY_DEVICE_FUNCTION int ferry_shmem_end_blocks(shmemx_device_t d, ferry_device_crew crew,
                                                 int is_asked, int mark, int status, int pe) {
  if (is_asked) {
    return ferry_shmem_outcome(d, crew, mark, status, pe);
  }
  ferry_device_crew_barrier(crew);
  return status;
}

/* ---- Their names ---- */

#define FERRY_SHMEM_STRIDED(name, suffix, kind, type, call, there)                               \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##_ib##call##suffix(                             \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst, ferry_device_u64 bsize,                        \
      ferry_device_u64 nblocks, int pe) {                                                        \
    const ferry_device_crew crew = ferry_device_crew_of(kind);                                   \
    const int is_asked = ferry_shmem_asks_for(d, (ferry_device_u64)(there), pe);                 \
    const int mark = is_asked ? ferry_shmem_mark(d, crew, 0) : SHMEMX_DEVICE_SUCCESS;            \
    int status;                                                                                  \
    const ferry_shmem_blocks blocks = ferry_shmem_blocks_of(                                     \
        (ferry_device_u64)dst, (ferry_device_u64)sst, bsize, nblocks, sizeof(type), &status);    \
    if (status == SHMEMX_DEVICE_SUCCESS) {                                                       \
      status = ferry_shmem_begin_##call##_blocks(d, crew, (ferry_device_u64)dest,                \
                                                 (ferry_device_u64)source, blocks, pe);          \
    }                                                                                            \
    return ferry_shmem_end_blocks(d, crew, is_asked, mark, status, pe);                          \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##_i##call##suffix(                              \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      __PTRDIFF_TYPE__ dst, __PTRDIFF_TYPE__ sst, ferry_device_u64 nelems, int pe) {             \
    return shmemx_device_##name##_ib##call##suffix(d, dest, source, dst, sst, 1, nelems, pe);    \
  }

#define FERRY_SHMEM_STRIDED_MOVES(suffix, kind, name, type) \
  FERRY_SHMEM_STRIDED(name, suffix, kind, type, put, dest)  \
  FERRY_SHMEM_STRIDED(name, suffix, kind, type, get, source)

FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_STRIDED_MOVES)

#undef FERRY_SHMEM_STRIDED
#undef FERRY_SHMEM_STRIDED_MOVES

#endif
