/* ferry/device/bytes.h - moving bytes by loads and stores: contiguous and strided, by as many
 * threads as a launch has.
 *
 * Sizes are in bytes. Addresses may have any alignment: the widest access that fits is chosen.
 * Ranges must not overlap; nothing outside them is read or written. The code uses only what all
 * devices have in common (ferry/device/platform.h). */
#ifndef FERRY_DEVICE_BYTES_H
#define FERRY_DEVICE_BYTES_H

#include "ferry/device/platform.h"

/* Types through which memory of any type may be accessed. */
typedef ferry_device_u16 __attribute__((may_alias)) ferry_device_any16;
typedef ferry_device_u32 __attribute__((may_alias)) ferry_device_any32;
typedef ferry_device_u64 __attribute__((may_alias)) ferry_device_any64;
/* Loaded and stored as one where the device can. */
typedef struct __attribute__((aligned(16), may_alias)) {
  ferry_device_u64 low;
  ferry_device_u64 high;
} ferry_device_any128;

/* The widest access for addresses, sizes and strides that are ORed together: 16, 8, 4, 2 or 1. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_width(ferry_device_u64 all) {
  const ferry_device_u64 lowest = (all | 16) & (~(all | 16) + 1);
  return lowest;
}

/* One access of that width. */
FERRY_DEVICE_FUNCTION void ferry_device_move_unit(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 width) {
  if (width == 16) {
    const ferry_device_u64 low = ((const FERRY_DEVICE_GLOBAL ferry_device_any128*)from)->low;
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): bytes, whatever they are */
    const ferry_device_u64 high = ((const FERRY_DEVICE_GLOBAL ferry_device_any128*)from)->high;
    ((FERRY_DEVICE_GLOBAL ferry_device_any128*)to)->low = low;
    ((FERRY_DEVICE_GLOBAL ferry_device_any128*)to)->high = high;
  } else if (width == 8) {
    *(FERRY_DEVICE_GLOBAL ferry_device_any64*)to =
        *(const FERRY_DEVICE_GLOBAL ferry_device_any64*)from;
  } else if (width == 4) {
    *(FERRY_DEVICE_GLOBAL ferry_device_any32*)to =
        *(const FERRY_DEVICE_GLOBAL ferry_device_any32*)from;
  } else if (width == 2) {
    *(FERRY_DEVICE_GLOBAL ferry_device_any16*)to =
        *(const FERRY_DEVICE_GLOBAL ferry_device_any16*)from;
  } else {
    *to = *from;
  }
}

/* Copies the part of thread `thread` of `count`; all of them must call it. */
FERRY_DEVICE_FUNCTION void ferry_device_copy_part(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 size_bytes,
                                                  ferry_device_u64 thread, ferry_device_u64 count) {
  /* The widest access at which both addresses become aligned at the same place. */
  const ferry_device_u64 width = ferry_device_width((ferry_device_u64)to - (ferry_device_u64)from);
  const ferry_device_u64 misaligned = (ferry_device_u64)to & (width - 1);
  ferry_device_u64 head = misaligned == 0 ? 0 : width - misaligned;
  ferry_device_u64 units;
  ferry_device_u64 i;
  if (head > size_bytes) {
    head = size_bytes;
  }
  units = (size_bytes - head) / width;
  for (i = thread; i < units; i += count) {
    ferry_device_move_unit(to + head + i * width, from + head + i * width, width);
  }
  for (i = thread; i < head; i += count) {
    to[i] = from[i];
  }
  for (i = head + units * width + thread; i < size_bytes; i += count) {
    to[i] = from[i];
  }
}

/* The calling thread's part of a copy by the whole launch. */
FERRY_DEVICE_FUNCTION void ferry_device_copy(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                             const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                             ferry_device_u64 size_bytes) {
  ferry_device_copy_part(to, from, size_bytes, ferry_device_thread(), ferry_device_thread_count());
}

/* Copies the part of thread `thread` of `threads` of `count` blocks of `block_bytes`, which begin
 * `to_stride_bytes` and `from_stride_bytes` after each other (two's complement: they may go
 * backwards). All of the threads must call it. Destinations do not overlap. */
FERRY_DEVICE_FUNCTION void ferry_device_copy_blocks_part(
    FERRY_DEVICE_GLOBAL ferry_device_u8* to, ferry_device_u64 to_stride_bytes,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from, ferry_device_u64 from_stride_bytes,
    ferry_device_u64 count, ferry_device_u64 block_bytes, ferry_device_u64 thread,
    ferry_device_u64 threads) {
  const ferry_device_u64 width =
      ferry_device_width((ferry_device_u64)to | (ferry_device_u64)from | to_stride_bytes |
                         from_stride_bytes | block_bytes);
  const ferry_device_u64 units = block_bytes / width; /* of a block */
  const ferry_device_u64 all = units * count;
  ferry_device_u64 i;
  for (i = thread; i < all; i += threads) {
    /* Divisions of 64 bits take many times as long. */
    const ferry_device_u64 block =
        all >> 32 == 0 ? (ferry_device_u32)i / (ferry_device_u32)units : i / units;
    const ferry_device_u64 place = (i - block * units) * width;
    ferry_device_move_unit(to + block * to_stride_bytes + place,
                           from + block * from_stride_bytes + place, width);
  }
}

/* The calling thread's part of such a copy by the whole launch. */
FERRY_DEVICE_FUNCTION void ferry_device_copy_blocks(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                    ferry_device_u64 to_stride_bytes,
                                                    const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                    ferry_device_u64 from_stride_bytes,
                                                    ferry_device_u64 count,
                                                    ferry_device_u64 block_bytes) {
  ferry_device_copy_blocks_part(to, to_stride_bytes, from, from_stride_bytes, count, block_bytes,
                                ferry_device_thread(), ferry_device_thread_count());
}

#endif
