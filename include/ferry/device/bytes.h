/* ferry/device/bytes.h - moving bytes by loads and stores: contiguous and strided, by as many
 * threads as a launch has.
 *
 * Sizes are in bytes. Addresses may have any alignment: the widest access that fits is chosen.
 * Ranges must not overlap; nothing outside them is read or written. Of a contiguous copy each
 * naturally aligned word of 1, 2, 4 or 8 bytes of the destination is stored once, and whole,
 * wherever the source lies; of a strided one each element. The code uses only what all devices have
 * in common (ferry/device/platform.h). */
#ifndef FERRY_DEVICE_BYTES_H
#define FERRY_DEVICE_BYTES_H

#include "ferry/device/platform.h"

/* Types through which memory of any type may be accessed. */
typedef ferry_device_u16 __attribute__((may_alias)) ferry_device_any16;
typedef ferry_device_u32 __attribute__((may_alias)) ferry_device_any32;
typedef ferry_device_u64 __attribute__((may_alias)) ferry_device_any64;
/* 16 bytes, loaded and stored as one where the device can. */
typedef struct __attribute__((aligned(16), may_alias)) {
  ferry_device_u64 low;
  ferry_device_u64 high;
} ferry_device_any128;

/* Qualifies memory in which each word is stored once. A compiler for CPUs would turn a loop into
 * memmove, which stores some bytes twice; compilers for devices have no memmove. */
#if defined(FERRY_DEVICE_IS_HOST) || (defined(FERRY_DEVICE_IS_OPENCL) && defined(__x86_64__))
#define FERRY_DEVICE_STORED FERRY_DEVICE_GLOBAL volatile
#else
#define FERRY_DEVICE_STORED FERRY_DEVICE_GLOBAL
#endif

/* The widest access for addresses, sizes and strides that are ORed together: 16, 8, 4, 2 or 1. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_width(ferry_device_u64 all) {
  const ferry_device_u64 lowest = (all | 16) & (~(all | 16) + 1);
  return lowest;
}

/* Loads `width` bytes, at most 8, by one access. */
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_unit(const FERRY_DEVICE_GLOBAL ferry_device_u8* from, ferry_device_u64 width) {
  if (width == 8) {
    return *(const FERRY_DEVICE_GLOBAL ferry_device_any64*)from;
  }
  if (width == 4) {
    return *(const FERRY_DEVICE_GLOBAL ferry_device_any32*)from;
  }
  return width == 2 ? *(const FERRY_DEVICE_GLOBAL ferry_device_any16*)from : *from;
}

FERRY_DEVICE_FUNCTION void ferry_device_store_unit(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                   ferry_device_u64 bits, ferry_device_u64 width) {
  if (width == 8) {
    *(FERRY_DEVICE_STORED ferry_device_any64*)to = bits;
  } else if (width == 4) {
    *(FERRY_DEVICE_STORED ferry_device_any32*)to = (ferry_device_any32)bits;
  } else if (width == 2) {
    *(FERRY_DEVICE_STORED ferry_device_any16*)to = (ferry_device_any16)bits;
  } else {
    *(FERRY_DEVICE_STORED ferry_device_u8*)to = (ferry_device_u8)bits;
  }
}

/* Copies `width` bytes, at most 16, by one load and one store of that width. */
FERRY_DEVICE_FUNCTION void ferry_device_move_unit(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 width) {
  if (width == 16) {
    const ferry_device_u64 low = ((const FERRY_DEVICE_GLOBAL ferry_device_any128*)from)->low;
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): bytes, whatever they are */
    const ferry_device_u64 high = ((const FERRY_DEVICE_GLOBAL ferry_device_any128*)from)->high;
    ((FERRY_DEVICE_STORED ferry_device_any128*)to)->low = low;
    ((FERRY_DEVICE_STORED ferry_device_any128*)to)->high = high;
  } else {
    ferry_device_store_unit(to, ferry_device_load_unit(from, width), width);
  }
}

/* Copies `width` bytes by one store; they may need several loads, of at most `most` bytes each. */
FERRY_DEVICE_FUNCTION void ferry_device_move_word(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 width, ferry_device_u64 most) {
  ferry_device_u64 bits = 0;
  ferry_device_u64 i;
  if (width <= most) {
    ferry_device_move_unit(to, from, width);
    return;
  }
  for (i = 0; i < width; i += most) { /* little-endian, as all devices are */
    bits |= ferry_device_load_unit(from + i, most) << (8 * i);
  }
  ferry_device_store_unit(to, bits, width);
}

/* Copies the part of thread `thread` of `count`; all of them must call it. */
FERRY_DEVICE_FUNCTION void ferry_device_copy_part(FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                                  const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                                  ferry_device_u64 size_bytes,
                                                  ferry_device_u64 thread, ferry_device_u64 count) {
  /* The widest access at which both addresses become aligned at the same place. */
  const ferry_device_u64 most = ferry_device_width((ferry_device_u64)to - (ferry_device_u64)from);
  const ferry_device_u64 width = most < 8 ? 8 : most; /* of most stores */
  ferry_device_u64 done = 0;
  ferry_device_u64 turn = 0;
  ferry_device_u64 piece;
  ferry_device_u64 units;
  ferry_device_u64 i;
  /* The pieces of head and tail go to threads in turn; where there are few, to the first. */
  for (piece = 1; piece < width; piece *= 2) {
    if (((ferry_device_u64)(to + done) & piece) != 0 && size_bytes - done >= piece) {
      if ((turn < count ? turn : 0) == thread) {
        ferry_device_move_word(to + done, from + done, piece, most);
      }
      ++turn;
      done += piece;
    }
  }
  units = (size_bytes - done) / width;
  for (i = thread; i < units; i += count) {
    ferry_device_move_word(to + done + i * width, from + done + i * width, width, most);
  }
  done += units * width;
  for (piece = width / 2; piece != 0; piece /= 2) {
    if (size_bytes - done >= piece) {
      if ((turn < count ? turn : 0) == thread) {
        ferry_device_move_word(to + done, from + done, piece, most);
      }
      ++turn;
      done += piece;
    }
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
