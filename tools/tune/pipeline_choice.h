// Chooses the pipeline of blocks (engine/block_plan.h) that suits a machine: predicts from its
// curves how long a message takes, and picks the options under which messages of all sizes take
// least.
//
// The model: each stage (copy out of the device, network, copy into the device) has its blocks one
// after the other. A block enters a stage when it has left the one before and the stage has let go
// of the block before it; it takes its curve's queued time if it had to wait for the stage, else
// the time alone. The two devices are different ones.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/block_plan.h"
#include "tools/tune/curve.h"

namespace ferry::tools {

// With pinned host memory.
struct StageCurves {
  Curve to_host;
  Curve network;
  Curve to_device;
};

// Which stages a message has.
enum class Route { kFromDevice, kToDevice, kBetweenDevices };
inline constexpr Route kRoutes[] = {Route::kFromDevice, Route::kToDevice, Route::kBetweenDevices};

// As in the options pipeline_*.
struct PipelineChoice {
  engine::BlockMode mode = engine::BlockMode::kNaive;
  uint32_t blocks_to_host = 1;
  uint32_t blocks_to_device = 1;
  uint64_t threshold_bytes = 0;  // messages up to this size are one block
  bool operator==(const PipelineChoice&) const = default;
};

struct ChoiceLimits {
  uint64_t smallest_bytes = 4096;    // messages that count: from this size
  uint64_t largest_bytes = 4 << 20;  // to this
  uint64_t longest_block_bytes = 0;  // longer blocks are cut: pipeline_block_bytes; 0: none is
  uint32_t most_blocks = 16;
};

// Returns how long a message takes under `choice`.
double PredictUs(const StageCurves& curves, Route route, uint64_t size_bytes,
                 const PipelineChoice& choice, uint64_t longest_block_bytes);

// Returns the choice that makes messages shortest: by the mean, over routes and over sizes in equal
// ratios, of the time's logarithm. No message of the sizes tried, a 16th apart, is slower by it
// than in one block. Where two do equally well, the one with fewer blocks; where none gains,
// kNaive.
PipelineChoice ChoosePipeline(const StageCurves& curves, const ChoiceLimits& limits);

}  // namespace ferry::tools
