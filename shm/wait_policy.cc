#include "shm/wait_policy.h"

#include <sched.h>

#include <atomic>

#include "common/clock.h"

namespace ferry::shm {

namespace {

// A yield to no other thread takes a third of a microsecond, two changes of process take several.
constexpr uint64_t kOthersRanNs = 3'000;
// Of a hundred ranks that look and yield in turn each comes sooner.
constexpr uint64_t kComputesNs = 500'000;

// One yield may meet an interrupt.
constexpr uint32_t kCrowdedYields = 8;

thread_local bool is_crowded = false;
thread_local uint32_t crowded_yields = 0;  // in a row
std::atomic<CrowdedHook> crowded_hook = nullptr;

// Returns what time it is then.
[[gnu::noinline]] uint64_t TellOfCrowd(uint64_t now_ns) {
  crowded_yields = 0;
  const CrowdedHook hook = crowded_hook.load(std::memory_order_acquire);
  if (hook == nullptr) {
    return now_ns;
  }
  hook();
  return MonotonicNs();
}

// As YieldToOthers; and what time it is then.
uint64_t YieldUntil(uint64_t* now_ns) {
  const uint64_t begin_ns = MonotonicNs();
  sched_yield();
  *now_ns = MonotonicNs();
  is_crowded = *now_ns - begin_ns >= kOthersRanNs;
  if (!is_crowded) {
    crowded_yields = 0;
    return 0;
  }
  const uint64_t others_ns = *now_ns - begin_ns;
  if (++crowded_yields == kCrowdedYields) [[unlikely]] {
    *now_ns = TellOfCrowd(*now_ns);
  }
  return others_ns;
}

}  // namespace

uint64_t YieldToOthers() {
  uint64_t now_ns = 0;
  return YieldUntil(&now_ns);
}

bool IsCrowded() { return is_crowded; }

void SetCrowdedHook(CrowdedHook hook) { crowded_hook.store(hook, std::memory_order_release); }

bool Waiter::Yield() {
  uint64_t now_ns = 0;
  const uint64_t others_ns = YieldUntil(&now_ns);
  if (idle_since_ns_ == 0) {
    idle_since_ns_ = now_ns;
  } else if (!policy_.counts_others && others_ns < kComputesNs) {
    idle_since_ns_ += others_ns;
  }
  return now_ns - idle_since_ns_ >= policy_.idle_before_sleep_ns;
}

}  // namespace ferry::shm
