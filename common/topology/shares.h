// Which cores each rank of a node should have to itself.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"

namespace ferry::topology {

// The allowed hardware threads of each core that has some, in the machine's order.
std::vector<CpuSet> CoresOf(const Machine& machine, const CpuSet& allowed);

// As many cores for each rank, whole and next to each other: all of the free ones where that comes
// out even. A share crosses no NUMA node (no socket where there is one node) unless it must, or
// would lose more than a quarter of its cores by that. `near`: by rank, the CPUs that its device is
// near; none, or an empty set: anywhere. `spare`: so many cores are left to others. `wanted`: by
// rank, how many cores it has of its share, which is as large at least, if there are enough for all
// ranks; none, or 0: all. Nothing: fewer free cores than that and ranks.
std::vector<CpuSet> ShareCores(const Machine& machine, const CpuSet& free, size_t ranks,
                               std::span<const CpuSet> near, size_t spare = 0,
                               std::span<const uint64_t> wanted = {});

// The CPUs near the GPU that each rank probably uses: most programs take the device whose number is
// their index on the node, in turn. Nothing where no GPU is known.
std::vector<CpuSet> CpusNearGpus(const Machine& machine, size_t ranks);

}  // namespace ferry::topology
