/* A device's part in the messages of matched pairs whose ends share a node
 * (docs/stream_triggered.md): the protocol of shm/pair_move.h, with the same words, by one thread
 * of a device. The conformance suite of the GPU backends lets either meet the other.
 *
 * Devices wake no thread: CPUs that sleep until a message is there look again after a while. They
 * ignore messages that are offered in parts, and offer none.
 *
 * Atomic operations on words in host memory are used. Blocks: ferry_device_close_pair only. */
#ifndef FERRY_GPU_BACKENDS_DEVICE_PAIR_MOVE_H
#define FERRY_GPU_BACKENDS_DEVICE_PAIR_MOVE_H

#include "ferry/device/platform.h"
#include "gpu_backends/device/control.h"

/* An end (shm/layout/pair_layout.h), in words of 64 bits; DriverStream compares the numbers. */
#define FERRY_DEVICE_END_DONE 8
#define FERRY_DEVICE_END_DONE_ERROR 9 /* the lower half */
#define FERRY_DEVICE_END_MEET 16
#define FERRY_DEVICE_END_GATE 33

#define FERRY_DEVICE_GATE_INSIDE 0xffffUL
#define FERRY_DEVICE_GATE_CLOSED 0x10000UL
#define FERRY_DEVICE_GATE_LIFE_SHIFT 32
#define FERRY_DEVICE_COUNTER_FAILURE 0x4000000000000000UL
#define FERRY_DEVICE_ERROR_NOT_FOUND 19 /* of ErrorCode */
#define FERRY_DEVICE_ERROR_PEER_DIED 14

/* How often one looks whether the others have left: about a second, as on the host. */
#define FERRY_DEVICE_PATIENCE 4000000

/* 0: the pair is closed. */
FERRY_DEVICE_FUNCTION int ferry_device_enter(ferry_device_word* own) {
  ferry_device_word* gate = own + FERRY_DEVICE_END_GATE;
  if ((ferry_device_fetch_add(gate, 1) & FERRY_DEVICE_GATE_CLOSED) == 0) {
    return 1;
  }
  ferry_device_fetch_add(gate, ~(ferry_device_u64)0);
  return 0;
}

FERRY_DEVICE_FUNCTION void ferry_device_leave(ferry_device_word* own) {
  ferry_device_fetch_add(own + FERRY_DEVICE_END_GATE, ~(ferry_device_u64)0);
}

/* BeginMove. Not 0: this end moves the message. */
FERRY_DEVICE_FUNCTION int ferry_device_begin_move(ferry_device_word* own, ferry_device_word* other,
                                                  ferry_device_u64 is_send,
                                                  ferry_device_u64 meets) {
  if (!ferry_device_enter(own)) {
    return 0;
  }
  if (meets == 0 ||
      ferry_device_fetch_add((is_send != 0 ? own : other) + FERRY_DEVICE_END_MEET, 1) % 2 == 1) {
    return 1;
  }
  ferry_device_leave(own);
  return 0;
}

/* CompleteMove. Tells the other end first, and then leaves it alone: it may be gone once it knows.
 */
FERRY_DEVICE_FUNCTION void ferry_device_complete_move(ferry_device_word* own,
                                                      ferry_device_word* other) {
  ferry_device_fence(); /* the bytes, moved by other threads in an earlier kernel */
  ferry_device_fetch_add(other + FERRY_DEVICE_END_DONE, 1);
  ferry_device_fetch_add(own + FERRY_DEVICE_END_DONE, 1);
  ferry_device_leave(own);
}

/* Closes the gate, if it is still in that life. */
FERRY_DEVICE_FUNCTION int ferry_device_close_gate(ferry_device_word* end, ferry_device_u64 life) {
  ferry_device_word* gate = end + FERRY_DEVICE_END_GATE;
  ferry_device_u64 expected = ferry_device_load_acquire(gate);
  while (expected >> FERRY_DEVICE_GATE_LIFE_SHIFT == life) {
    const ferry_device_u64 found =
        ferry_device_compare_exchange(gate, expected, expected | FERRY_DEVICE_GATE_CLOSED);
    if (found == expected) {
      return 1;
    }
    expected = found;
  }
  return 0;
}

FERRY_DEVICE_FUNCTION void ferry_device_await_empty(ferry_device_word* end, ferry_device_u64 life) {
  int looks;
  for (looks = 0; looks < FERRY_DEVICE_PATIENCE; ++looks) {
    const ferry_device_u64 gate = ferry_device_load_acquire(end + FERRY_DEVICE_END_GATE);
    if (gate >> FERRY_DEVICE_GATE_LIFE_SHIFT != life || (gate & FERRY_DEVICE_GATE_INSIDE) == 0) {
      return;
    }
    ferry_device_pause();
  }
}

/* ClosePair. */
FERRY_DEVICE_FUNCTION void ferry_device_close_pair(ferry_device_word* own, ferry_device_word* other,
                                                   ferry_device_u64 other_life) {
  const ferry_device_u64 own_life =
      ferry_device_load_acquire(own + FERRY_DEVICE_END_GATE) >> FERRY_DEVICE_GATE_LIFE_SHIFT;
  const int own_is_there = ferry_device_close_gate(own, own_life);
  const int other_is_there = ferry_device_close_gate(other, other_life);
  const ferry_device_u64 error =
      ferry_device_load_acquire(own + FERRY_DEVICE_END_DONE_ERROR) & 0xffffffffUL;
  if (own_is_there) {
    ferry_device_await_empty(own, own_life);
  }
  if (other_is_there && error != FERRY_DEVICE_ERROR_PEER_DIED &&
      error != FERRY_DEVICE_ERROR_NOT_FOUND) {
    ferry_device_await_empty(other, other_life);
  }
}

#endif
