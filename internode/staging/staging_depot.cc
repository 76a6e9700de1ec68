#include "internode/staging/staging_depot.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {

ErrorCode StagingDepot::Provide(Stage& stage) {
  if (stage.pool != nullptr) {
    if (stage.pool->failure().ok()) {
      stage.pool->PinAll();
    }
    return stage.pool->failure().code();
  }
  if (stage.copier == nullptr) {
    return ErrorCode::kUnsupported;
  }
  const ErrorCode fault = rules_.fault ? rules_.fault([this] { ReplenishAll(); }) : ErrorCode::kOk;
  if (fault != ErrorCode::kOk && fault != ErrorCode::kWouldBlock) {
    return fault;
  }
  const StagingShape shape{
      stage.block_bytes,  stage.blocks,
      stage.least_blocks, stage.shrinks ? rules_.idle_ns : StagingShape::kNeverIdle,
      rules_.weights,     stage.copier->memory_user(),
      rules_.tell};
  StatusOr<std::unique_ptr<StagingPool>> made =
      StagingPool::Create(registrar_, shape, rules_.settle);
  if (!made.ok()) {
    return made.status().code();
  }
  stage.pool = made->get();
  pools_.push_back(std::move(*made));
  stage.copier->Open(*stage.pool);
  if (fault == ErrorCode::kWouldBlock) {
    stage.pool->Exhaust();
  }
  return ErrorCode::kOk;
}

void StagingDepot::ReplenishAll() {
  for (const auto& pool : pools_) {
    pool->Replenish();
  }
}

void StagingDepot::Retire(const Stage& stage, uint64_t not_before_ns) {
  StagingPool* const pool = stage.pool;
  const auto found = std::find_if(pools_.begin(), pools_.end(),
                                  [pool](const auto& one) { return one.get() == pool; });
  if (found == pools_.end()) {
    return;
  }
  stage.copier->Close(*pool);
  pool->Replenish();
  past_grown_ += pool->grown();
  past_shrunk_ += pool->shrunk();
  pool->KeepLentUntil(not_before_ns);
  pools_.erase(found);
}

void StagingDepot::Advance() {
  for (const auto& pool : pools_) {
    pool->Forgive();
    pool->Grow();
  }
}

void StagingDepot::Recycle(uint64_t now_ns) {
  for (const auto& pool : pools_) {
    pool->Recycle();
    pool->Trim(now_ns);
  }
}

bool StagingDepot::must_recycle() const {
  return std::any_of(pools_.begin(), pools_.end(),
                     [](const auto& pool) { return pool->has_tainted() || pool->has_spare(); });
}

StagingStatistics StagingDepot::Statistics() const {
  StagingStatistics all;
  all.grown = past_grown_;
  all.shrunk = past_shrunk_;
  all.device_direct = device_direct_;
  all.device_staged = device_staged_;
  for (const auto& pool : pools_) {
    all.blocks += pool->blocks();
    all.most_blocks += pool->most_blocks();
    all.busy += pool->busy();
    for (const StagingUse use : {StagingUse::kOutgoing, StagingUse::kIncoming}) {
      all.waits += static_cast<uint32_t>(pool->waiters(use).size());
    }
    all.grown += pool->grown();
    all.shrunk += pool->shrunk();
  }
  return all;
}

}  // namespace ferry::progress
