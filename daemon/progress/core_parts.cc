#include "daemon/progress/core_parts.h"

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
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

namespace {

using DeviceInterface = transport::DeviceMemory::Interface;

DeviceInterface InterfaceOf(std::string_view backend) {
  return backend == "cuda"         ? DeviceInterface::kCuda
         : backend == "hip"        ? DeviceInterface::kRocr
         : backend == "level_zero" ? DeviceInterface::kLevelZero
                                   : DeviceInterface::kNone;
}

// Returns the address by which the NIC names memory that this process has not imported: one that no
// process has. After 2^62 bytes they are given again; registrations are told apart by their
// regions.
uintptr_t MakeUpAddress(uint64_t bytes) {
  constexpr uintptr_t kFirst = uintptr_t{1} << 62;
  constexpr uint64_t kUnit = uint64_t{2} << 20;  // as devices align theirs
  static std::atomic<uint64_t> next{0};
  const uint64_t units = bytes / kUnit + 2;
  return kFirst + next.fetch_add(units * kUnit, std::memory_order_relaxed) % kFirst;
}

// Device memory for the NIC: by its import here, and by its dma-buf.
void TellNic(const Region& region, progress::ClaimableRegion* memory) {
  transport::DeviceMemory& told = memory->for_nic;
  const std::string_view backend = region.gpu == nullptr || region.dmabuf.valid()
                                       ? std::string_view(region.backend)
                                       : region.gpu->backend->name();
  told.interface = InterfaceOf(backend);
  if (told.interface == DeviceInterface::kNone ||
      (memory->device == nullptr && !region.dmabuf.valid())) {
    return;
  }
  told.dmabuf = region.dmabuf.valid() ? region.dmabuf.get() : -1;
  if (memory->device != nullptr) {
    told.is_mapped = true;
    told.device = region.gpu->backend->Identify(memory->device).device;
    told.dmabuf_begin = reinterpret_cast<uintptr_t>(memory->device) - region.dmabuf_offset;
    memory->at_nic = memory->device;
  } else {
    told.device = static_cast<int>(region.device);
    told.dmabuf_begin = MakeUpAddress(region.dmabuf_offset + region.size_bytes());
    memory->at_nic = reinterpret_cast<std::byte*>(told.dmabuf_begin + region.dmabuf_offset);
  }
}

}  // namespace

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
  if (region->by_stream) {
    TellNic(*region, &memory);
  }
  return memory;
}

}  // namespace ferry::daemon
