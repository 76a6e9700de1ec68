/* ferry/device/shmem/puts_gets.h - puts, gets, and puts with a signal. See ferry/device/shmem.h.
 *
 *   int shmemx_device_TYPE_put(d, dest, source, nelems, pe)    and _put_nbi, _get, _get_nbi
 *   int shmemx_device_putmem(d, dest, source, nelems, pe)      and putmem_nbi, getmem, getmem_nbi
 *   void shmemx_device_TYPE_p(d, dest, value, pe)
 *   TYPE shmemx_device_TYPE_g(d, source, pe)
 *   int shmemx_device_TYPE_put_signal(d, dest, source, nelems, sig_addr, signal, sig_op, pe)
 *                                                              and putmem_signal, _put_signal_nbi
 *
 * A group's put or get ends with a barrier of the group: `source` may be reused, or the data are
 * there. The nonblocking forms leave it out: each thread knows of its own share only, after a
 * quiet. */
#ifndef FERRY_DEVICE_SHMEM_PUTS_GETS_H
#define FERRY_DEVICE_SHMEM_PUTS_GETS_H

#include "ferry/device/bytes.h"
#include "ferry/device/shmem/asked_operations.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

#ifndef SHMEM_SIGNAL_SET
#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2
#endif

/* ---- The true ones: bytes, by a crew ---- */

