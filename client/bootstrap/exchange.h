// Exchanges the facts that the ranks of a job must know of each other before they have a job, by
// the key-value exchange of the launcher that started them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::client {

// Each rank puts values under names; after a fence every rank can get them.
//
// Calling thread: one at a time. Fence blocks until all ranks have called it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // Finds the other ranks, where they are not known from the start: call it before the rest. Waits
  // for all of them.
  virtual Status Meet() { return {}; }
  // The ranks on this one's node, itself included, in order.
  virtual const std::vector<uint32_t>& local_ranks() const = 0;
  // The index of this rank's program in the job, and the number of ranks that there is room for,
  // where the launcher tells them.
  virtual std::optional<uint32_t> app() const { return std::nullopt; }
  virtual std::optional<uint32_t> universe_size() const { return std::nullopt; }

  virtual Status Put(const std::string& name, const std::string& words) = 0;
  virtual Status Fence() = 0;
  // Returns the value that `rank` put under `name` before a fence. kNotFound: it put none.
  virtual StatusOr<std::string> Get(uint32_t rank, const std::string& name) = 0;
  // Says, for the user, which ranks Meet and Fence wait for. Empty: another rank says it. Any
  // thread.
  virtual std::string Missing() const { return "the launcher does not say which are missing"; }
  // Makes the launcher end all ranks with this exit code.
  virtual void Abort(int /*exit_code*/, const std::string& /*text*/) {}
};

}  // namespace ferry::client
