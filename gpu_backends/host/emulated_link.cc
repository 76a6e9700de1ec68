#include "gpu_backends/host/emulated_link.h"

#include <sched.h>

#include "common/clock.h"
#include "common/sleep.h"

namespace ferry::gpu {
namespace {

// About what it takes to wake up a thread.
constexpr uint64_t kYieldNs = 50'000;

}  // namespace

LinkInterval EmulatedLink::Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns) {
  std::lock_guard lock(mutex_);
  return model_.Occupy(route, size_bytes, submit_ns);
}

void EmulatedLink::PrepareThread() { WakeInTime(); }

void EmulatedLink::SleepUntil(uint64_t deadline_ns) {
  const uint64_t now_ns = MonotonicNs();
  if (deadline_ns > now_ns + kYieldNs) {
    SleepUntilNs(deadline_ns - kYieldNs);
  }
  while (MonotonicNs() < deadline_ns) {
    sched_yield();
  }
}

}  // namespace ferry::gpu
