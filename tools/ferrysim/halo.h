// A simulated halo exchange: Conway's Game of Life on a periodic grid, cut among ranks with a GPU
// each, as CabanaGhost runs it in the paper's section VI-C.
//
// Each iteration computes, packs eight messages, exchanges them and unpacks eight. With
// stream-triggered sends the CPU only enqueues, as far ahead as it may; with CPU-triggered ones it
// waits for the stream before it posts receives and again before it sends.
//
// Calling thread: one. Runs to the end.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "tools/ferrysim/halo_program.h"

namespace ferry::sim {

struct HaloPlan {
  Machine machine;
  SendKind send = SendKind::kReady;
  uint32_t ranks = 8;
  uint64_t cells = 16384;  // of a side of the whole grid
  uint64_t cell_bytes = 8;
  double ps_per_cell = 22.9;
  uint32_t warm_up = 6;       // iterations that are not measured
  uint32_t iterations = 20;   // those that are
  uint32_t starts_ahead = 4;  // iterations that the CPU may be ahead of the stream
  double jitter_percent = 1;  // of kernels: each takes up to twice as much longer
  uint64_t seed = 1;
};

struct HaloResult {
  double iteration_us = 0;
  WorldCounts counts;
  uint64_t events = 0;
};

// kInvalidArgument names the impossible part of the plan.
StatusOr<HaloResult> RunHalo(const HaloPlan& plan);

}  // namespace ferry::sim
