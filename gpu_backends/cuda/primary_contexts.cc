#include "gpu_backends/cuda/primary_contexts.h"

#include <algorithm>
#include <utility>

namespace ferry::gpu {

PrimaryContexts::PrimaryContexts(const CudaApi& api, std::vector<CudaDevice> devices)
    : api_(api), devices_(std::move(devices)), contexts_(devices_.size()) {}

PrimaryContexts::~PrimaryContexts() {
  for (int device = 0; device < device_count(); ++device) {
    if (contexts_[device] != nullptr) {
      (void)api_.primary_ctx_release(devices_[device]);
    }
  }
}

int PrimaryContexts::DeviceOf(CudaDevice native) const {
  const auto found = std::find(devices_.begin(), devices_.end(), native);
  return found == devices_.end() ? -1 : static_cast<int>(found - devices_.begin());
}

StatusOr<CudaContext> PrimaryContexts::Get(int device) {
  std::lock_guard lock(mutex_);
  if (contexts_[device] == nullptr) {
    CudaContext context = nullptr;
    FERRY_RETURN_IF_ERROR(api_.Check("cuDevicePrimaryCtxRetain",
                                     api_.primary_ctx_retain(&context, devices_[device])));
    contexts_[device] = context;
  }
  return contexts_[device];
}

bool PrimaryContexts::IsActive(int device) const {
  unsigned flags = 0;
  int active = 0;
  return api_.primary_ctx_get_state(devices_[device], &flags, &active) == kCudaSuccess &&
         active != 0;
}

int PrimaryContexts::HostDevice() {
  std::lock_guard lock(mutex_);
  if (host_device_ < 0) {
    host_device_ = std::max(ActiveDeviceLocked(), 0);
  }
  return host_device_;
}

int PrimaryContexts::ActiveDevice() const {
  std::lock_guard lock(mutex_);
  return ActiveDeviceLocked();
}

int PrimaryContexts::ActiveDeviceLocked() const {
  const auto used = std::find_if(contexts_.begin(), contexts_.end(),
                                 [](CudaContext context) { return context != nullptr; });
  if (used != contexts_.end()) {
    return static_cast<int>(used - contexts_.begin());
  }
  for (int device = 0; device < device_count(); ++device) {
    if (IsActive(device)) {
      return device;
    }
  }
  return -1;
}

CudaScope::CudaScope(PrimaryContexts& contexts, int device) : api_(contexts.api()) {
  const StatusOr<CudaContext> context = contexts.Get(device);
  status_ = context.ok() ? api_.Check("cuCtxPushCurrent", api_.ctx_push_current(*context))
                         : context.status();
}

CudaScope::~CudaScope() {
  if (status_.ok()) {
    CudaContext popped = nullptr;
    (void)api_.ctx_pop_current(&popped);
  }
}

}  // namespace ferry::gpu