FERRY_DEVICE_FUNCTION void ferry_shmem_copy(ferry_device_crew crew, ferry_device_u64 to,
                                            ferry_device_u64 from, ferry_device_u64 bytes) {
  ferry_device_copy_part((FERRY_DEVICE_GLOBAL ferry_device_u8*)to,
                         (const FERRY_DEVICE_GLOBAL ferry_device_u8*)from, bytes, crew.thread,
                         crew.count);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_begin_put(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 bytes, int pe, int is_nbi) {
  const ferry_shmem_place to = ferry_shmem_find(d, dest, bytes, pe);
  if (to.status != SHMEMX_DEVICE_SUCCESS) {
    return to.status;
  }
  if (ferry_shmem_is_asked(d, crew, FERRY_SHMEM_PUT, to, source, bytes)) {
    return ferry_shmem_ask_put(d, crew, to, source, bytes, pe, is_nbi);
  }
  ferry_shmem_copy(crew, to.address, source, bytes);
  return SHMEMX_DEVICE_SUCCESS;
}
FERRY_DEVICE_FUNCTION int ferry_shmem_put(shmemx_device_t d, ferry_device_crew crew,
                                          ferry_device_u64 dest, ferry_device_u64 source,
                                          ferry_device_u64 bytes, int pe) {
  return ferry_shmem_begin_put(d, crew, dest, source, bytes, pe, 0);
}
FERRY_DEVICE_FUNCTION int ferry_shmem_put_nbi(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_device_u64 dest, ferry_device_u64 source,
                                              ferry_device_u64 bytes, int pe) {
  return ferry_shmem_begin_put(d, crew, dest, source, bytes, pe, 1);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_begin_get(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_device_u64 dest, ferry_device_u64 source,
                                                ferry_device_u64 bytes, int pe, int is_nbi) {
  const ferry_shmem_place from = ferry_shmem_find(d, source, bytes, pe);
  if (from.status != SHMEMX_DEVICE_SUCCESS) {
    return from.status;
  }
  if (ferry_shmem_is_asked(d, crew, FERRY_SHMEM_GET, from, dest, bytes)) {
    return ferry_shmem_ask_get(d, crew, dest, from, bytes, pe, is_nbi);
  }
  ferry_shmem_copy(crew, dest, from.address, bytes);
  return SHMEMX_DEVICE_SUCCESS;
}
FERRY_DEVICE_FUNCTION int ferry_shmem_get(shmemx_device_t d, ferry_device_crew crew,
                                          ferry_device_u64 dest, ferry_device_u64 source,
                                          ferry_device_u64 bytes, int pe) {
  return ferry_shmem_begin_get(d, crew, dest, source, bytes, pe, 0);
}
FERRY_DEVICE_FUNCTION int ferry_shmem_get_nbi(shmemx_device_t d, ferry_device_crew crew,
                                              ferry_device_u64 dest, ferry_device_u64 source,
                                              ferry_device_u64 bytes, int pe) {
  return ferry_shmem_begin_get(d, crew, dest, source, bytes, pe, 1);
}

/* Puts the data and prepares the signal: a thread that sees the signal sees the data of all threads
 * of the crew. */
FERRY_DEVICE_FUNCTION int ferry_shmem_begin_put_signal(
    shmemx_device_t d, ferry_device_crew crew, ferry_device_u64 dest, ferry_device_u64 source,
    ferry_device_u64 bytes, ferry_device_u64 signal_address, ferry_device_u64 signal, int operation,
    int pe, int is_nbi) {
  const ferry_shmem_place to = ferry_shmem_find(d, dest, bytes, pe);
  const ferry_shmem_place word = operation == SHMEM_SIGNAL_ADD
                                     ? ferry_shmem_find_atomic(d, signal_address, 8, pe)
                                     : ferry_shmem_find_word(d, signal_address, 8, pe);
  FERRY_DEVICE_GLOBAL ferry_device_u64* const at =
      (FERRY_DEVICE_GLOBAL ferry_device_u64*)word.address;
  int is_asked;
  int status;
  if (to.status != SHMEMX_DEVICE_SUCCESS) {
    return to.status;
  }
  if (word.status != SHMEMX_DEVICE_SUCCESS) {
    return word.status;
  }
  if (operation != SHMEM_SIGNAL_SET && operation != SHMEM_SIGNAL_ADD) {
    return SHMEMX_DEVICE_ERR_ARGUMENT;
  }
  /* For data that ferryd moves, ferryd also changes the signal. */
  is_asked = ferry_shmem_is_asked(d, crew, FERRY_SHMEM_PUT, to, source, bytes) &&
             !(to.address != 0 && at != 0 && ferry_shmem_is_by_stream(d, word.heap));
  if (is_asked) {
    status = ferry_shmem_ask_put(d, crew, to, source, bytes, pe, is_nbi);
    if (status != SHMEMX_DEVICE_SUCCESS) {
      return status;
    }
  } else {
    ferry_shmem_copy(crew, to.address, source, bytes);
  }
  ferry_device_fence();
  ferry_device_crew_barrier(crew);
  if (crew.thread != 0) {
    return SHMEMX_DEVICE_SUCCESS;
  }
  if (is_asked || at == 0) {
    ferry_shmem_ask_signal(
        d, ferry_shmem_there(d, word, pe),
        operation == SHMEM_SIGNAL_SET ? FERRY_DEVICE_RING_SET : FERRY_DEVICE_RING_ADD, signal, pe);
  } else if (operation == SHMEM_SIGNAL_SET) {
    ferry_device_store_release(at, signal);
  } else {
    ferry_device_fetch_add(at, signal);
  }
  return SHMEMX_DEVICE_SUCCESS;
}
FERRY_DEVICE_FUNCTION int ferry_shmem_put_signal(shmemx_device_t d, ferry_device_crew crew,
                                                 ferry_device_u64 dest, ferry_device_u64 source,
                                                 ferry_device_u64 bytes,
                                                 ferry_device_u64 signal_address,
                                                 ferry_device_u64 signal, int operation, int pe) {
  return ferry_shmem_begin_put_signal(d, crew, dest, source, bytes, signal_address, signal,
                                      operation, pe, 0);
}
FERRY_DEVICE_FUNCTION int ferry_shmem_put_signal_nbi(shmemx_device_t d, ferry_device_crew crew,
                                                     ferry_device_u64 dest, ferry_device_u64 source,
                                                     ferry_device_u64 bytes,
                                                     ferry_device_u64 signal_address,
                                                     ferry_device_u64 signal, int operation,
                                                     int pe) {
  return ferry_shmem_begin_put_signal(d, crew, dest, source, bytes, signal_address, signal,
                                      operation, pe, 1);
}

/* ---- Their names ---- */

#define FERRY_SHMEM_MOVE(name, suffix, kind, type, size, call, barrier)                          \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nelems, int pe) {                                                         \
    const ferry_device_crew crew = ferry_device_crew_of(kind);                                   \
    const int status = ferry_shmem_##call(d, crew, (ferry_device_u64)dest,                       \
                                          (ferry_device_u64)source, nelems * (size), pe);        \
    barrier;                                                                                     \
    return status;                                                                               \
  }

#define FERRY_SHMEM_SIGNALLED(name, suffix, kind, type, size, call)                              \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nelems, FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr,                    \
      ferry_device_u64 signal, int sig_op, int pe) {                                             \
    return ferry_shmem_##call(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,             \
                              (ferry_device_u64)source, nelems * (size),                         \
                              (ferry_device_u64)sig_addr, signal, sig_op, pe);                   \
  }

