// Lets ranks exchange values before they have a job: each puts values under names, and after a
// fence every rank can get them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::client {

// Calling thread: one at a time. Fence blocks until all ranks have called it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // The ranks on this one's node, itself included, in order.
  virtual const std::vector<uint32_t>& local_ranks() const = 0;

  virtual Status Put(const std::string& name, const std::string& words) = 0;
  virtual Status Fence() = 0;
  // What `rank` put before a fence, or kNotFound.
  virtual StatusOr<std::string> Get(uint32_t rank, const std::string& name) = 0;
};

}  // namespace ferry::client
