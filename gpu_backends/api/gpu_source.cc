#include "gpu_backends/api/gpu_source.h"

#include <utility>

namespace ferry::gpu {

GpuSource::GpuSource(Open open, uint64_t idle_ns, std::unique_ptr<GpuBackend> opened)
    : open_(std::move(open)),
      idle_ns_(idle_ns),
      opened_(opened == nullptr ? nullptr : std::make_shared<OpenedGpu>(std::move(opened))) {}

StatusOr<std::shared_ptr<OpenedGpu>> GpuSource::Get() {
  std::lock_guard lock(mutex_);
  idle_since_ns_ = 0;
  if (opened_ == nullptr) {
    StatusOr<std::unique_ptr<GpuBackend>> opened = open_();
    FERRY_RETURN_IF_ERROR(opened.status());
    opened_ = std::make_shared<OpenedGpu>(std::move(*opened));
  }
  return opened_;
}

bool GpuSource::ReleaseIdle(uint64_t now_ns) {
  std::lock_guard lock(mutex_);
  // Others' copies are made under the lock, so once there are none, there will be none.
  if (opened_ == nullptr || opened_.use_count() > 1) {
    idle_since_ns_ = 0;
    return false;
  }
  if (idle_since_ns_ == 0) {
    idle_since_ns_ = now_ns;
  }
  if (now_ns - idle_since_ns_ < idle_ns_) {
    return true;
  }
  opened_.reset();
  idle_since_ns_ = 0;
  return false;
}

bool GpuSource::is_open() const {
  std::lock_guard lock(mutex_);
  return opened_ != nullptr;
}

}  // namespace ferry::gpu
