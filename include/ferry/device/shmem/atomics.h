/* ferry/device/shmem/atomics.h - atomic operations by one thread. See ferry/device/shmem.h.
 *
 *   TYPE shmemx_device_TYPE_atomic_fetch(d, source, pe)
 *   TYPE ..._atomic_swap, _fetch_add, _fetch_and, _fetch_or, _fetch_xor(d, dest, value, pe)
 *   TYPE ..._atomic_compare_swap(d, dest, cond, value, pe), ..._atomic_fetch_inc(d, dest, pe)
 *   void ..._atomic_set, _add, _and, _or, _xor(d, dest, value, pe), ..._atomic_inc(d, dest, pe)
 *
 * They agree with those of all PEs, of the host and of other devices. Where the device's link has
 * no operations that are atomic to CPUs, ferryd is asked for all but fetch and set. float and
 * double: fetch, set and swap. A signal is such a word of 64 bits: ..._signal_fetch(d, sig_addr),
 * ..._signal_set and _signal_add(d, sig_addr, signal, pe). */
#ifndef FERRY_DEVICE_SHMEM_ATOMICS_H
#define FERRY_DEVICE_SHMEM_ATOMICS_H

#include "ferry/device/atomics.h"
#include "ferry/device/shmem/asked_operations.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

/* ---- The true ones, by width ---- */

/* Translates an operation of ferry_device_change into ferryd's number for it. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_shmem_asked_change(ferry_device_u32 operation) {
  return operation == FERRY_DEVICE_SET ? FERRY_DEVICE_RING_SWAP
                                       : FERRY_DEVICE_RING_ADD + operation - FERRY_DEVICE_ADD;
}

#define FERRY_SHMEM_OF_WIDTH(bits, load, store, compare_exchange)                                  \
  FERRY_DEVICE_FUNCTION ferry_device_u##bits ferry_shmem_fetch_##bits(                             \
      shmemx_device_t d, ferry_device_u64 source, int pe) {                                        \
    const ferry_shmem_place word = ferry_shmem_find_word(d, source, (bits) / 8, pe);               \
    ferry_shmem_note(d, word.status);                                                              \
    return word.status != SHMEMX_DEVICE_SUCCESS ? 0                                                \
           : word.address != 0 ? load((FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address)     \
                               : (ferry_device_u##bits)ferry_shmem_ask_atomic(                     \
                                     d, word, pe, FERRY_DEVICE_RING_FETCH, (bits) / 8, 0, 0);      \
  }                                                                                                \
  FERRY_DEVICE_FUNCTION void ferry_shmem_set_##bits(shmemx_device_t d, ferry_device_u64 dest,      \
                                                    ferry_device_u##bits value, int pe) {          \
    const ferry_shmem_place word = ferry_shmem_find_word(d, dest, (bits) / 8, pe);                 \
    ferry_shmem_note(d, word.status);                                                              \
    if (word.status == SHMEMX_DEVICE_SUCCESS && word.address != 0) {                               \
      store((FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address, value);                       \
    } else if (word.status == SHMEMX_DEVICE_SUCCESS) {                                             \
      ferry_shmem_ask_update(d, word, pe, FERRY_DEVICE_RING_SET, (bits) / 8, value);               \
    }                                                                                              \
  }                                                                                                \
  FERRY_DEVICE_FUNCTION ferry_device_u##bits ferry_shmem_change_##bits(                            \
      shmemx_device_t d, ferry_device_u64 dest, ferry_device_u32 operation,                        \
      ferry_device_u##bits value, int pe) {                                                        \
    const ferry_shmem_place word = ferry_shmem_find_atomic(d, dest, (bits) / 8, pe);               \
    ferry_shmem_note(d, word.status);                                                              \
    return word.status != SHMEMX_DEVICE_SUCCESS ? 0                                                \
           : word.address != 0                                                                     \
               ? ferry_device_change_##bits(                                                       \
                     (FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address, operation, value)    \
               : (ferry_device_u##bits)ferry_shmem_ask_atomic(                                     \
                     d, word, pe, ferry_shmem_asked_change(operation), (bits) / 8, value, 0);      \
  }                                                                                                \
  /* Changes the word without fetching its previous value. */                                      \
  FERRY_DEVICE_FUNCTION void ferry_shmem_update_##bits(shmemx_device_t d, ferry_device_u64 dest,   \
                                                       ferry_device_u32 operation,                 \
                                                       ferry_device_u##bits value, int pe) {       \
    const ferry_shmem_place word = ferry_shmem_find_atomic(d, dest, (bits) / 8, pe);               \
    ferry_shmem_note(d, word.status);                                                              \
    if (word.status == SHMEMX_DEVICE_SUCCESS && word.address != 0) {                               \
      (void)ferry_device_change_##bits((FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address,    \
                                       operation, value);                                          \
    } else if (word.status == SHMEMX_DEVICE_SUCCESS) {                                             \
      ferry_shmem_ask_update(d, word, pe, ferry_shmem_asked_change(operation), (bits) / 8, value); \
    }                                                                                              \
  }                                                                                                \
  FERRY_DEVICE_FUNCTION ferry_device_u##bits ferry_shmem_compare_swap_##bits(                      \
      shmemx_device_t d, ferry_device_u64 dest, ferry_device_u##bits condition,                    \
      ferry_device_u##bits value, int pe) {                                                        \
    const ferry_shmem_place word = ferry_shmem_find_atomic(d, dest, (bits) / 8, pe);               \
    ferry_shmem_note(d, word.status);                                                              \
    return word.status != SHMEMX_DEVICE_SUCCESS ? 0                                                \
           : word.address != 0                                                                     \
               ? compare_exchange((FERRY_DEVICE_GLOBAL ferry_device_u##bits*)word.address,         \
                                  condition, value)                                                \
               : (ferry_device_u##bits)ferry_shmem_ask_atomic(                                     \
                     d, word, pe, FERRY_DEVICE_RING_COMPARE_SWAP, (bits) / 8, value, condition);   \
  }

