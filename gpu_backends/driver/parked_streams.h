// Streams that were abandoned while they waited for an event or a word that had not come.
//
// A vendor's stream cannot be told to drop its work, and destroying it would block, perhaps for
// ever. So it stays, with all that it refers to, until it has nothing to do any more. Memory that
// is freed meanwhile is kept, since such a stream may still write there. Streams that failed with
// the streams that they wait for, and are not destroyed yet, keep memory in the same way.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/driver/stream_state.h"

namespace ferry::gpu {

class ParkedStreams {
 public:
  explicit ParkedStreams(Driver& driver) : driver_(driver) {}
  ParkedStreams(const ParkedStreams&) = delete;
  ParkedStreams& operator=(const ParkedStreams&) = delete;

  // Registers a stream; called for every stream when it is made.
  void Watch(const std::shared_ptr<StreamState>& stream);
  // Parks a stream that is destroyed with work left.
  void Park(std::shared_ptr<StreamState> stream);
  // Destroys the streams that have come to an end, and releases the kept memory if none is left.
  // Returns whether none is left.
  bool Sweep();
  // Calls `release`, which gives memory back to the vendor: now, returning its status, or later,
  // when no stream that might use the memory is left.
  Status Release(std::function<Status()> release);

 private:
  // As Sweep, with the mutex held.
  bool SweepLocked();

  Driver& driver_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<StreamState>> live_;
  std::vector<std::shared_ptr<StreamState>> parked_;
  std::vector<std::function<Status()>> kept_;
};

}  // namespace ferry::gpu
