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
#include "common/topology/machine.h"
#include "tools/ferryrun/cpu_places.h"

namespace ferry::tools {

class BoundRanks {
 public:
  BoundRanks() = default;  // of no ranks
  // Chooses CPUs for the ranks among those of the caller, and claims them (topology/claims.h) as
  // long as this object lives. `daemons`: see UsableCpus. Errors: those of BindRanks; kSystem
  // (the machine cannot be read), but never for Binding::kAuto, which then binds nothing.
  static StatusOr<BoundRanks> Bind(const BindingRules& rules, uint64_t daemons);

  // Returns the CPUs of the rank with this index among them; empty: it is not bound.
  topology::CpuSet CpusOf(size_t index) const {
    return index < places_.cpus.size() ? places_.cpus[index] : topology::CpuSet();
  }
  // Returns "CPUs 0-3 [BB/BB/../..]" (PictureOf), or "any CPU (why)".
  std::string Text(size_t index) const;

 private:
  RankPlaces places_;
  topology::CpuClaims claims_;
  topology::CpuSet allowed_;
  topology::Machine machine_;
};

// Makes the rule's `count` that of a node, for which all are taken to be as this machine is: ranks
// of each unit, times its units. Errors: kSystem.
Status CountRanksOfNode(Mapping* mapping);

}  // namespace ferry::tools