FERRY_SHMEM_OF_WIDTH(32, ferry_device_load_acquire_32, ferry_device_store_release_32,
                     ferry_device_compare_exchange_32)
FERRY_SHMEM_OF_WIDTH(64, ferry_device_load_acquire, ferry_device_store_release,
                     ferry_device_compare_exchange)
#undef FERRY_SHMEM_OF_WIDTH

/* ---- Their names ---- */

#define FERRY_SHMEM_CHANGE(type, bits, call, operation)                                          \
  FERRY_DEVICE_FUNCTION void shmemx_device_##call(                                               \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {                   \
    ferry_shmem_update_##bits(d, (ferry_device_u64)dest, operation, (ferry_device_u##bits)value, \
                              pe);                                                               \
  }
#define FERRY_SHMEM_FETCHING(type, bits, call, operation)                        \
  FERRY_DEVICE_FUNCTION type shmemx_device_##call(                               \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {   \
    return (type)ferry_shmem_change_##bits(d, (ferry_device_u64)dest, operation, \
                                           (ferry_device_u##bits)value, pe);     \
  }

#define FERRY_SHMEM_ATOMICS(name, type, bits)                                                    \
  FERRY_DEVICE_FUNCTION type shmemx_device_##name##_atomic_fetch(                                \
      shmemx_device_t d, const FERRY_DEVICE_GLOBAL type* source, int pe) {                       \
    return (type)ferry_shmem_fetch_##bits(d, (ferry_device_u64)source, pe);                      \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION type shmemx_device_##name##_atomic_compare_swap(                         \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type cond, type value, int pe) {        \
    return (type)ferry_shmem_compare_swap_##bits(                                                \
        d, (ferry_device_u64)dest, (ferry_device_u##bits)cond, (ferry_device_u##bits)value, pe); \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION type shmemx_device_##name##_atomic_fetch_inc(                            \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, int pe) {                               \
    return (type)ferry_shmem_change_##bits(d, (ferry_device_u64)dest, FERRY_DEVICE_ADD, 1, pe);  \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION void shmemx_device_##name##_atomic_inc(                                  \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, int pe) {                               \
    ferry_shmem_update_##bits(d, (ferry_device_u64)dest, FERRY_DEVICE_ADD, 1, pe);               \
  }                                                                                              \
  FERRY_DEVICE_FUNCTION void shmemx_device_##name##_atomic_set(                                  \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {                   \
    ferry_shmem_set_##bits(d, (ferry_device_u64)dest, (ferry_device_u##bits)value, pe);          \
  }                                                                                              \
  FERRY_SHMEM_CHANGE(type, bits, name##_atomic_add, FERRY_DEVICE_ADD)                            \
  FERRY_SHMEM_CHANGE(type, bits, name##_atomic_and, FERRY_DEVICE_AND)                            \
  FERRY_SHMEM_CHANGE(type, bits, name##_atomic_or, FERRY_DEVICE_OR)                              \
  FERRY_SHMEM_CHANGE(type, bits, name##_atomic_xor, FERRY_DEVICE_XOR)                            \
  FERRY_SHMEM_FETCHING(type, bits, name##_atomic_swap, FERRY_DEVICE_SET)                         \
  FERRY_SHMEM_FETCHING(type, bits, name##_atomic_fetch_add, FERRY_DEVICE_ADD)                    \
  FERRY_SHMEM_FETCHING(type, bits, name##_atomic_fetch_and, FERRY_DEVICE_AND)                    \
  FERRY_SHMEM_FETCHING(type, bits, name##_atomic_fetch_or, FERRY_DEVICE_OR)                      \
  FERRY_SHMEM_FETCHING(type, bits, name##_atomic_fetch_xor, FERRY_DEVICE_XOR)

FERRY_SHMEM_WORD_TYPES(FERRY_SHMEM_ATOMICS)

/* float and double travel as the words of their bits. */
#define FERRY_SHMEM_REAL_ATOMICS(type, bits)                                                   \
  typedef union {                                                                              \
    type real;                                                                                 \
    ferry_device_u##bits word;                                                                 \
  } ferry_shmem_bits_of_##type;                                                                \
  FERRY_DEVICE_FUNCTION type shmemx_device_##type##_atomic_fetch(                              \
      shmemx_device_t d, const FERRY_DEVICE_GLOBAL type* source, int pe) {                     \
    ferry_shmem_bits_of_##type found;                                                          \
    found.word = ferry_shmem_fetch_##bits(d, (ferry_device_u64)source, pe);                    \
    return found.real;                                                                         \
  }                                                                                            \
  FERRY_DEVICE_FUNCTION type shmemx_device_##type##_atomic_swap(                               \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {                 \
    ferry_shmem_bits_of_##type both;                                                           \
    both.real = value;                                                                         \
    both.word =                                                                                \
        ferry_shmem_change_##bits(d, (ferry_device_u64)dest, FERRY_DEVICE_SET, both.word, pe); \
    return both.real;                                                                          \
  }                                                                                            \
  FERRY_DEVICE_FUNCTION void shmemx_device_##type##_atomic_set(                                \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, type value, int pe) {                 \
    ferry_shmem_bits_of_##type both;                                                           \
    both.real = value;                                                                         \
    ferry_shmem_set_##bits(d, (ferry_device_u64)dest, both.word, pe);                          \
  }

FERRY_SHMEM_REAL_ATOMICS(float, 32)
#if !defined(__OPENCL_C_VERSION__) || defined(cl_khr_fp64)
FERRY_SHMEM_REAL_ATOMICS(double, 64)
#endif

#undef FERRY_SHMEM_CHANGE
#undef FERRY_SHMEM_FETCHING
#undef FERRY_SHMEM_ATOMICS
#undef FERRY_SHMEM_REAL_ATOMICS

/* ---- Signals ---- */

/* Returns the value of this PE's own signal. */
FERRY_DEVICE_FUNCTION __UINT64_TYPE__
shmemx_device_signal_fetch(shmemx_device_t d, const FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr) {
  return ferry_shmem_fetch_64(d, (ferry_device_u64)sig_addr, d.pe);
}
FERRY_DEVICE_FUNCTION void shmemx_device_signal_set(shmemx_device_t d,
                                                    FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr,
                                                    __UINT64_TYPE__ signal, int pe) {
  ferry_shmem_set_64(d, (ferry_device_u64)sig_addr, signal, pe);
}
FERRY_DEVICE_FUNCTION void shmemx_device_signal_add(shmemx_device_t d,
                                                    FERRY_DEVICE_GLOBAL __UINT64_TYPE__* sig_addr,
                                                    __UINT64_TYPE__ signal, int pe) {
  ferry_shmem_update_64(d, (ferry_device_u64)sig_addr, FERRY_DEVICE_ADD, signal, pe);
}

#endif
