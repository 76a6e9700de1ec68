// One of the NIC's counters for all ready sends that one doorbell starts: each store of the stream
// is one addition, which fires the writes of all of them ("Co-Design and Evaluation of a CPU-Free
// MPI GPU Communication Abstraction and Implementation", section V-A). The counter counts what the
// doorbell does.
//
// A send that fails leaves what it has armed behind: a NIC discards that only with the counter, and
// others wait for the same one. So it is closed, and opened anew, as soon as nothing else waits.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "common/status.h"
#include "shm/layout/counter_layout.h"
#include "transports/api/deferred_work.h"

namespace ferry::daemon {

class SharedTrigger {
 public:
  // `deferred` and `doorbell` outlive it.
  SharedTrigger(transport::DeferredWork& deferred, const shm::CounterLayout* doorbell)
      : deferred_(deferred), doorbell_(doorbell) {}
  ~SharedTrigger() { CloseCounter(); }
  SharedTrigger(const SharedTrigger&) = delete;
  SharedTrigger& operator=(const SharedTrigger&) = delete;

  // Adds what the doorbell has counted since the last call.
  void Ring();
  // The NIC has such a counter from the first operation on. Errors: those of
  // DeferredWork::OpenCounter.
  StatusOr<transport::NicCounter> Counter();

  // An operation of the NIC waits for the counter, or did.
  void NoteArmed() { ++armed_; }
  // It has ended, or (`is_left`) nobody is interested in its end any more.
  void NoteOver(bool is_left);

 private:
  void CloseCounter();

  transport::DeferredWork& deferred_;
  const shm::CounterLayout* const doorbell_;
  std::optional<transport::NicCounter> counter_;
  uint64_t rung_ = 0;
  uint32_t armed_ = 0;
  bool any_left_ = false;
};

// The shared triggers of one NIC, by their doorbells. They live as long as somebody holds them.
class SharedTriggers {
 public:
  explicit SharedTriggers(transport::DeferredWork& deferred) : deferred_(deferred) {}

  // `doorbell` stays mapped while the result is held.
  std::shared_ptr<SharedTrigger> Hold(const shm::CounterLayout* doorbell);

 private:
  transport::DeferredWork& deferred_;
  std::map<const shm::CounterLayout*, std::weak_ptr<SharedTrigger>> by_doorbell_;
};

}  // namespace ferry::daemon
