// Measurements by others on Frontier, for comparison with the model: "Co-Design
// and Evaluation of a CPU-Free MPI GPU Communication Abstraction and Implementation", section VI-C
// and Table V, and the measurements that its authors published (github.com/CUP-ECS/
// stream-triggering-data, data/FRONTIER/scaling-data.csv).
//
// Plain data: any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/ferrysim/halo_program.h"

namespace ferry::sim {

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
