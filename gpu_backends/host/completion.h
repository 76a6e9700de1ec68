// One point in a stream that others can wait for, once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "common/status.h"

namespace ferry::gpu {

// Thread-safe; shared by the event, the operation that reaches the point and those that wait for
// it.
class Completion {
 public:
  // Marks the point as reached; `status` is the stream's, `reached_ns` its modelled time (0 without
  // an emulated link). Later calls change nothing.
  void Complete(Status status, uint64_t reached_ns = 0);
  // The modelled time; 0 before the point is reached.
  uint64_t reached_ns() const;

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
  uint64_t reached_ns_ = 0;
  Status status_;
};

}  // namespace ferry::gpu
