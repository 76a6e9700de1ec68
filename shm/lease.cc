#include "shm/lease.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "common/clock.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kYieldsBeforeSleep = 16;
constexpr uint32_t kHolderMask = ~(kLeaseWanted | kLeaseBiased);
constexpr uint64_t kGiveUpPeriodNs = 10'000'000;

// Returns early on a wake, a signal, the timeout (UINT64_MAX: none), or when the word is not
// `expected`.
void FutexWait(uint32_t* word, uint32_t expected, uint64_t timeout_ns) {
  const timespec timeout = {.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000),
                            .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns != UINT64_MAX ? &timeout : nullptr,
          nullptr, 0);
}

void FutexWakeAll(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void Lease::Bias(uint32_t holder) {
  if (!IsLightFenceEnabled()) {
    return;
  }
  Acquire(holder);
  FetchOr(layout_->word, kLeaseBiased, std::memory_order_relaxed);
  GiveBack(holder);
  is_owner_ = true;
}

// The owner takes the lease as anybody else would, its own mark not being set.
void Lease::Unbias(uint32_t holder) {
  if (!is_owner_) {
    return;
  }
  is_owner_ = false;
  Acquire(holder);
  FetchAnd(layout_->word, ~kLeaseBiased, std::memory_order_relaxed);
  GiveBack(holder);
}

bool Lease::TryTake(uint32_t holder) {
  uint32_t expected = kLeaseFree;
  // Pairs with Lease::GiveBack: the last holder's stores to what the lease guards.
  return CompareExchange(layout_->word, expected, holder, std::memory_order_acquire) ||
         (expected == kLeaseBiased && Revoke(holder));
}

// Takes a biased lease, unless its owner is in it.
bool Lease::Revoke(uint32_t holder) {
  uint32_t expected = kLeaseBiased;
  if (LoadRelaxed(layout_->owner) != 0 ||
      !CompareExchange(layout_->word, expected, holder | kLeaseBiased, std::memory_order_acquire)) {
    return false;
  }
  // The fence pairs with Lease::TryEnter: either the owner sees our name, or we see its mark. The
  // acquire pairs with Lease::Release.
  if (HeavyFence() && LoadAcquire(layout_->owner) == 0) {
    return true;
  }
  GiveBack(holder);
  return false;
}

bool Lease::Acquire(uint32_t holder, const int32_t* give_up, uint64_t timeout_ns) {
  uint32_t yields = 0;
  uint64_t begin_ns = 0;  // 0: it has not been looked at
  uint64_t sleep_ns = give_up != nullptr ? kGiveUpPeriodNs : UINT64_MAX;
  while (!TryAcquire(holder)) {
    if (give_up != nullptr && LoadAcquire(*give_up) != 0) {  // Pairs with Wake::Poison
      return false;
    }
    if (timeout_ns != UINT64_MAX) {
      const uint64_t now_ns = MonotonicNs();
      begin_ns = begin_ns == 0 ? now_ns : begin_ns;
      if (now_ns - begin_ns >= timeout_ns) {
        return false;
      }
      sleep_ns = std::min(sleep_ns, timeout_ns - (now_ns - begin_ns));
    }
    uint32_t seen = LoadRelaxed(layout_->word);
    if ((seen & kHolderMask) == 0) {
      sched_yield();  // free now, or its owner is in it
      continue;
    }
    // The bit carries no data; acquire, because CompareExchange asks for no less.
    if ((seen & kLeaseWanted) == 0 &&
        !CompareExchange(layout_->word, seen, seen | kLeaseWanted, std::memory_order_acquire)) {
      continue;
    }
    if (yields < kYieldsBeforeSleep) {
      ++yields;
      sched_yield();
    } else {
      FutexWait(&layout_->word, seen | kLeaseWanted, sleep_ns);
    }
  }
  return true;
}

void Lease::GiveBack(uint32_t holder) {
  uint32_t seen = LoadRelaxed(layout_->word);
  do {
    if ((seen & kHolderMask) != holder) {
      return;
    }
    // Pairs with Lease::TryTake and TryEnter: publishes what the holder stored under the lease.
  } while (!CompareExchange(layout_->word, seen, seen & kLeaseBiased, std::memory_order_release));
  if ((seen & kLeaseWanted) != 0) {
    FetchAdd(layout_->handovers, 1, std::memory_order_relaxed);
    // All of them, since a single one might be killed before it takes the lease and leave the
    // others asleep for ever. Those that come too late set WANTED again.
    FutexWakeAll(&layout_->word);
    sched_yield();
  }
}

bool Lease::IsWanted() const { return (LoadRelaxed(layout_->word) & kLeaseWanted) != 0; }

uint32_t Lease::Holder() const { return LoadRelaxed(layout_->word) & kHolderMask; }

bool Lease::BreakDead(uint32_t dead_holder, uint32_t new_holder) {
  uint32_t seen = LoadRelaxed(layout_->word);
  for (;;) {
    const bool owner_died =
        seen == kLeaseBiased && LoadAcquire(layout_->owner) == dead_holder;  // as in Revoke
    if (!owner_died && (seen & kHolderMask) != dead_holder) {
      // It may have died in GiveBack, after it gave the lease back and before it woke the waiters.
      FutexWakeAll(&layout_->word);
      return false;
    }
    // Acquire: pairs with whatever the dead holder released last. Waiters stay: GiveBack will wake
    // them.
    if (CompareExchange(layout_->word, seen, new_holder | (seen & ~kHolderMask),
                        std::memory_order_acquire)) {
      if (owner_died) {
        StoreRelaxed(layout_->owner, 0);
      }
      return true;
    }
  }
}

}  // namespace ferry::shm
