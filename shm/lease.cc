#include "shm/lease.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kYieldsBeforeSleep = 16;
constexpr timespec kGiveUpPeriod = {.tv_sec = 0, .tv_nsec = 10'000'000};

// Returns early on a wake, a signal, the timeout (null: none), or when the word is not `expected`.
void FutexWait(uint32_t* word, uint32_t expected, const timespec* timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout, nullptr, 0);
}

void FutexWakeAll(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

bool Lease::TryAcquire(uint32_t holder) {
  uint32_t expected = kLeaseFree;
  // Pairs with Lease::Release: the last holder's stores to what the lease guards.
  return CompareExchange(layout_->word, expected, holder, std::memory_order_acquire);
}

bool Lease::Acquire(uint32_t holder, const int32_t* give_up) {
  uint32_t yields = 0;
  while (!TryAcquire(holder)) {
    if (give_up != nullptr && LoadAcquire(*give_up) != 0) {  // Pairs with Wake::Poison
      return false;
    }
    uint32_t seen = LoadRelaxed(layout_->word);
    if (seen == kLeaseFree) {
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
      FutexWait(&layout_->word, seen | kLeaseWanted, give_up != nullptr ? &kGiveUpPeriod : nullptr);
    }
  }
  return true;
}

void Lease::Release(uint32_t holder) {
  uint32_t seen = holder;
  // Pairs with Lease::TryAcquire: publishes what the holder stored under the lease.
  while (!CompareExchange(layout_->word, seen, kLeaseFree, std::memory_order_release)) {
    if ((seen & ~kLeaseWanted) != holder) {
      return;
    }
  }
  if ((seen & kLeaseWanted) != 0) {
    FetchAdd(layout_->handovers, 1, std::memory_order_relaxed);
    // All of them, since a single one might be killed before it takes the lease and leave the
    // others asleep for ever. Those that come too late set WANTED again.
    FutexWakeAll(&layout_->word);
    sched_yield();
  }
}

bool Lease::IsWanted() const { return (LoadRelaxed(layout_->word) & kLeaseWanted) != 0; }

uint32_t Lease::Holder() const { return LoadRelaxed(layout_->word) & ~kLeaseWanted; }

bool Lease::BreakDead(uint32_t dead_holder, uint32_t new_holder) {
  uint32_t seen = dead_holder;
  // Acquire: pairs with whatever the dead holder released last. Waiters stay: Release will wake
  // them.
  while (!CompareExchange(layout_->word, seen, new_holder | (seen & kLeaseWanted),
                          std::memory_order_acquire)) {
    if ((seen & ~kLeaseWanted) != dead_holder) {
      // It may have died in Release, after it gave the lease back and before it woke the waiters.
      FutexWakeAll(&layout_->word);
      return false;
    }
  }
  return true;
}

}  // namespace ferry::shm
