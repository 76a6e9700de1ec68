// Strong scaling as in the paper: the same problem on more and more ranks, on nodes with 1, 2, 4
// and 8 of them. The mean over these counts.
//
// Calling thread: one. Runs to the end, which takes minutes.
#pragma once

#include <functional>
#include <vector>

#include "common/status.h"
#include "tools/ferrysim/halo.h"
#include "tools/ferrysim/published.h"

namespace ferry::sim {

struct ScalingPlan {
  HaloPlan base;  // whose machine, iterations and so on count
  uint32_t first_ranks = 1;
  uint32_t factor = 2;  // from point to point
  uint32_t most_ranks = 8192;
  uint32_t most_nodes = 1024;  // as in the paper
  std::vector<uint32_t> ranks_per_node = {1, 2, 4, 8};
};

struct ScalingPoint {
  uint32_t ranks = 0;
  double iteration_us = 0;     // the mean over the numbers of ranks on a node
  double fastest_us = 0;       // of these
  uint32_t fastest_nodes = 0;  // with so many nodes
};

// Says what is being simulated.
using Progress = std::function<void(const std::string& what)>;

// `plan` for `first_ranks`, `factor` times as many, and so on, with `send`. Errors as RunHalo's.
StatusOr<std::vector<ScalingPoint>> RunScaling(const ScalingPlan& plan, SendKind send,
                                               const Progress& progress);

// The time per cell for which one rank's iteration takes `one_rank_us`, as measured.
StatusOr<double> FitCells(HaloPlan plan, double one_rank_us);

}  // namespace ferry::sim
