// Places each rank on a node. Pure functions; any thread.
//
// Errors: kInvalidArgument, in sentences that name the number and the way out.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/ferryrun/mapping.h"

namespace ferry::tools {

// The ranks of one program of the job.
struct PartPlace {
  uint64_t ranks = 0;
  std::vector<uint32_t> nodes;  // on which it may run; empty: on all
};

// Refuses numbers of ranks and nodes that make no sense, or exceed max_ranks of `options`.
Status CheckCounts(uint64_t ranks, uint64_t nodes, const config::Options& options);

// Returns the node of each rank, of the first part, then of the next. `slots`: of each node, not 0;
// once all are full, ranks start with the first node again, or are refused where nodes may not be
// oversubscribed.
StatusOr<std::vector<uint32_t>> PlaceRanks(const std::vector<PartPlace>& parts,
                                           const std::vector<uint64_t>& slots,
                                           const Mapping& mapping);

// Refuses more ranks on a node than max_local_ranks of `options`.
Status CheckLocalCounts(const std::vector<uint32_t>& node_of_rank, uint64_t nodes,
                        const config::Options& options);

// Returns the slots of nodes that share out `ranks`: they differ by at most one, larger first.
std::vector<uint64_t> EvenSlots(uint64_t ranks, uint64_t nodes);

}  // namespace ferry::tools
