#include "shm/wake.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace ferry::shm {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// How long a sleeper may miss a publisher where the kernel refuses heavy fences.
constexpr uint64_t kUnfencedSleepNs = 1'000'000;

std::atomic<bool> heavy_fence_refused{false};

}  // namespace

// The bump is for a sleeper that has read `sequence` and looked for work too early: it must not
// sleep on what it read. Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
void Wake::WakeAll() {
  FetchAdd(layout_->sequence, 1, std::memory_order_seq_cst);  // Pairs with PrepareToSleep.
  syscall(SYS_futex, &layout_->sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Wake::RestoreActivity(uint32_t lane) {
  FetchOr(layout_->activity[lane / 64], uint64_t{1} << (lane % 64), std::memory_order_seq_cst);
}

uint32_t Wake::PrepareToSleep() {
  // Pairs with WakeSleepers.
  FetchAdd(layout_->sleepers, 1, std::memory_order_seq_cst);
  const uint32_t sequence = Load(layout_->sequence, std::memory_order_seq_cst);
  // Pairs with OrderMessage.
  if (!HeavyFence()) [[unlikely]] {
    heavy_fence_refused.store(true, std::memory_order_relaxed);
  }
  return sequence;
}

void Wake::CancelSleep() { FetchAdd(layout_->sleepers, ~uint32_t{0}, std::memory_order_seq_cst); }

void Wake::Sleep(uint32_t sequence, uint64_t timeout_ns) {
  if (heavy_fence_refused.load(std::memory_order_relaxed)) [[unlikely]] {
    timeout_ns = timeout_ns == 0 ? kUnfencedSleepNs : std::min(timeout_ns, kUnfencedSleepNs);
  }
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSecond),
                         .tv_nsec = static_cast<long>(timeout_ns % kNsPerSecond)};
  // Woken, timed out, interrupted or too late to sleep: the caller looks for work in every case.
  syscall(SYS_futex, &layout_->sequence, FUTEX_WAIT, sequence, timeout_ns == 0 ? nullptr : &timeout,
          nullptr, 0);
  CancelSleep();
}

void Wake::Poison(ErrorCode error) {
  int32_t none = 0;
  // Pairs with poison().
  CompareExchange(layout_->poison, none, static_cast<int32_t>(error), std::memory_order_acq_rel);
  // Also by those that came second: the first may have been killed before it could wake anybody.
  Publish();
}

ErrorCode Wake::poison() const {
  return static_cast<ErrorCode>(LoadAcquire(layout_->poison));  // Pairs with Poison.
}

}  // namespace ferry::shm
