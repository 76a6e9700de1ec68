#include "shm/wait_policy.h"

#include <sched.h>

#include "common/clock.h"

namespace ferry::shm {

bool Waiter::Yield() {
  sched_yield();
  const uint64_t now_ns = MonotonicNs();
  if (idle_since_ns_ == 0) {
    idle_since_ns_ = now_ns;
  }
  return now_ns - idle_since_ns_ >= policy_.idle_before_sleep_ns;
}

}  // namespace ferry::shm
