/* ferry/device/atomics.h - atomic operations on words of 4 bytes, as platform.h has them on words
 * of 8; and the bitwise ones on both. At system scope: they agree with those of all CPUs and
 * devices of the node. See platform.h.
 *
 * On memory of the host a device is atomic to CPUs as far as its link is: PCI Express carries
 * additions, exchanges and compare-exchanges, if the GPU and the machine's root port have them. So
 * bitwise operations are made of compare-exchanges. */
#ifndef FERRY_DEVICE_ATOMICS_H
#define FERRY_DEVICE_ATOMICS_H

#include "ferry/device/platform.h"

#if defined(FERRY_DEVICE_IS_OPENCL)

#define FERRY_DEVICE_ATOMIC_32(word) ((volatile __global atomic_uint*)(word))

FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_load_acquire_32(const FERRY_DEVICE_GLOBAL ferry_device_u32* word) {
  return atomic_load_explicit(FERRY_DEVICE_ATOMIC_32(word), memory_order_acquire,
                              FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                                         ferry_device_u32 value) {
  atomic_store_explicit(FERRY_DEVICE_ATOMIC_32(word), value, memory_order_release,
                        FERRY_DEVICE_SCOPE);
}
/* These three acquire and release, and return the previous value. */
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_fetch_add_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  return atomic_fetch_add_explicit(FERRY_DEVICE_ATOMIC_32(word), value, memory_order_acq_rel,
                                   FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  return atomic_exchange_explicit(FERRY_DEVICE_ATOMIC_32(word), value, memory_order_acq_rel,
                                  FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_compare_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                 ferry_device_u32 expected, ferry_device_u32 desired) {
  atomic_compare_exchange_strong_explicit(FERRY_DEVICE_ATOMIC_32(word), &expected, desired,
                                          memory_order_acq_rel, memory_order_acquire,
                                          FERRY_DEVICE_SCOPE);
  return expected;
}

#elif defined(FERRY_DEVICE_IS_NVIDIA)

FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_load_acquire_32(const FERRY_DEVICE_GLOBAL ferry_device_u32* word) {
  ferry_device_u32 value;
  __asm__ volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                                         ferry_device_u32 value) {
  __asm__ volatile("st.release.sys.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_fetch_add_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  ferry_device_u32 before;
  __asm__ volatile("atom.acq_rel.sys.add.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "l"(word), "r"(value)
                   : "memory");
  return before;
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  ferry_device_u32 before;
  __asm__ volatile("atom.acq_rel.sys.exch.b32 %0, [%1], %2;"
                   : "=r"(before)
                   : "l"(word), "r"(value)
                   : "memory");
  return before;
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_compare_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                 ferry_device_u32 expected, ferry_device_u32 desired) {
  ferry_device_u32 before;
  __asm__ volatile("atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(before)
                   : "l"(word), "r"(expected), "r"(desired)
                   : "memory");
  return before;
}

#else

FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_load_acquire_32(const FERRY_DEVICE_GLOBAL ferry_device_u32* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                                         ferry_device_u32 value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_fetch_add_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 value) {
  return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
}
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_compare_exchange_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word,
                                 ferry_device_u32 expected, ferry_device_u32 desired) {
  __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}

#endif

/* ---- The operations of one-sided calls, by number ---- */

#define FERRY_DEVICE_SET 0u /* exchanges */
#define FERRY_DEVICE_ADD 1u
#define FERRY_DEVICE_AND 2u
#define FERRY_DEVICE_OR 3u
#define FERRY_DEVICE_XOR 4u

/* Changes the word and returns its previous value. */
FERRY_DEVICE_FUNCTION ferry_device_u32
ferry_device_change_32(FERRY_DEVICE_GLOBAL ferry_device_u32* word, ferry_device_u32 operation,
                       ferry_device_u32 value) {
  ferry_device_u32 before;
  if (operation == FERRY_DEVICE_SET) {
    return ferry_device_exchange_32(word, value);
  }
  if (operation == FERRY_DEVICE_ADD) {
    return ferry_device_fetch_add_32(word, value);
  }
  before = ferry_device_load_acquire_32(word);
  for (;;) {
    const ferry_device_u32 after = operation == FERRY_DEVICE_AND  ? before & value
                                   : operation == FERRY_DEVICE_OR ? before | value
                                                                  : before ^ value;
    const ferry_device_u32 found = ferry_device_compare_exchange_32(word, before, after);
    if (found == before) {
      return before;
    }
    before = found;
  }
}

FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_change_64(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u32 operation,
                       ferry_device_u64 value) {
  ferry_device_u64 before;
  if (operation == FERRY_DEVICE_SET) {
    return ferry_device_exchange(word, value);
  }
  if (operation == FERRY_DEVICE_ADD) {
    return ferry_device_fetch_add(word, value);
  }
  before = ferry_device_load_acquire(word);
  for (;;) {
    const ferry_device_u64 after = operation == FERRY_DEVICE_AND  ? before & value
                                   : operation == FERRY_DEVICE_OR ? before | value
                                                                  : before ^ value;
    const ferry_device_u64 found = ferry_device_compare_exchange(word, before, after);
    if (found == before) {
      return before;
    }
    before = found;
  }
}

#endif
