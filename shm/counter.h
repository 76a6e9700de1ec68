// A counter: a 64-bit word that only grows, waited for with "greater or equal"
// (shm/layout/counter_layout.h).
//
// The word of triggers and completions, after the counters of Portals 4 and of NICs with triggered
// operations. A failure shows in the same word: it adds 2^62, so that every wait fires, and an
// error code stands beside it. A failed counter stays failed; its program is installed anew.
//
// Calling thread: any, of any process that maps the counter. Nothing blocks. Add and Fail use the
// CPU's atomics: use them on words whose class of writer is the CPU, not the NIC or a GPU stream.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/counter_layout.h"

namespace ferry::shm {

class Counter {
 public:
  Counter() = default;
  explicit Counter(CounterLayout* layout) : layout_(layout) {}

  // Adds `n`, and publishes the caller's earlier stores: a reader that sees the new value sees
  // those, too.
  void Add(uint64_t n) {
    FetchAdd(layout_->value, n, std::memory_order_release);  // Pairs with Value.
  }

  // The value; kCounterFailure or more once the counter has failed.
  uint64_t Value() const { return LoadAcquire(layout_->value); }  // Pairs with Add and Fail.

  // Returns true if the counter has reached `threshold` (< kCounterFailure) or failed: error()
  // tells which.
  bool Reached(uint64_t threshold) const { return Value() >= threshold; }

  // Fails the counter: the error of the first call stays. A caller killed half-way leaves a counter
  // that the next call to Fail completes.
  void Fail(ErrorCode error) {
    int32_t none = 0;
    CompareExchange(layout_->error, none, static_cast<int32_t>(error), std::memory_order_acq_rel);
    uint64_t value = LoadRelaxed(layout_->value);
    // Pairs with Value: publishes `error`. The loop adds 2^62 once, however many callers fail at
    // once.
    while (value < kCounterFailure &&
           !CompareExchange(layout_->value, value, value + kCounterFailure,
                            std::memory_order_acq_rel)) {
    }
  }

  // kOk until the counter has failed.
  ErrorCode error() const {
    return Reached(kCounterFailure) ? static_cast<ErrorCode>(LoadRelaxed(layout_->error))
                                    : ErrorCode::kOk;
  }

 private:
  CounterLayout* layout_ = nullptr;
};

}  // namespace ferry::shm
