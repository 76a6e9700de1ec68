// A user, beside the network, that wants to know staging memory before it is used: a GPU's driver,
// which copies at full speed only from and to memory that it has pinned.
//
// Calling thread: any, one at a time for one range. May take milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::daemon {

class MemoryUser {
 public:
  virtual ~MemoryUser() = default;
  virtual void Admit(std::byte* base, uint64_t bytes) = 0;
  // The memory that was admitted there is about to go.
  virtual void Dismiss(std::byte* base) = 0;
};

}  // namespace ferry::daemon
