// Chooses the CPUs of the ranks of a node, and draws them. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "tools/ferryrun/mapping.h"

namespace ferry::tools {

// The user's rules for the ranks of a node.
struct BindingRules {
  Binding binding = Binding::kAuto;
  Mapping mapping = {};                // `count`: that of a node
  std::vector<uint64_t> threads = {};  // of each rank, so there are as many; 0: not known
  // Of each rank, as a rankfile has it (rankfile.h); empty: not bound. None: there is no rankfile;
  // else nothing but `threads_are_cpus` of all others counts.
  std::vector<std::string> slots = {};
};

struct UsableCpus {
  topology::CpuSet allowed;  // where the ranks may run
  topology::CpuSet taken;    // CPUs that ranks of other jobs have to themselves
  uint64_t daemons = 0;      // that work beside the ranks, and want a core each
};

struct RankPlaces {
  std::vector<topology::CpuSet> cpus;  // of each rank; none: they are not bound
  topology::CpuSet claimed;            // of these, what they should have to themselves
  std::string why_not = {};            // a phrase that says why they are not bound
};

// Returns how many threads a program starts for this value of OMP_NUM_THREADS, which may be a list
// with a number for each level of nested ones; 0: it is no such value.
uint64_t OpenMpThreads(std::string_view value);

// Chooses the CPUs of each rank.
//   kAuto: a share of the free cores each, as large for all, near the rank's GPU
//     (topology::ShareCores); of it as many cores as the rank has threads, where there are enough
//     for all. With units, a share of the rank's unit. Ranks are not bound where they and daemons
//     outnumber free cores.
//   kCore, kThread: `width` cores or hardware threads each, one after the other or of the rank's
//     unit; free ones if there are enough.
//   kSocket, kNuma, kCache: `width` of these, of which the rank's unit is one, or inside it; in
//   turn.
// With a rankfile, what it says, and ranks of which it says nothing are not bound.
// kInvalidArgument: a slot that the machine does not have; there are too few, and ranks would have
// to share cores, or there are other units than ppr counts with; for kAuto, only where the mapping
// does not oversubscribe.
StatusOr<RankPlaces> BindRanks(const topology::Machine& machine, const UsableCpus& usable,
                               const BindingRules& rules);

// Returns how many units of this kind have some of these CPUs.
uint64_t CountUnits(const topology::Machine& machine, Unit unit, const topology::CpuSet& cpus);

// Draws the hardware threads of a node, and which of them a rank may run on, as kPictureLegend
// says.
std::string PictureOf(const topology::Machine& machine, const topology::CpuSet& allowed,
                      const topology::CpuSet& rank);
inline constexpr char kPictureLegend[] =
    "[ ] is a socket, | parts its NUMA nodes, / its cores; each sign is a hardware thread: B where "
    "the rank may run, . where it may not, - where ferryrun may not";

}  // namespace ferry::tools
