#include "client/memory/backend_in_use.h"

#include <utility>

#include "shm/atomic.h"

namespace ferry::client {

BackendInUse::BackendInUse(gpu::BackendRegistry* backends, RegionTable* regions)
    : backends_(backends), regions_(*regions) {
  if (const std::vector<gpu::GpuBackend*> all = backends_->List(); !all.empty()) {
    Use(all.front());
  }
  LookForVendor();
}

void BackendInUse::Use(gpu::GpuBackend* backend) {
  all_streams_.push_back(std::make_unique<gpu::CopyStreams>(*backend));
  streams_.store(all_streams_.back().get(), std::memory_order_release);
  backend_.store(backend, std::memory_order_release);
  if (backend->is_vendors()) {
    regions_.WatchForVendor(nullptr);
  }
}

// The backend that has allocated or registered this memory.
gpu::GpuBackend* BackendInUse::OwnerOf(const void* pointer) const {
  gpu::GpuBackend* const owner = backends_->Identify(pointer).backend;
  return owner != nullptr ? owner : backend();
}

bool BackendInUse::HasVendor() {
  if (!regions_.addresses().MayHaveVendor()) {
    return false;
  }
  if (backend() == nullptr || !backend()->is_vendors()) {
    LookForVendor();
  }
  return backend() != nullptr && backend()->is_vendors();
}

// Libraries have been loaded, or one that is loaded may have come into use.
void BackendInUse::LookForVendor() {
  static const void* const kNoWord = nullptr;
  std::lock_guard lock(mutex_);
  gpu::LateBackends* const late = backends_->late();
  if (late == nullptr || backend() == nullptr || backend()->is_vendors()) {
    return;
  }
  if (next_library_ == nullptr || shm::LoadRelaxed(*next_library_) != nullptr) {
    next_library_ = last_library_.Find();  // first, so that what is loaded meanwhile is seen
    late->LookForLibraries();
  }
  std::unique_ptr<gpu::GpuBackend> opened = late->TryOpen();
  gpu::GpuBackend* const found = opened.get();
  if (found != nullptr && backends_->Add(std::move(opened)).ok()) {
    return Use(found);
  }
  why_no_vendor_ = late->WhyRefused();
  const bool is_watched = late->MayOpen() || !why_no_vendor_.empty();
  regions_.WatchForVendor(is_watched                 ? nullptr
                          : next_library_ != nullptr ? next_library_
                                                     : &kNoWord);
}

std::string BackendInUse::WhyNoVendor() const {
  std::lock_guard lock(mutex_);
  return why_no_vendor_;
}

}  // namespace ferry::client
