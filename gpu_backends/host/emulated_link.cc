#include "gpu_backends/host/emulated_link.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>

#include "common/clock.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// About what it takes to wake up a thread.
constexpr uint64_t kYieldNs = 50'000;

}  // namespace

LinkInterval EmulatedLink::Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns) {
  std::lock_guard lock(mutex_);
  return model_.Occupy(route, size_bytes, submit_ns);
}

void EmulatedLink::PrepareThread() {
  // Else the kernel adds up to 50 us to every sleep, to wake up several threads at once.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

void EmulatedLink::SleepUntil(uint64_t deadline_ns) {
  const uint64_t now_ns = MonotonicNs();
  if (deadline_ns > now_ns + kYieldNs) {
    const uint64_t until_ns = deadline_ns - kYieldNs;
    const timespec until{static_cast<time_t>(until_ns / kNsPerSecond),
                         static_cast<long>(until_ns % kNsPerSecond)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
  while (MonotonicNs() < deadline_ns) {
    sched_yield();
  }
}

}  // namespace ferry::gpu
