#include "gpu_backends/driver/imports.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ferry::gpu {

void* Imports::FindLocked(const IpcHandle& handle) const {
  if (handle.fd.valid()) {
    return nullptr;
  }
  for (const auto& [base, import] : by_base_) {
    if (import.opaque == handle.opaque) {
      return base;
    }
  }
  return nullptr;
}

StatusOr<void*> Imports::MapLocked(int device, const IpcHandle& handle) {
  StatusOr<void*> base = driver_.Import(device, handle);
  FERRY_RETURN_IF_ERROR(base.status());
  Allocation allocation;
  allocation.kind = PointerKind::kDevice;
  allocation.origin = Origin::kImported;
  allocation.device = device;
  allocation.base = *base;
  allocation.size_bytes = handle.size_bytes;
  if (Status status = table_.Insert(std::move(allocation)); !status.ok()) {
    (void)driver_.CloseImport(*base);
    return status;
  }
  by_base_[*base].opaque = handle.fd.valid() ? Opaque{} : handle.opaque;
  return base;
}

StatusOr<void*> Imports::Open(int device, const IpcHandle& handle) {
  std::lock_guard lock(mutex_);
  void* base = FindLocked(handle);
  if (base == nullptr) {
    const StatusOr<void*> mapped = MapLocked(device, handle);
    FERRY_RETURN_IF_ERROR(mapped.status());
    base = *mapped;
  }
  void* const pointer = static_cast<std::byte*>(base) + handle.offset_bytes;
  by_base_[base].pointers.push_back(pointer);
  return pointer;
}

Status Imports::Close(void* pointer) {
  std::lock_guard lock(mutex_);
  void* const base = table_.Identify(pointer).base;
  const auto import = by_base_.find(base);
  if (import == by_base_.end()) {
    return table_.Remove(pointer, Origin::kImported, "CloseIpc").status();  // says what it is
  }
  std::vector<void*>& pointers = import->second.pointers;
  const auto found = std::find(pointers.begin(), pointers.end(), pointer);
  if (found == pointers.end()) {
    return {ErrorCode::kInvalidBuffer,
            "CloseIpc: the pointer lies in an import, but is not what ImportIpc returned"};
  }
  pointers.erase(found);
  if (!pointers.empty()) {
    return {};
  }
  by_base_.erase(import);
  FERRY_RETURN_IF_ERROR(table_.Remove(base, Origin::kImported, "CloseIpc").status());
  return parked_.Release([this, base] { return driver_.CloseImport(base); });
}

}  // namespace ferry::gpu
