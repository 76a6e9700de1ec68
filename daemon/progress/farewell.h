// Until when the last messages of leaving ranks may wait for the network.
//
// The control thread waits for them, so those who leave together have one farewell in all: of any
// two seconds it spends one at most, and heartbeats come in between.
//
// Any thread.
#pragma once

#include <cstdint>
#include <mutex>

namespace ferry::daemon {

class Farewell {
 public:
  explicit Farewell(uint64_t longest_ns) : longest_ns_(longest_ns) {}

  // For a rank that leaves now.
  uint64_t DeadlineNs(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (deadline_ns_ == 0 || now_ns > deadline_ns_ + longest_ns_) {
      deadline_ns_ = now_ns + longest_ns_;
    }
    return deadline_ns_;
  }

 private:
  const uint64_t longest_ns_;
  std::mutex mutex_;
  uint64_t deadline_ns_ = 0;
};

}  // namespace ferry::daemon
