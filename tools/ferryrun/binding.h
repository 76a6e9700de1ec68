// Binds the ranks of a job that this machine starts to CPUs, and keeps other jobs off these.
//
// Main thread. Blocks for the files of /sys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/topology/claims.h"
#include "common/topology/cpu_set.h"
#include "tools/ferryrun/placement.h"

namespace ferry::tools {

class BoundRanks {
 public:
  BoundRanks() = default;  // of no ranks
  // Chooses CPUs for `count` ranks among those of the caller, and claims them (topology/claims.h)
  // as long as this object lives. `daemons`: see UsableCpus. Errors: those of BindRanks; kSystem
  // (the machine cannot be read), but never for Binding::kAuto, which then binds nothing.
  static StatusOr<BoundRanks> Bind(Binding binding, uint64_t count, uint64_t daemons);

  // Returns the CPUs of the rank with this index among them; empty: it is not bound.
  topology::CpuSet CpusOf(size_t index) const {
    return index < places_.cpus.size() ? places_.cpus[index] : topology::CpuSet();
  }
  // Returns "CPUs 0-3", or "any CPU (why)".
  std::string Text(size_t index) const;

 private:
  RankPlaces places_;
  topology::CpuClaims claims_;
};

}  // namespace ferry::tools
