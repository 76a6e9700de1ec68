#include "tools/ferryrun/binding.h"

#include <optional>
#include <utility>

#include "common/topology/affinity.h"
#include "common/topology/discover.h"

namespace ferry::tools {
namespace {

// The machine, with its devices where they decide anything: they take milliseconds to read.
StatusOr<topology::Machine> ReadMachine(Binding binding) {
  StatusOr<topology::Machine> machine = topology::ReadThisMachine(topology::Devices::kLeaveOut);
  if (machine.ok() && binding == Binding::kAuto && machine->nodes.size() > 1) {
    machine = topology::ReadThisMachine(topology::Devices::kRead);
  }
  return machine;
}

}  // namespace

StatusOr<BoundRanks> BoundRanks::Bind(const BindingRules& rules, uint64_t daemons) {
  BoundRanks bound;
  if (rules.threads.empty()) {
    return bound;
  }
  if (rules.binding == Binding::kNone && rules.mapping.per_unit == 0 && rules.slots.empty()) {
    StatusOr<RankPlaces> nowhere = BindRanks({}, {}, rules);  // whatever the machine is
    FERRY_RETURN_IF_ERROR(nowhere.status());
    bound.places_ = std::move(*nowhere);
    return bound;
  }
  const bool is_asked =
      rules.binding != Binding::kAuto || rules.mapping.per_unit > 0 || !rules.slots.empty();
  StatusOr<topology::CpuSet> allowed = topology::AffinityOf(0);
  FERRY_RETURN_IF_ERROR(allowed.status());
  StatusOr<topology::Machine> machine = ReadMachine(rules.binding);
  if (!is_asked && !machine.ok()) {
    bound.places_.why_not = machine.status().message();
    return bound;
  }
  FERRY_RETURN_IF_ERROR(machine.status());
  bound.allowed_ = std::move(*allowed);
  bound.machine_ = std::move(*machine);
  // Each turn finds at least one more CPU taken, until it gets what it chooses.
  topology::CpuSet taken = topology::CpuClaims::Current();
  while (true) {
    StatusOr<RankPlaces> places =
        BindRanks(bound.machine_, {bound.allowed_, taken, daemons}, rules);
    FERRY_RETURN_IF_ERROR(places.status());
    bound.places_ = std::move(*places);
    const std::optional<uint32_t> lost = bound.claims_.Claim(bound.places_.claimed);
    if (!lost) {
      return bound;
    }
    taken.Add(*lost);
  }
}

std::string BoundRanks::Text(size_t index) const {
  const topology::CpuSet cpus = CpusOf(index);
  return cpus.empty() ? "any CPU (" + places_.why_not + ")"
                      : "CPUs " + cpus.Text() + " " + PictureOf(machine_, allowed_, cpus);
}

Status CountRanksOfNode(Mapping* mapping) {
  if (mapping->per_unit == 0) {
    return {};
  }
  const StatusOr<topology::CpuSet> allowed = topology::AffinityOf(0);
  FERRY_RETURN_IF_ERROR(allowed.status());
  const StatusOr<topology::Machine> machine =
      topology::ReadThisMachine(topology::Devices::kLeaveOut);
  FERRY_RETURN_IF_ERROR(machine.status());
  mapping->count = mapping->per_unit * CountUnits(*machine, *mapping->unit, *allowed);
  return {};
}

}  // namespace ferry::tools
