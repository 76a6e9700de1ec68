// The state of the registration cache in numbers, for users.
#pragma once

#include <atomic>
#include <cstdint>

namespace ferry::progress {

struct RegistrationStatistics {
  // Now. A limit of 0 is none.
  uint64_t entries = 0;  // registrations of ranks' memory, and those under way
  uint64_t entries_limit = 0;
  uint64_t bytes = 0;  // of these
  uint64_t bytes_limit = 0;
  uint64_t waiting = 0;  // registrations under way, and transfers that wait for room
  // Only ever grow.
  uint64_t hits = 0;             // transfers that found their memory registered
  uint64_t misses = 0;           // transfers that did not
  uint64_t evictions = 0;        // registrations that went for want of room
  uint64_t stale = 0;            // found for memory that was not there any more: not used
  uint64_t refusals = 0;         // by the network or by the limits
  uint64_t device_refusals = 0;  // by the network, of device memory: that is staged then
};

// A number that one thread writes and others may read.
class WatchedCount {
 public:
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  void Add(uint64_t more) { value_.store(value() + more, std::memory_order_relaxed); }
  void Subtract(uint64_t less) { value_.store(value() - less, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace ferry::progress
