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

StatusOr<BoundRanks> BoundRanks::Bind(Binding binding, uint64_t count, uint64_t daemons) {
  BoundRanks bound;
  if (count == 0) {
    return bound;
  }
  if (binding == Binding::kNone) {
    bound.places_.why_not = "as --bind-to none says";
    return bound;
  }
  const bool is_asked = binding != Binding::kAuto;
  const StatusOr<topology::CpuSet> allowed = topology::AffinityOf(0);
  FERRY_RETURN_IF_ERROR(allowed.status());
  const StatusOr<topology::Machine> machine = ReadMachine(binding);
  if (!is_asked && !machine.ok()) {
    bound.places_.why_not = machine.status().message();
    return bound;
  }
  FERRY_RETURN_IF_ERROR(machine.status());
  // Each turn finds at least one more CPU taken, until it gets what it chooses.
  topology::CpuSet taken = topology::CpuClaims::Current();
  while (true) {
    StatusOr<RankPlaces> places = BindRanks(*machine, {*allowed, taken, daemons}, binding, count);
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
  return cpus.empty() ? "any CPU (" + places_.why_not + ")" : "CPUs " + cpus.Text();
}

}  // namespace ferry::tools
