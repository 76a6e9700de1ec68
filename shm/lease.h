// The progress lease of a rank (shm/layout/lease_layout.h): its holder may drain its lanes and
// match.
//
// Held for one step of the engine (engine/engine_options.h: kDrainBudget) and never across a copy,
// a system call or a callback. A thread that finds it taken sets WANTED, yields a few times, then
// sleeps on the word; the holder hands over when it releases. Crash rule: only after the control
// plane knows that a holder is dead may BreakDead take the lease from it; the taker then calls
// Journal::Recover. A waiter may die at any time: no process depends on it.
//
// A rank in which one thread calls at a time takes its lease with every message, and other
// processes hardly ever do. It biases the lease: it keeps it, marks its use in a word of its own,
// and checks that the lease is still its own, without a locked instruction. Another process that
// wants a biased lease writes its name into the lease word and then looks whether the rank is using
// it (Dekker's pattern, shm/fence.h); if so, it gives up at once. After "biased locking" (Russell
// and Detlefs, 2006).
//
// Calling thread: any, of any process that maps the word.
#pragma once

#include <cstdint>

#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/layout/lease_layout.h"

namespace ferry::shm {

class Lease {
 public:
  Lease() = default;
  explicit Lease(LeaseLayout* layout) : layout_(layout) {}

  // Keeps the lease as `holder` from now on, through this object, which one thread at a time may
  // use. Called by the rank, while it is not in the lease. Waits for the holder, if there is one.
  // Does nothing without light fences.
  void Bias(uint32_t holder);
  // Ends the bias: the lease is as if it had never been biased, and several threads may use it.
  // Called by the rank's one thread, while it is not in the lease. May wait for a holder.
  void Unbias(uint32_t holder);

  // Takes the lease if it is free. `holder` is a thread id of the rank, or kLeaseWorker. Never
  // blocks.
  bool TryAcquire(uint32_t holder) { return is_owner_ ? TryEnter(holder) : TryTake(holder); }
  // Takes the lease, waiting for its holder if need be (yield, then sleep). Returns false when
  // `give_up` (an ErrorCode word such as WakeLayout::poison, or null) becomes non-zero, or after
  // `timeout_ns`. A sleeper looks at `give_up` every 10 ms, since a write to it wakes no sleeper
  // here.
  bool Acquire(uint32_t holder, const int32_t* give_up = nullptr, uint64_t timeout_ns = UINT64_MAX);
  // Gives the lease back and wakes the waiters if there are any; then yields once, so that one of
  // them gets it. Does nothing when the lease is not `holder`'s (BreakDead took it).
  void Release(uint32_t holder) {
    if (is_owner_) {
      StoreRelease(layout_->owner, 0);  // Pairs with Lease::Revoke.
    } else {
      GiveBack(holder);
    }
  }
  // Returns true if a thread waits for the lease: a polling holder then releases it.
  bool IsWanted() const;
  // The holder's id; kLeaseFree = none.
  uint32_t Holder() const;

  // Takes the lease from `dead_holder` if that one still holds it; else wakes all waiters, which
  // the dead holder may not have woken. To be called for every thread that may have held the lease
  // when it died.
  bool BreakDead(uint32_t dead_holder, uint32_t new_holder);

 private:
  bool TryEnter(uint32_t holder);
  bool TryTake(uint32_t holder);
  bool Revoke(uint32_t holder);
  void GiveBack(uint32_t holder);

  LeaseLayout* layout_ = nullptr;
  bool is_owner_ = false;
};

inline bool Lease::TryEnter(uint32_t holder) {
  StoreRelaxed(layout_->owner, holder);
  LightFence();  // Pairs with Lease::Revoke.
  // Pairs with Lease::GiveBack: the last holder's stores to the words that the lease guards.
  if (LoadAcquire(layout_->word) == kLeaseBiased) [[likely]] {
    return true;
  }
  StoreRelease(layout_->owner, 0);
  return false;
}

}  // namespace ferry::shm
