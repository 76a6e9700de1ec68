/* Ferry's own kernels: words of streams, messages of matched pairs, copies. kernel_list.h names
 * them for the host, with their arguments.
 *
 * All arguments are of 64 bits. Memory and words must be reachable for the device. Kernels of one
 * thread may be launched with more: the others do nothing. `control` are the words of the stream
 * (control.h). */
#ifndef FERRY_GPU_BACKENDS_DEVICE_KERNELS_H
#define FERRY_GPU_BACKENDS_DEVICE_KERNELS_H

#include "ferry/device/bytes.h"
#include "ferry/device/platform.h"
#include "gpu_backends/device/control.h"
#include "gpu_backends/device/pair_move.h"

/* ---- Words: one thread ---- */

FERRY_DEVICE_KERNEL ferry_write_word(ferry_device_word* control, ferry_device_word* word,
                                     ferry_device_u64 value) {
  if (ferry_device_thread() == 0 && ferry_device_goes_on(control)) {
    ferry_device_fence(); /* what earlier kernels have done, by other threads */
    ferry_device_store_release(word, value);
  }
}

/* Waits until the word is `value` if `is_equal`, else until it is `value` or more. */
FERRY_DEVICE_KERNEL ferry_wait_word(ferry_device_word* control, const ferry_device_word* word,
                                    ferry_device_u64 value, ferry_device_u64 is_equal) {
  if (ferry_device_thread() != 0) {
    return;
  }
  while (ferry_device_goes_on(control)) {
    const ferry_device_u64 current = ferry_device_load_acquire(word);
    if (is_equal != 0 ? current == value : current >= value) {
      break;
    }
    ferry_device_pause();
  }
  ferry_device_fence(); /* for kernels behind it */
}

/* ---- Messages of matched pairs: one thread, but for the copy ---- */

FERRY_DEVICE_KERNEL ferry_begin_move(ferry_device_word* control, ferry_device_word* own,
                                     ferry_device_word* other, ferry_device_u64 is_send,
                                     ferry_device_u64 meets) {
  if (ferry_device_thread() == 0) {
    const int moves =
        ferry_device_goes_on(control) && ferry_device_begin_move(own, other, is_send, meets);
    ferry_device_store_relaxed(control + FERRY_DEVICE_CONTROL_MOVES, moves ? 1 : 0);
  }
}

FERRY_DEVICE_KERNEL ferry_copy_move(const ferry_device_word* control,
                                    FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                    const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                    ferry_device_u64 size_bytes) {
  if (ferry_device_load_relaxed(control + FERRY_DEVICE_CONTROL_MOVES) != 0) {
    ferry_device_copy(to, from, size_bytes);
  }
}

/* The end that has begun completes, even if the stream was abandoned: no other end could. */
FERRY_DEVICE_KERNEL ferry_complete_move(const ferry_device_word* control, ferry_device_word* own,
                                        ferry_device_word* other) {
  if (ferry_device_thread() == 0 &&
      ferry_device_load_relaxed(control + FERRY_DEVICE_CONTROL_MOVES) != 0) {
    ferry_device_complete_move(own, other);
  }
}

/* All three steps in one launch, for small messages: launches take longer than the copy by one
   thread. */
FERRY_DEVICE_KERNEL ferry_move_small(const ferry_device_word* control, ferry_device_word* own,
                                     ferry_device_word* other, ferry_device_u64 is_send,
                                     ferry_device_u64 meets,
                                     FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                                     const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                                     ferry_device_u64 size_bytes) {
  if (ferry_device_thread() == 0 && ferry_device_goes_on(control) &&
      ferry_device_begin_move(own, other, is_send, meets)) {
    ferry_device_copy_part(to, from, size_bytes, 0, 1);
    ferry_device_complete_move(own, other);
  }
}

/* Runs after the wait for a round: closes the pair if it has failed before. */
FERRY_DEVICE_KERNEL ferry_close_failed_pair(const ferry_device_word* control,
                                            ferry_device_word* own, ferry_device_word* other,
                                            ferry_device_u64 other_life, ferry_device_u64 round) {
  if (ferry_device_thread() == 0 && ferry_device_goes_on(control)) {
    const ferry_device_u64 done = ferry_device_load_acquire(own + FERRY_DEVICE_END_DONE);
    if (done >= FERRY_DEVICE_COUNTER_FAILURE && done - FERRY_DEVICE_COUNTER_FAILURE < round) {
      ferry_device_close_pair(own, other, other_life);
    }
  }
}

