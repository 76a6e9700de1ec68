// A simulated allreduce: the schedules that Ferry's MPI makes.
//
// Placed with the ranks, CPUs send, match and reduce, as Ferry's MPI does. Placed with the NICs,
// the collective consists of triggered operations: sends are deferred work that receives and
// reductions trigger, into buffers that were agreed upon before, and a kernel on the stream
// reduces.
//
// Calling thread: one. Runs to the end.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "tools/ferrysim/world.h"

namespace ferry::sim {

struct AllreducePlan {
  Machine machine;
  uint32_t ranks = 8;
  uint64_t bytes = 8;     // of the vector
  std::string algorithm;  // by its name; empty: the one that Ferry's MPI would choose
  bool on_nic = false;
  uint32_t warm_up = 1;
  uint32_t iterations = 3;
};

struct AllreduceResult {
  double iteration_us = 0;
  std::string algorithm;
  WorldCounts counts;
  uint64_t events = 0;
};

// kInvalidArgument names the impossible part of the plan.
StatusOr<AllreduceResult> RunAllreduce(const AllreducePlan& plan);

}  // namespace ferry::sim
