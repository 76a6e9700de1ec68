#include "daemon/progress/core_parts.h"

#include <functional>
#include <string>
#include <utility>

#include "common/log.h"
#include "config/weights.h"
#include "engine/block_plan.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

engine::BlockMode ModeOf(const std::string& name) {
  using engine::BlockMode;
  return name == "naive"  ? BlockMode::kNaive
         : name == "even" ? BlockMode::kEven
                          : BlockMode::kAdvanced;
}

}  // namespace

void AddFaults(Faults& faults, progress::CoreOptions* core) {
  core->staging.fault = [&faults](std::function<void()> replenish) {
    const ErrorCode fault = faults.Pass(FaultPoint::kStagingProvide);
    if (fault == ErrorCode::kWouldBlock) {
      faults.Hold(std::move(replenish));
    }
    return fault;
  };
  core->copy_fault = [&faults](const progress::CopyTask& task,
                               const std::function<void(const progress::CopyTask&)>& go_on) {
    const bool is_out = task.direction == progress::CopyTask::Direction::kToProcess;
    const ErrorCode fault =
        faults.Pass(is_out ? FaultPoint::kStagingCopyOut : FaultPoint::kStagingCopyIn);
    progress::CopyTask copied = task;
    if (fault == ErrorCode::kWouldBlock) {
      return faults.Hold([go_on, copied] { go_on(copied); });
    }
    copied.result = fault == ErrorCode::kOk ? task.result : fault;
    go_on(copied);
  };
}

progress::CoreOptions CoreOptionsOf(const config::Options& options,
                                    const std::shared_ptr<const Placement>& placement) {
  progress::CoreOptions core;
  core.staging_block_bytes = options.staging_block_bytes;
  core.staging_blocks = static_cast<uint32_t>(options.staging_blocks);
  // CheckOptions has read them once.
  if (auto weights = config::ParseWeights(options.staging_weights, "rank"); weights.ok()) {
    core.staging.weights = std::move(*weights);
  }
  core.staging_least_blocks = static_cast<uint32_t>(options.staging_min_blocks);
  core.staging.idle_ns = options.staging_idle_ms * kNsPerMs;
  core.staging.tell = [](const std::string& text) { spdlog::warn("{}", text); };
  core.operation_timeout_ns = options.operation_timeout_ms * kNsPerMs;
  core.registrations = {options.registration_cache_entries, options.registration_cache_bytes};
  core.registration_piece_bytes = options.registration_piece_bytes;
  core.device_block_bytes = options.pipeline_block_bytes;
  core.device_blocks = static_cast<uint32_t>(options.pipeline_staging_blocks);
  core.device_least_blocks = static_cast<uint32_t>(options.pipeline_staging_min_blocks);
  core.pipeline.mode = ModeOf(options.pipeline_mode);
  core.pipeline.threshold_bytes = options.pipeline_threshold_bytes;
  core.pipeline.blocks_to_host = static_cast<uint32_t>(options.pipeline_blocks_to_host);
  core.pipeline.blocks_to_device = static_cast<uint32_t>(options.pipeline_blocks_to_device);
  if (placement != nullptr) {
    core.staging.settle = [placement](std::byte* base, uint64_t bytes) {
      placement->SettleMemory(base, bytes);
    };
  }
  return core;
}

DeferredRules DeferredRulesOf(const config::Options& options) {
  DeferredRules rules;
  if (auto weights = config::ParseWeights(options.deferred_work_weights, "uid"); weights.ok()) {
    rules.weights = std::move(*weights);
  }
  rules.most_entries = static_cast<uint32_t>(options.deferred_work_entries);
  rules.gives_pages = options.counter_pages != "off" && !config::ServesAll(options);
  return rules;
}

progress::ClaimableRegion Claimable(const std::string& job_id,
                                    const std::shared_ptr<const Region>& region) {
  progress::ClaimableRegion memory;
  memory.owner = std::hash<std::string>()(job_id);
  memory.base = region->by_stream ? nullptr : region->mapping.base();
  memory.size_bytes = region->size_bytes();
  memory.identity.allocation = region->allocation_id;
  memory.number = region->id;
  memory.lent = region->lent;
  memory.by_stream = region->by_stream;
  memory.is_staged = region->is_staged();
  memory.device = region->device_memory == nullptr ? nullptr : region->device_memory->base();
  memory.keep_alive = region;
  return memory;
}

}  // namespace ferry::daemon
