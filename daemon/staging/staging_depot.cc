#include "daemon/staging/staging_depot.h"

#include <algorithm>
#include <utility>

namespace ferry::daemon {

ErrorCode StagingDepot::Provide(StagingPool** pool, Copier& copier) {
  if (*pool != nullptr) {
    if ((*pool)->failure() == ErrorCode::kOk) {
      (*pool)->PinAll();
    }
    return (*pool)->failure();
  }
  const ErrorCode fault =
      faults_ == nullptr ? ErrorCode::kOk : faults_->Pass(FaultPoint::kStagingProvide);
  if (fault != ErrorCode::kOk && fault != ErrorCode::kWouldBlock) {
    return fault;
  }
  StatusOr<std::unique_ptr<StagingPool>> made =
      StagingPool::Create(transport_, block_bytes_, blocks_, settle_, registrar_);
  if (!made.ok()) {
    return made.status().code();
  }
  *pool = made->get();
  pools_.push_back(std::move(*made));
  copier.Open(**pool);
  if (fault == ErrorCode::kWouldBlock) {
    ExhaustUntilReleased(**pool);
  }
  return ErrorCode::kOk;
}

void StagingDepot::ExhaustUntilReleased(StagingPool& pool) {
  pool.Exhaust();
  faults_->Hold([this] {
    for (const auto& one : pools_) {
      one->Replenish();
    }
  });
}

void StagingDepot::Retire(StagingPool* pool, Copier& copier, uint64_t not_before_ns) {
  const auto found = std::find_if(pools_.begin(), pools_.end(),
                                  [pool](const auto& one) { return one.get() == pool; });
  if (found == pools_.end()) {
    return;
  }
  copier.Close(*pool);
  pool->Replenish();
  if (pool->busy() != 0 || !pool->Close()) {
    retired_.push_back({std::move(*found), not_before_ns});
  }
  pools_.erase(found);
}

void StagingDepot::Advance() {
  for (const auto& pool : pools_) {
    pool->Forgive();
  }
}

void StagingDepot::Recycle(uint64_t now_ns) {
  for (const auto& pool : pools_) {
    pool->Recycle();
  }
  std::erase_if(retired_, [now_ns](const Retired& one) {
    return now_ns >= one.not_before_ns && one.pool->Close();
  });
}

bool StagingDepot::has_tainted() const {
  return !retired_.empty() || std::any_of(pools_.begin(), pools_.end(),
                                          [](const auto& pool) { return pool->has_tainted(); });
}

}  // namespace ferry::daemon