#define FERRY_SHMEM_END ferry_device_crew_barrier(crew)
#define FERRY_SHMEM_NO_END (void)0

#define FERRY_SHMEM_TYPED_MOVES(suffix, kind, name, type)                                         \
  FERRY_SHMEM_MOVE(name##_put, suffix, kind, type, sizeof(type), put, FERRY_SHMEM_END)            \
  FERRY_SHMEM_MOVE(name##_get, suffix, kind, type, sizeof(type), get, FERRY_SHMEM_END)            \
  FERRY_SHMEM_MOVE(name##_put_nbi, suffix, kind, type, sizeof(type), put_nbi, FERRY_SHMEM_NO_END) \
  FERRY_SHMEM_MOVE(name##_get_nbi, suffix, kind, type, sizeof(type), get_nbi, FERRY_SHMEM_NO_END) \
  FERRY_SHMEM_SIGNALLED(name##_put_signal, suffix, kind, type, sizeof(type), put_signal)          \
  FERRY_SHMEM_SIGNALLED(name##_put_signal_nbi, suffix, kind, type, sizeof(type), put_signal_nbi)

#define FERRY_SHMEM_BYTE_MOVES(suffix, kind)                                       \
  FERRY_SHMEM_MOVE(putmem, suffix, kind, void, 1, put, FERRY_SHMEM_END)            \
  FERRY_SHMEM_MOVE(getmem, suffix, kind, void, 1, get, FERRY_SHMEM_END)            \
  FERRY_SHMEM_MOVE(putmem_nbi, suffix, kind, void, 1, put_nbi, FERRY_SHMEM_NO_END) \
  FERRY_SHMEM_MOVE(getmem_nbi, suffix, kind, void, 1, get_nbi, FERRY_SHMEM_NO_END) \
  FERRY_SHMEM_SIGNALLED(putmem_signal, suffix, kind, void, 1, put_signal)          \
  FERRY_SHMEM_SIGNALLED(putmem_signal_nbi, suffix, kind, void, 1, put_signal_nbi)

FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_TYPED_MOVES)
FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_BYTE_MOVES)

/* Puts and gets of single values, by one thread. Values travel to and from ferryd as the words of
 * their bits. */
#define FERRY_SHMEM_SINGLE(suffix, kind, name, type)                                             \
  FERRY_DEVICE_FUNCTION void shmemx_device_##name##_p(                                           \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {                   \
    const ferry_shmem_place to = ferry_shmem_find(d, (ferry_device_u64)dest, sizeof(type), pe);  \
    ferry_shmem_note(d, to.status);                                                              \
    if (to.status == SHMEMX_DEVICE_SUCCESS && to.address != 0) {                                 \
      *(FERRY_DEVICE_GLOBAL type*)to.address = value;                                            \
    } else if (to.status == SHMEMX_DEVICE_SUCCESS) {                                             \
      union {                                                                                    \
        type value;                                                                              \
        ferry_device_u64 word;                                                                   \
      } both;                                                                                    \
      both.word = 0;                                                                             \
      both.value = value;                                                                        \
      ferry_shmem_ask_p(d, to, both.word, sizeof(type), pe);                                     \
    }                                                                                            \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION type shmemx_device_##name##_g(                                           \
      shmemx_device_t d, const FERRY_DEVICE_GLOBAL type* source, int pe) {                       \
    const ferry_shmem_place from =                                                               \
        ferry_shmem_find(d, (ferry_device_u64)source, sizeof(type), pe);                         \
    union {                                                                                      \
      type value;                                                                                \
      ferry_device_u64 word;                                                                     \
    } both;                                                                                      \
    ferry_shmem_note(d, from.status);                                                            \
    if (from.status == SHMEMX_DEVICE_SUCCESS && from.address != 0) {                             \
      return *(const FERRY_DEVICE_GLOBAL type*)from.address;                                     \
    }                                                                                            \
    both.word =                                                                                  \
        from.status == SHMEMX_DEVICE_SUCCESS ? ferry_shmem_ask_g(d, from, sizeof(type), pe) : 0; \
    return both.value;                                                                           \
  }

FERRY_SHMEM_ALL_TYPES(FERRY_SHMEM_SINGLE, , )

#undef FERRY_SHMEM_MOVE
#undef FERRY_SHMEM_SIGNALLED
#undef FERRY_SHMEM_END
#undef FERRY_SHMEM_NO_END
#undef FERRY_SHMEM_TYPED_MOVES
#undef FERRY_SHMEM_BYTE_MOVES
#undef FERRY_SHMEM_SINGLE

#endif
