// Two fences of unequal cost that order against each other, for a Dekker pattern of which one side
// runs with every message and the other seldom:
//
//   often: store x; LightFence(); load y        seldom: store y; HeavyFence(); load x
//
// At least one of the two sees the other's store. The light fence only keeps the compiler from
// reordering; the heavy one makes the kernel put a full barrier into every thread, of all processes
// that called EnableLightFence, which runs at that moment (membarrier(2), GLOBAL_EXPEDITED; a
// thread that does not run passed one when it was switched out). An idea of Dice, Huang and Yang
// ("Asymmetric Dekker synchronization", 2001), and of user-space RCU.
//
// ThreadSanitizer does not see these fences. It need not: data always changes hands by an acquire
// that reads a release; the fences only make sure that neither side misses the other.
//
// Calling thread: any.
#pragma once

#include <atomic>

namespace ferry::shm {

namespace internal {
extern std::atomic<bool> light_fence_enabled;
}  // namespace internal

// Registers this process: from now on HeavyFence in any process covers it. To be called before the
// process has several threads, else it takes milliseconds. Idempotent; a forked child stays
// registered. False: the kernel refuses, and this process needs full barriers.
bool EnableLightFence();
// Returns to full barriers, for tests: a process without light fences must not stop the others.
void DisableLightFence();
inline bool IsLightFenceEnabled() {
  return internal::light_fence_enabled.load(std::memory_order_relaxed);
}

inline void LightFence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// For both sides of a Dekker pattern that each run often.
inline void FullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// A full fence right after a sequentially consistent read-modify-write, which on x86 is one itself.
inline void FenceAfterUpdate() {
#ifdef __x86_64__
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  FullFence();
#endif
}

// Runs a full barrier in every registered thread: a system call of a few microseconds. False: the
// kernel refuses, nothing is ordered.
bool HeavyFence();

}  // namespace ferry::shm
