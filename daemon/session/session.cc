#include "daemon/session/session.h"

#include <utility>

namespace ferry::daemon {

Status Region::Import(gpu::GpuSource& gpus, const gpu::IpcHandle& device_handle) {
  StatusOr<std::shared_ptr<gpu::OpenedGpu>> opened = gpus.Get();
  FERRY_RETURN_IF_ERROR(opened.status());
  StatusOr<std::unique_ptr<gpu::ImportedMemory>> imported =
      gpu::ImportedMemory::Import(*(*opened)->backend, device_handle);
  FERRY_RETURN_IF_ERROR(imported.status());
  gpu = std::move(*opened);
  device_memory = std::move(*imported);
  return {};
}

std::shared_ptr<const Region> Session::FindRegion(uint32_t id) const {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(id);
  return found == regions_.end() ? nullptr : found->second;
}

Status Session::AddRegion(std::shared_ptr<const Region> region) {
  std::lock_guard lock(mutex_);
  uint32_t id = region->id;
  if (!regions_.emplace(id, std::move(region)).second) {
    return {ErrorCode::kAlreadyExists, "region " + std::to_string(id) + " is already registered"};
  }
  return {};
}

std::shared_ptr<const Region> Session::RemoveRegion(uint32_t id) {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(id);
  if (found == regions_.end()) {
    return nullptr;
  }
  std::shared_ptr<const Region> region = std::move(found->second);
  regions_.erase(found);
  return region;
}

void Session::DropRegions() {
  std::map<uint32_t, std::shared_ptr<const Region>> dropped;  // unmapped without the lock
  std::lock_guard lock(mutex_);
  dropped.swap(regions_);
}

std::map<uint32_t, std::shared_ptr<const Region>> Session::Regions() const {
  std::lock_guard lock(mutex_);
  return regions_;
}

}  // namespace ferry::daemon
