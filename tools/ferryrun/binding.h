// On which CPUs each rank of a machine may run. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

// The CPUs of each of `count` ranks, of those `allowed`: a core each, in their order; or sockets,
// which the ranks take in turn. Nothing (no sets) for kNone. kInvalidArgument: fewer cores than
// ranks, which would have to share cores.
StatusOr<std::vector<topology::CpuSet>> BindRanks(const topology::Machine& machine,
                                                  const topology::CpuSet& allowed, Binding binding,
                                                  uint64_t count);

}  // namespace ferry::tools
