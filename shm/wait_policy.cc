#include "shm/wait_policy.h"

#include <sched.h>

#include "common/clock.h"

namespace ferry::shm {

namespace {

// A yield to nobody takes a third of a microsecond, two changes of process take several.
constexpr uint64_t kOthersRanNs = 3'000;
// Of a hundred ranks that look and yield in turn each comes sooner.
constexpr uint64_t kComputesNs = 500'000;

thread_local bool is_crowded = false;

}  // namespace

uint64_t YieldToOthers() {
  const uint64_t begin_ns = MonotonicNs();
  sched_yield();
  const uint64_t took_ns = MonotonicNs() - begin_ns;
  is_crowded = took_ns >= kOthersRanNs;
  return is_crowded ? took_ns : 0;
}

bool IsCrowded() { return is_crowded; }

bool Waiter::Yield() {
  const uint64_t others_ns = YieldToOthers();
  const uint64_t now_ns = MonotonicNs();
  if (idle_since_ns_ == 0) {
    idle_since_ns_ = now_ns;
  } else if (!policy_.counts_others && others_ns < kComputesNs) {
    idle_since_ns_ += others_ns;
  }
  return now_ns - idle_since_ns_ >= policy_.idle_before_sleep_ns;
}

}  // namespace ferry::shm
