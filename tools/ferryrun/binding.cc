#include "tools/ferryrun/binding.h"

#include <string>

namespace ferry::tools {
namespace {

// The allowed part of each set; sets without one are left out.
std::vector<topology::CpuSet> Allowed(const std::vector<topology::CpuSet>& sets,
                                      const topology::CpuSet& allowed) {
  std::vector<topology::CpuSet> usable;
  for (const topology::CpuSet& set : sets) {
    if (set.Intersects(allowed)) {
      usable.push_back(set.Intersection(allowed));
    }
  }
  return usable;
}

}  // namespace

StatusOr<std::vector<topology::CpuSet>> BindRanks(const topology::Machine& machine,
                                                  const topology::CpuSet& allowed, Binding binding,
                                                  uint64_t count) {
  std::vector<topology::CpuSet> bound;
  if (binding == Binding::kNone) {
    return bound;
  }
  const bool by_core = binding == Binding::kCore;
  const std::vector<topology::CpuSet> places =
      Allowed(by_core ? machine.cores : machine.sockets, allowed);
  if (places.empty() || (by_core && places.size() < count)) {
    return Status(ErrorCode::kInvalidArgument,
                  "--bind-to " + std::string(by_core ? "core: " : "socket: ") +
                      std::to_string(count) + " ranks here, but " + std::to_string(places.size()) +
                      (by_core ? " cores (use --bind-to none, or fewer ranks)"
                               : " sockets that they may use (use --bind-to none)"));
  }
  for (uint64_t rank = 0; rank < count; ++rank) {
    bound.push_back(places[rank % places.size()]);
  }
  return bound;
}

}  // namespace ferry::tools
