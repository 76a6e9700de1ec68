// How a waiting thread spends its time: a few pauses, then sched_yield between polls, then sleep.
//
// Waking a sleeper costs tens of microseconds and spinning without yielding costs whole time slices
// once processes outnumber cores, so a wait goes through three phases; each is configurable.
#pragma once

#include <cstdint>

namespace ferry::shm {

struct WaitPolicy {
  uint32_t spin_pauses = 64;               // polls with a pause instruction between them
  uint64_t idle_before_sleep_ns = 200'000; // from the first idle poll; then the caller should sleep
};

class Waiter {
 public:
  explicit Waiter(const WaitPolicy& policy) : policy_(policy) {}

  // Called after a poll that found nothing. Pauses or yields, and returns true when it is time to
  // sleep. Reads the clock only in the yielding phase.
  bool Idle();
  // Called after a poll that found something: starts over.
  void Reset() { polls_ = 0; }

 private:
  WaitPolicy policy_;
  uint32_t polls_ = 0;
  uint64_t idle_since_ns_ = 0;
};

}  // namespace ferry::shm
