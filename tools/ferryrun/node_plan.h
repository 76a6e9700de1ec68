// Decides which nodes a job has, and which ranks run where, from the user's arguments.
//
// Pure but for is_this_host, which the caller gives. Any thread. Errors: kInvalidArgument.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/placement.h"

namespace ferry::tools {

struct NodePlan {
  std::string host;     // as the user wrote it; empty: not named
  bool remote = false;  // another host than this one
  uint64_t ranks = 0;   // at least 1

  bool operator==(const NodePlan&) const = default;
};

struct JobLayout {
  std::vector<NodePlan> nodes;
  std::vector<uint32_t> node_of_rank;  // by rank
  std::vector<uint32_t> part_of_rank;  // by rank: index into Arguments::parts
  uint64_t slots = 0;                  // of all hosts that are named; 0: none is
};

// Returns, by rank, the number of its machine: 0 here, from 1 on its host, in the order of nodes.
std::vector<uint32_t> MachineOfRank(const JobLayout& layout);

// Returns, by rank: how many ranks before it run where it does, on its host or here.
std::vector<uint32_t> IndexesOf(const JobLayout& layout);

// Plans the job's nodes. Several names of this host are one node. Hosts that get no rank are left
// out.
StatusOr<JobLayout> PlanNodes(const Arguments& arguments, const config::Options& options,
                              const std::function<bool(const std::string&)>& is_this_host);

}  // namespace ferry::tools
