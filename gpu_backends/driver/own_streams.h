// The streams that a driver made itself, as opposed to those that the application gave it.
#pragma once

#include <mutex>
#include <unordered_set>

#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// Thread-safe.
class OwnStreams {
 public:
  void Add(NativeStream stream) {
    std::lock_guard lock(mutex_);
    streams_.insert(stream);
  }
  // Whether it was there, and so must be destroyed.
  bool Remove(NativeStream stream) {
    std::lock_guard lock(mutex_);
    return streams_.erase(stream) != 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<NativeStream> streams_;
};

}  // namespace ferry::gpu
