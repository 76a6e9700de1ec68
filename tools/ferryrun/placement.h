// Places each rank on a node, and on CPUs there. Pure functions; any thread.
//
// Errors: kInvalidArgument, in sentences that name the number and the way out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "config/options.h"

namespace ferry::tools {

// How ranks are distributed over nodes.
struct Mapping {
  enum class By {
    kSlot,  // each node in turn gets as many as it has slots
    kNode,  // each node in turn gets one
    kCount  // each node in turn gets `count`
  };
  By by = By::kSlot;
  uint64_t count = 0;
  bool wraps = true;  // with kCount: ranks that are left start with the first node again
};

// Reads "slot", "node", "ppr:2:node" (which does not wrap) and the like. Ranks may outnumber slots,
// so ":oversubscribe" may follow.
StatusOr<Mapping> ParseMapping(std::string_view text);

// The ranks of one program of the job.
struct PartPlace {
  uint64_t ranks = 0;
  std::vector<uint32_t> nodes;  // on which it may run; empty: on all
};

// Refuses numbers of ranks and nodes that make no sense, or exceed max_ranks of `options`.
Status CheckCounts(uint64_t ranks, uint64_t nodes, const config::Options& options);

// Returns the node of each rank, of the first part, then of the next. `slots`: of each node, not 0;
// once all are full, ranks start with the first node again.
StatusOr<std::vector<uint32_t>> PlaceRanks(const std::vector<PartPlace>& parts,
                                           const std::vector<uint64_t>& slots,
                                           const Mapping& mapping);

// Refuses more ranks on a node than max_local_ranks of `options`.
Status CheckLocalCounts(const std::vector<uint32_t>& node_of_rank, uint64_t nodes,
                        const config::Options& options);

// Returns the slots of nodes that share out `ranks`: they differ by at most one, larger first.
std::vector<uint64_t> EvenSlots(uint64_t ranks, uint64_t nodes);

enum class Binding { kNone, kCore, kSocket, kAuto };

// Returns the binding of that name, as the option bind_to has it.
Binding ParseBinding(std::string_view name);

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

// Chooses the CPUs of each of `count` ranks. kAuto: a share of the free cores each, as large for
// all, near the rank's GPU (topology::ShareCores), or none where ranks and daemons outnumber free
// cores. kCore: a core each, in their order, free ones if there are enough. kSocket: sockets, which
// the ranks take in turn. kInvalidArgument, but not for kAuto: there are too few, and ranks would
// have to share cores.
StatusOr<RankPlaces> BindRanks(const topology::Machine& machine, const UsableCpus& usable,
                               Binding binding, uint64_t count);

}  // namespace ferry::tools
