#include "gpu_backends/api/registry.h"

#include <string>
#include <utility>

namespace ferry::gpu {

Status BackendRegistry::Add(std::unique_ptr<GpuBackend> backend) {
  if (backend == nullptr) {
    return {ErrorCode::kInvalidArgument, "cannot add a null GPU backend"};
  }
  std::lock_guard lock(add_mutex_);
  if (Find(backend->name()) != nullptr) {
    return {ErrorCode::kAlreadyExists,
            "a GPU backend named '" + std::string(backend->name()) + "' was added before"};
  }
  const size_t count = count_.load(std::memory_order_relaxed);  // only written under add_mutex_
  if (count == kMaxBackends) {
    return {ErrorCode::kLimitExceeded, "cannot add GPU backend '" + std::string(backend->name()) +
                                           "': there are " + std::to_string(kMaxBackends) +
                                           " already"};
  }
  backends_[count] = std::move(backend);
  // Pairs with the acquire loads of the lookups: publishes the slot.
  count_.store(count + 1, std::memory_order_release);
  return {};
}

GpuBackend* BackendRegistry::Find(std::string_view name) const {
  const size_t count = count_.load(std::memory_order_acquire);  // Pairs with Add.
  for (size_t i = 0; i < count; ++i) {
    if (backends_[i]->name() == name) {
      return backends_[i].get();
    }
  }
  return nullptr;
}

BackendRegistry::Match BackendRegistry::Identify(const void* pointer) const {
  const size_t count = count_.load(std::memory_order_acquire);  // Pairs with Add.
  for (size_t i = 0; i < count; ++i) {
    const PointerInfo info = backends_[i]->Identify(pointer);
    if (info.kind != PointerKind::kUnknown) {
      return {backends_[i].get(), info};
    }
  }
  return {};
}

std::vector<GpuBackend*> BackendRegistry::List() const {
  const size_t count = count_.load(std::memory_order_acquire);  // Pairs with Add.
  std::vector<GpuBackend*> list;
  for (size_t i = 0; i < count; ++i) {
    list.push_back(backends_[i].get());
  }
  return list;
}

}  // namespace ferry::gpu
