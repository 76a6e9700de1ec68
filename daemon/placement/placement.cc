#include "daemon/placement/placement.h"

#include <utility>

#include "common/log.h"
#include "common/topology/affinity.h"
#include "common/topology/discover.h"

namespace ferry::daemon {
namespace {

using topology::CpuSet;
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

}  // namespace

Placement::Placement(const transport::Description& nic, Machine machine)
    : machine_(std::move(machine)),
      nic_name_(nic.domain),
      nic_(topology::FindDevice(machine_, nic.pci_address,
                                topology::InterfaceAndLower(nic.domain))) {}

StatusOr<std::shared_ptr<const Placement>> Placement::Decide(const config::Options& options,
                                                             const transport::Description& nic,
                                                             Machine machine,
                                                             const CpuSet& allowed) {
  const std::shared_ptr<Placement> placement(new Placement(nic, std::move(machine)));
  StatusOr<ThreadPlace> progress =
      PlaceProgress(options.progress_affinity, placement->machine_, placement->nic_, allowed);
  FERRY_RETURN_IF_ERROR(progress.status());
  placement->progress_ = std::move(*progress);
  const auto node = PlaceStaging(options.staging_node, placement->machine_, placement->nic_);
  FERRY_RETURN_IF_ERROR(node.status());
  placement->staging_node_ = *node;
  return std::shared_ptr<const Placement>(placement);
}

StatusOr<std::shared_ptr<const Placement>> Placement::DecideHere(
    const config::Options& options, const transport::Description& nic) {
  StatusOr<Machine> machine = topology::ReadThisMachine();
  if (!machine.ok()) {
    spdlog::warn("nothing is placed: {}", machine.status().message());
    machine = Machine();
  }
  const StatusOr<CpuSet> allowed = topology::AffinityOf(0);
  FERRY_RETURN_IF_ERROR(allowed.status());
  auto placement = Decide(options, nic, std::move(*machine), *allowed);
  if (placement.ok()) {
    spdlog::info("{}", (*placement)->Text());
  }
  return placement;
}

std::string Placement::Text() const {
  const std::string place = nic_ == nullptr
                                ? "at an unknown place"
                                : nic_->pci + " at NUMA node " + std::to_string(nic_->node) +
                                      ", CPUs " + nic_->cpus.Text();
  const std::string cpus =
      progress_.cpus.empty() ? "on any CPU" : "on CPUs " + progress_.cpus.Text();
  const std::string memory =
      staging_node_ ? "from NUMA node " + std::to_string(*staging_node_) : "from any NUMA node";
  return "NIC " + nic_name_ + ": " + place + "; progress thread " + cpus + " (" + progress_.why +
         "), staging memory " + memory;
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

std::optional<uint32_t> Placement::DistanceTo(const CpuSet& cpus) const {
  return nic_ == nullptr ? std::nullopt : topology::Distance(machine_, *nic_, cpus);
}

std::optional<uint32_t> Placement::DistanceTo(const topology::Device* device) const {
  return nic_ == nullptr || device == nullptr
             ? std::nullopt
             : std::optional(topology::Distance(machine_, *nic_, *device));
}

const topology::Device* Placement::Find(const std::string& pci) const {
  return topology::FindDevice(machine_, pci, {});
}

}  // namespace ferry::daemon
