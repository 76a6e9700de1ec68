// How a waiting thread spends its time: a few pauses, then sched_yield between polls, then sleep.
//
// Waking a sleeper costs tens of microseconds and spinning without yielding costs whole time slices
// once processes outnumber cores, so a wait goes through three phases; each is configurable.
//
// Calling thread: a Waiter belongs to one thread and one wait.
#pragma once

#include <cstdint>

namespace ferry::shm {

struct WaitPolicy {
  uint32_t spin_pauses = 64;                // polls with a pause instruction between them
  uint64_t idle_before_sleep_ns = 200'000;  // from the first yield; then the caller should sleep
  // True: the time in which other threads run on the core counts as idle, too. False suits many
  // ranks that poll in turn, since a poll costs less than to be woken; the time of a thread that
  // computes, and so keeps the core for long, counts all the same.
  bool counts_others = true;
};

// Tells the core that this is a spin loop.
inline void CpuPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most cores
#endif
}

// Calls sched_yield. Returns how long other threads have run on this core meanwhile, as far as the
// clock can say; 0: none has.
uint64_t YieldToOthers();
// Returns true if other threads ran when this thread yielded last, in any of its waits.
bool IsCrowded();

// Sets the function that a waiting thread calls once other threads ran at several of its yields in
// a row; null: none. Any thread; the old function may still be called for a moment.
using CrowdedHook = void (*)();
void SetCrowdedHook(CrowdedHook hook);

class Waiter {
 public:
  explicit Waiter(const WaitPolicy& policy) : policy_(policy) {}

  // Called after a poll that found nothing. Pauses or yields, and returns true when it is time to
  // sleep (again at each further call, still yielding). Reads the clock only in the yielding phase.
  bool Idle() {
    if (polls_ < policy_.spin_pauses) {
      ++polls_;
      CpuPause();
      return false;
    }
    return Yield();
  }
  // Called after a poll that found work: starts over.
  void Reset() {
    polls_ = 0;
    idle_since_ns_ = 0;
  }

 private:
  bool Yield();

  WaitPolicy policy_;
  uint32_t polls_ = 0;
  uint64_t idle_since_ns_ = 0;  // 0 = still spinning
};

}  // namespace ferry::shm
