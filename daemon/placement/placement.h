// Where ferryd's progress thread and staging memory belong, and how near its NIC is to GPUs and
// ranks: found out and decided once, when ferryd starts (docs/operations.md, Placement).
//
// Constant after that, but for what SettleMemory has logged: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "config/options.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class Placement {
 public:
  // What the options (progress_affinity, staging_node) make of a daemon with this NIC that may run
  // on the CPUs `allowed`. Errors: kConfiguration (CPUs or a node that it cannot have).
  static StatusOr<std::shared_ptr<const Placement>> Decide(const config::Options& options,
                                                           const transport::Description& nic,
                                                           topology::Machine machine,
                                                           const topology::CpuSet& allowed);
  // On this machine, for the calling thread's CPUs; logs the decision. A machine that cannot be
  // read is one without places.
  static StatusOr<std::shared_ptr<const Placement>> DecideHere(const config::Options& options,
                                                               const transport::Description& nic);

  const std::string& nic_name() const { return nic_name_; }
  const topology::Device* nic() const { return nic_; }  // null: nobody knows where it is
  // Empty: the progress thread may run anywhere.
  const topology::CpuSet& progress_cpus() const { return progress_.cpus; }
  std::optional<uint32_t> staging_node() const { return staging_node_; }
  // The decision, as a line of the log.
  std::string Text() const;

  // Has staging memory, which begins with a page and was not touched yet, come from its node. Only
  // the first failure is logged: memory is as good elsewhere, but slower.
  void SettleMemory(std::byte* base, uint64_t bytes) const;

  // From the NIC; nothing where one of the two places is unknown.
  std::optional<uint32_t> DistanceTo(const topology::CpuSet& cpus) const;
  std::optional<uint32_t> DistanceTo(const topology::Device* device) const;
  // The device at a PCI address; null if there is none.
  const topology::Device* Find(const std::string& pci) const;

 private:
  Placement(const transport::Description& nic, topology::Machine machine);

  const topology::Machine machine_;
  const std::string nic_name_;
  const topology::Device* const nic_;
  topology::ThreadPlace progress_;
  std::optional<uint32_t> staging_node_;
  mutable std::atomic<bool> failed_ = false;
};

}  // namespace ferry::daemon
