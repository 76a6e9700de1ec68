// A way for a job's data between the network and memory that it cannot reach: whose copies, by
// which staging memory, in which blocks.
//
// Calling thread: the progress thread.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/staging/copier.h"
#include "engine/block_plan.h"

namespace ferry::daemon {

class StagingPool;

// A job has one for its ranks' private memory and one for device memory that only streams reach.
struct Stage {
  std::shared_ptr<Copier> copier;  // null: there is nobody who could copy
  uint64_t block_bytes = 0;
  uint32_t blocks = 0;          // at most
  uint32_t least_blocks = 0;    // see StagingShape
  bool shrinks = true;          // blocks that nobody needs may leave the pool
  StagingPool* pool = nullptr;  // of the depot; null until it is needed
};

// How messages from and to device memory are cut.
struct PipelineRules {
  engine::BlockMode mode = engine::BlockMode::kAdvanced;
  uint64_t threshold_bytes = 64 << 10;
  uint32_t blocks_to_host = 2;
  uint32_t blocks_to_device = 2;

  engine::BlockPlan Plan(uint64_t message_bytes, uint32_t blocks) const {
    engine::BlockRules rules;
    rules.mode = mode;
    rules.block_count = blocks;
    rules.threshold_bytes = threshold_bytes;
    return {message_bytes, rules};
  }
};

}  // namespace ferry::daemon
