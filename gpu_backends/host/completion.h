// One point in a stream that others can wait for, once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "common/status.h"

namespace ferry::gpu {

// Thread-safe; shared by the event, the operation that reaches the point and those that wait for
// it.
class Completion {
 public:
  // Marks the point as reached; `status` is the stream's. Later calls change nothing.
  void Complete(Status status);

  // kWouldBlock until the point is reached, then its status.
  Status Query() const;

  // Blocks until the point is reached.
  Status Wait() const;

  // As Wait, but gives up with kCancelled once `cancelled` is set and InterruptWaits was called.
  Status WaitUnless(const std::atomic<bool>& cancelled) const;
  void InterruptWaits() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  Status status_;
};

}  // namespace ferry::gpu
