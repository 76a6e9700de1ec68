// Placement: where ferryd's progress thread and staging memory belong, and how near its NICs are to
// GPUs and ranks. ferryd finds this out and decides once, when it starts (docs/operations.md,
// Placement).
//
// Any thread: constant after that, but for a note of what SettleMemory has logged and the devices
// that Find reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "config/options.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

using Nics = std::vector<transport::Description>;  // 1 or more

class Placement {
 public:
  // Applies the options (progress_affinity, staging_node) to a daemon with these NICs, the first of
  // which carries the messages, that may run on the CPUs `allowed`. Errors: kConfiguration (CPUs or
  // a node that it cannot have).
  static StatusOr<std::shared_ptr<const Placement>> Decide(const config::Options& options,
                                                           const Nics& nics,
                                                           topology::Machine machine,
                                                           const topology::CpuSet& allowed);
  // Decides for this machine and the calling thread's CPUs; logs the decision. A machine that
  // cannot be read is one without places.
  static StatusOr<std::shared_ptr<const Placement>> DecideHere(const config::Options& options,
                                                               const Nics& nics);

  const std::string& nic_name(size_t nic = 0) const { return names_[nic]; }
  // The NIC's place in the machine; null: unknown.
  const topology::Device* nic(size_t nic = 0) const { return nics_[nic]; }
  // The NIC nearest to these CPUs; ranks for which several are as near take them in turn, by their
  // index on the node.
  size_t NicFor(const topology::CpuSet& cpus, uint32_t index) const;
  // The CPUs among which threads may be moved off the cores of ranks; null: they stay where they
  // are.
  const topology::CpuSet* to_choose_from() const { return chooses_ ? &allowed_ : nullptr; }
  // Empty: the progress thread may run anywhere.
  const topology::CpuSet& progress_cpus() const { return progress_.cpus; }
  std::optional<uint32_t> staging_node() const { return staging_node_; }
  // The decision, as a line of the log.
  std::string Text() const;

  // Makes the pages of staging memory, which is page-aligned and not touched yet, come from its
  // NUMA node. Only the first failure is logged: memory is as good elsewhere, but slower.
  void SettleMemory(std::byte* base, uint64_t bytes) const;

  // The distance from a NIC; nullopt if one of the two places is unknown.
  std::optional<uint32_t> DistanceTo(const topology::CpuSet& cpus, size_t nic) const;
  std::optional<uint32_t> DistanceTo(const topology::Device* device) const;
  // The device at a PCI address; null if there is none. May block for the files of /sys.
  const topology::Device* Find(const std::string& pci) const;

 private:
  Placement(const Nics& nics, topology::Machine machine);

  const topology::Machine machine_;
  std::vector<std::string> names_;
  std::vector<const topology::Device*> nics_;
  topology::CpuSet allowed_;
  bool chooses_ = false;  // progress_affinity is auto
  topology::ThreadPlace progress_;
  std::optional<uint32_t> staging_node_;
  mutable std::atomic<bool> failed_ = false;
  mutable std::once_flag reads_devices_;
  mutable topology::Machine with_devices_;  // for Find, where they were left out
};

}  // namespace ferry::daemon