/* ---- Copies: any number of threads ---- */

FERRY_DEVICE_KERNEL ferry_copy(const ferry_device_word* control,
                               FERRY_DEVICE_GLOBAL ferry_device_u8* to,
                               const FERRY_DEVICE_GLOBAL ferry_device_u8* from,
                               ferry_device_u64 size_bytes) {
  if (ferry_device_goes_on(control)) {
    ferry_device_copy(to, from, size_bytes);
  }
}

/* Packs blocks with gaps into memory without gaps. */
FERRY_DEVICE_KERNEL ferry_pack(const ferry_device_word* control,
                               FERRY_DEVICE_GLOBAL ferry_device_u8* packed,
                               const FERRY_DEVICE_GLOBAL ferry_device_u8* blocks,
                               ferry_device_u64 count, ferry_device_u64 block_bytes,
                               ferry_device_u64 stride_bytes) {
  if (ferry_device_goes_on(control)) {
    ferry_device_copy_blocks(packed, block_bytes, blocks, stride_bytes, count, block_bytes);
  }
}

/* The reverse of ferry_pack. */
FERRY_DEVICE_KERNEL ferry_unpack(const ferry_device_word* control,
                                 FERRY_DEVICE_GLOBAL ferry_device_u8* blocks,
                                 const FERRY_DEVICE_GLOBAL ferry_device_u8* packed,
                                 ferry_device_u64 count, ferry_device_u64 block_bytes,
                                 ferry_device_u64 stride_bytes) {
  if (ferry_device_goes_on(control)) {
    ferry_device_copy_blocks(blocks, stride_bytes, packed, block_bytes, count, block_bytes);
  }
}

/* Each of the destinations gets the blocks of all sources, one behind the other; of both there are
   at most eight. A block that lies in its place stays. */
FERRY_DEVICE_KERNEL ferry_spread(
    const ferry_device_word* control, ferry_device_u64 block_bytes, ferry_device_u64 source_count,
    ferry_device_u64 destination_count, const FERRY_DEVICE_GLOBAL ferry_device_u8* from0,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from1,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from2,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from3,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from4,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from5,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from6,
    const FERRY_DEVICE_GLOBAL ferry_device_u8* from7, FERRY_DEVICE_GLOBAL ferry_device_u8* to0,
    FERRY_DEVICE_GLOBAL ferry_device_u8* to1, FERRY_DEVICE_GLOBAL ferry_device_u8* to2,
    FERRY_DEVICE_GLOBAL ferry_device_u8* to3, FERRY_DEVICE_GLOBAL ferry_device_u8* to4,
    FERRY_DEVICE_GLOBAL ferry_device_u8* to5, FERRY_DEVICE_GLOBAL ferry_device_u8* to6,
    FERRY_DEVICE_GLOBAL ferry_device_u8* to7) {
  const FERRY_DEVICE_GLOBAL ferry_device_u8* const sources[] = {from0, from1, from2, from3,
                                                                from4, from5, from6, from7};
  FERRY_DEVICE_GLOBAL ferry_device_u8* const destinations[] = {to0, to1, to2, to3,
                                                               to4, to5, to6, to7};
  const ferry_device_u64 thread = ferry_device_thread();
  const ferry_device_u64 threads = ferry_device_thread_count();
  const ferry_device_u64 pairs = source_count * destination_count;
  const ferry_device_u64 each = threads > pairs ? threads / pairs : 1; /* threads of a pair */
  const ferry_device_u64 teams = threads / each;
  ferry_device_u64 pair;
  if (thread >= teams * each || !ferry_device_goes_on(control)) {
    return;
  }
  for (pair = thread / each; pair < pairs; pair += teams) {
    const ferry_device_u64 to = pair / source_count;
    const FERRY_DEVICE_GLOBAL ferry_device_u8* const source = sources[pair - to * source_count];
    FERRY_DEVICE_GLOBAL ferry_device_u8* const place =
        destinations[to] + (pair - to * source_count) * block_bytes;
    if (place != source) {
      ferry_device_copy_part(place, source, block_bytes, thread % each, each);
    }
  }
}

#endif
