// Strong scaling as in the paper: the same problem on more and more ranks, on nodes with 1, 2, 4
// and 8 of them. The mean over these counts.
//
// Calling thread: one. Runs to the end, which takes minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/status.h"
#include "tools/ferrysim/halo.h"
#include "tools/ferrysim/halo_program.h"

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

// Called with a description of each simulation before it runs.
using Progress = std::function<void(const std::string& what)>;

// `plan` for `first_ranks`, `factor` times as many, and so on, with `send`. Errors as RunHalo's.
StatusOr<std::vector<ScalingPoint>> RunScaling(const ScalingPlan& plan, SendKind send,
                                               const Progress& progress);

// The time per cell for which one rank's iteration takes `one_rank_us`, as measured.
StatusOr<double> FitCells(HaloPlan plan, double one_rank_us);

// ---- Measurements by others on Frontier ----

// From "Co-Design and Evaluation of a CPU-Free MPI GPU Communication Abstraction and
// Implementation", section VI-C and Table V, and the measurements that its authors published
// (github.com/CUP-ECS/stream-triggering-data, data/FRONTIER/scaling-data.csv).

// A problem of the paper: so many cells on a side, of 8 bytes each.
struct PublishedProblem {
  const char* name;
  uint64_t cells;
  double one_rank_us;  // an iteration of Cray MPICH's on one GCD
};
const std::vector<PublishedProblem>& PublishedProblems();

// A row of Table V. Speed-ups are over one_rank_us.
struct PublishedBest {
  uint64_t cells;
  SendKind send;
  double speedup;
  uint32_t nodes;
  uint32_t ranks;
};
const std::vector<PublishedBest>& TableFive();

// An iteration at so many ranks: the mean over the numbers of ranks on a node, 1 to 8, of one run
// each of the published file ("coarse" memory; rows "2" of the stream-triggered kinds).
struct PublishedIteration {
  uint64_t cells;
  uint32_t ranks;
  double ready_us;
  double regular_us;
  double cpu_us;

  double Of(SendKind kind) const {
    return kind == SendKind::kReady ? ready_us : kind == SendKind::kRegular ? regular_us : cpu_us;
  }
};
const std::vector<PublishedIteration>& PublishedIterations();

}  // namespace ferry::sim
