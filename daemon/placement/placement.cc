#include "daemon/placement/placement.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/topology/affinity.h"
#include "common/topology/discover.h"

namespace ferry::daemon {
namespace {

using topology::CpuSet;
using topology::Devices;
using topology::Machine;
using topology::ThreadPlace;

StatusOr<ThreadPlace> PlaceProgress(const std::string& wanted, const Machine& machine,
                                    const topology::Device* nic, const CpuSet& allowed) {
  if (wanted == "auto") {
    return topology::PlaceThread(machine, nic, allowed);
  }
  const std::string why = "as progress_affinity says";
  if (wanted == "none") {
    return ThreadPlace{{}, why};
  }
  const StatusOr<CpuSet> cpus = CpuSet::Parse(wanted);
  if (!cpus.ok()) {
    return Status(ErrorCode::kConfiguration, "progress_affinity: " + cpus.status().message());
  }
  if (!allowed.Contains(*cpus)) {
    return Status(ErrorCode::kConfiguration, "progress_affinity is " + wanted +
                                                 ", but ferryd may use the CPUs " + allowed.Text() +
                                                 " only: choose of these, or auto");
  }
  return ThreadPlace{*cpus, why};
}

StatusOr<std::optional<uint32_t>> PlaceStaging(const std::string& wanted, const Machine& machine,
                                               const topology::Device* nic) {
  if (wanted == "auto") {
    return topology::PlaceMemory(machine, nic);
  }
  if (wanted == "none") {
    return std::optional<uint32_t>();
  }
  std::string there;
  for (const topology::NumaNode& node : machine.nodes) {
    if (std::to_string(node.number) == wanted) {
      return std::optional(node.number);
    }
    there += (there.empty() ? "" : ", ") + std::to_string(node.number);
  }
  return Status(ErrorCode::kConfiguration, "staging_node is " + wanted +
                                               ", but ferryd has the NUMA nodes " + there +
                                               " only: choose of these, or auto");
}

bool IsWithoutDevice(const transport::Description& nic) {
  return nic.pci_address.empty() &&
         topology::AreWithoutDevice(topology::InterfaceAndLower(nic.domain));
}

Machine ReadMachine(Devices devices) {
  StatusOr<Machine> machine = topology::ReadThisMachine(devices);
  if (!machine.ok()) {
    spdlog::warn("nothing is placed: {}", machine.status().message());
    return {};
  }
  return std::move(*machine);
}

}  // namespace

Placement::Placement(const Nics& nics, Machine machine) : machine_(std::move(machine)) {
  for (const transport::Description& nic : nics) {
    names_.push_back(nic.domain);
    nics_.push_back(
        topology::FindDevice(machine_, nic.pci_address, topology::InterfaceAndLower(nic.domain)));
  }
}

StatusOr<std::shared_ptr<const Placement>> Placement::Decide(const config::Options& options,
                                                             const Nics& nics, Machine machine,
                                                             const CpuSet& allowed) {
  const std::shared_ptr<Placement> placement(new Placement(nics, std::move(machine)));
  StatusOr<ThreadPlace> progress =
      PlaceProgress(options.progress_affinity, placement->machine_, placement->nic(), allowed);
  FERRY_RETURN_IF_ERROR(progress.status());
  placement->progress_ = std::move(*progress);
  placement->allowed_ = allowed;
  placement->chooses_ = options.progress_affinity == "auto";
  const auto node = PlaceStaging(options.staging_node, placement->machine_, placement->nic());
  FERRY_RETURN_IF_ERROR(node.status());
  placement->staging_node_ = *node;
  return std::shared_ptr<const Placement>(placement);
}

StatusOr<std::shared_ptr<const Placement>> Placement::DecideHere(const config::Options& options,
                                                                 const Nics& nics) {
  const bool leave_out = std::all_of(nics.begin(), nics.end(), IsWithoutDevice);
  Machine machine = ReadMachine(leave_out ? Devices::kLeaveOut : Devices::kRead);
  const StatusOr<CpuSet> allowed = topology::AffinityOf(0);
  FERRY_RETURN_IF_ERROR(allowed.status());
  auto placement = Decide(options, nics, std::move(machine), *allowed);
  if (placement.ok()) {
    spdlog::info("{}", (*placement)->Text());
  }
  return placement;
}

std::string Placement::Text() const {
  std::string nics;
  for (size_t i = 0; i < nics_.size(); ++i) {
    const topology::Device* nic = nics_[i];
    nics += "NIC " + names_[i] + ": " +
            (nic == nullptr ? "at an unknown place"
                            : nic->pci + " at NUMA node " + std::to_string(nic->node) + ", CPUs " +
                                  nic->cpus.Text()) +
            "; ";
  }
  const std::string cpus =
      progress_.cpus.empty() ? "on any CPU" : "on CPUs " + progress_.cpus.Text();
  const std::string memory =
      staging_node_ ? "from NUMA node " + std::to_string(*staging_node_) : "from any NUMA node";
  return nics + "progress thread " + cpus + " (" + progress_.why + "), staging memory " + memory;
}

size_t Placement::NicFor(const CpuSet& cpus, uint32_t index) const {
  return topology::ChooseNic(machine_, nics_, {cpus, /*gpu=*/nullptr, index});
}

void Placement::SettleMemory(std::byte* base, uint64_t bytes) const {
  if (!staging_node_) {
    return;
  }
  const Status status = topology::BindMemory(base, bytes, *staging_node_);
  if (!status.ok() && !failed_.exchange(true, std::memory_order_relaxed)) {
    spdlog::warn("staging memory comes from where the kernel likes: {} (said once)",
                 status.message());
  }
}

std::optional<uint32_t> Placement::DistanceTo(const CpuSet& cpus, size_t nic) const {
  return nics_[nic] == nullptr ? std::nullopt : topology::Distance(machine_, *nics_[nic], cpus);
}

std::optional<uint32_t> Placement::DistanceTo(const topology::Device* device) const {
  return nic() == nullptr || device == nullptr
             ? std::nullopt
             : std::optional(topology::Distance(machine_, *nic(), *device));
}

const topology::Device* Placement::Find(const std::string& pci) const {
  if (!machine_.has_left_out_devices) {
    return topology::FindDevice(machine_, pci, {});
  }
  std::call_once(reads_devices_, [this] { with_devices_ = ReadMachine(Devices::kRead); });
  return topology::FindDevice(with_devices_, pci, {});
}

}  // namespace ferry::daemon
