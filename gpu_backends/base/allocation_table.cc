#include "gpu_backends/base/allocation_table.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::gpu {
namespace {

std::string Hex(uintptr_t address) {
  char text[2 + 2 * sizeof(address) + 1];
  std::snprintf(text, sizeof(text), "%#zx", static_cast<size_t>(address));
  return text;
}

const char* OriginText(Origin origin) {
  switch (origin) {
    case Origin::kAllocated:
      return "allocated (release it with Free)";
    case Origin::kImported:
      return "imported (release it with CloseIpc)";
    case Origin::kRegistered:
      return "registered (release it with UnregisterHostMemory)";
  }
  return "corrupt";
}

std::string RangeText(const Allocation& allocation) {
  return "the " + std::to_string(allocation.size_bytes) + " bytes at " + Hex(allocation.begin());
}

PointerInfo InfoOf(const Allocation& allocation) {
  return {allocation.kind,
          allocation.device,
          allocation.base,
          allocation.size_bytes,
          allocation.id,
          {},
          {}};
}

}  // namespace

const Allocation* AllocationTable::FindLocked(uintptr_t address) const {
  auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) {
    return nullptr;
  }
  const Allocation& candidate = std::prev(next)->second;
  return address - candidate.begin() < candidate.size_bytes ? &candidate : nullptr;
}

Status AllocationTable::Insert(Allocation allocation) {
  std::unique_lock lock(mutex_);
  const uintptr_t begin = allocation.begin();
  const Allocation* overlapped = FindLocked(begin);
  if (overlapped == nullptr) {
    auto next = by_base_.upper_bound(begin);
    if (next != by_base_.end() && next->first - begin < allocation.size_bytes) {
      overlapped = &next->second;
    }
  }
  if (overlapped != nullptr) {
    return {ErrorCode::kAlreadyExists, RangeText(allocation) + " overlap " +
                                           RangeText(*overlapped) + ", which are " +
                                           OriginText(overlapped->origin)};
  }
  allocation.id = next_id_++;
  by_base_.emplace(begin, std::move(allocation));
  return {};
}

StatusOr<Allocation> AllocationTable::Remove(const void* pointer, Origin origin, const char* call) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::unique_lock lock(mutex_);
  const Allocation* found = FindLocked(address);
  if (found == nullptr) {
    return Status(ErrorCode::kInvalidBuffer,
                  std::string(call) + " of " + Hex(address) +
                      ": nothing is there; it was released before, or never this backend's");
  }
  if (found->origin != origin) {
    return Status(ErrorCode::kInvalidBuffer, std::string(call) + " of " + Hex(address) +
                                                 ": it is " + OriginText(found->origin));
  }
  if (found->handle() != address) {
    return Status(ErrorCode::kInvalidBuffer, std::string(call) + " of " + Hex(address) +
                                                 ": it lies inside " + RangeText(*found) +
                                                 "; pass " + Hex(found->handle()));
  }
  return std::move(by_base_.extract(found->begin()).mapped());
}

std::vector<Allocation> AllocationTable::RemoveAll() {
  std::unique_lock lock(mutex_);
  std::vector<Allocation> all;
  for (auto& [base, allocation] : by_base_) {
    all.push_back(std::move(allocation));
  }
  by_base_.clear();
  return all;
}

PointerInfo AllocationTable::Identify(const void* pointer) const {
  std::shared_lock lock(mutex_);
  const Allocation* found = FindLocked(reinterpret_cast<uintptr_t>(pointer));
  if (found == nullptr) {
    return {};
  }
  return InfoOf(*found);
}

void* AllocationTable::Behind(const void* pointer) const {
  std::shared_lock lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const Allocation* around = FindLocked(address);
  if (around == nullptr || around->behind.data() == nullptr) {
    return const_cast<void*>(pointer);
  }
  return static_cast<std::byte*>(around->behind.data()) + (address - around->begin());
}

Status AllocationTable::CheckExportable(const Allocation* found, const void* pointer) {
  if (found != nullptr && found->kind == PointerKind::kDevice &&
      found->origin == Origin::kAllocated) {
    return {};
  }
  return {ErrorCode::kInvalidBuffer,
          "ExportIpc of " + Hex(reinterpret_cast<uintptr_t>(pointer)) +
              ": only device memory that this process allocated can be exported"};
}

StatusOr<PointerInfo> AllocationTable::Exportable(const void* pointer) const {
  std::shared_lock lock(mutex_);
  const Allocation* found = FindLocked(reinterpret_cast<uintptr_t>(pointer));
  if (found == nullptr) {
    return PointerInfo{};
  }
  FERRY_RETURN_IF_ERROR(CheckExportable(found, pointer));
  return InfoOf(*found);
}

StatusOr<IpcHandle> AllocationTable::Export(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::shared_lock lock(mutex_);
  const Allocation* found = FindLocked(address);
  FERRY_RETURN_IF_ERROR(CheckExportable(found, pointer));
  IpcHandle handle;
  handle.fd.Reset(fcntl(found->fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle.fd.valid()) {
    return StatusFromErrno(errno, "duplicating the descriptor of an exported allocation");
  }
  handle.offset_bytes = address - found->begin();
  handle.size_bytes = found->size_bytes;
  handle.allocation_id = found->id;
  handle.device = found->device;
  return handle;
}

Status AllocationTable::CheckRange(const void* pointer, uint64_t size_bytes,
                                   bool must_be_known) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::shared_lock lock(mutex_);
  const Allocation* found = FindLocked(address);
  if (found == nullptr) {
    return must_be_known ? Status(ErrorCode::kInvalidBuffer,
                                  Hex(address) +
                                      " is not in device, pinned or registered memory; "
                                      "register it with RegisterHostMemory")
                         : Status();
  }
  const uint64_t available_bytes = found->size_bytes - (address - found->begin());
  if (size_bytes > available_bytes) {
    return {ErrorCode::kInvalidBuffer, std::to_string(size_bytes) + " bytes from " + Hex(address) +
                                           " run past the end of " + RangeText(*found)};
  }
  return {};
}

Status AllocationTable::Reserve(int device, uint64_t size_bytes, uint64_t total_bytes) {
  std::unique_lock lock(mutex_);
  uint64_t& used_bytes = used_bytes_[device];
  if (size_bytes > total_bytes - used_bytes) {
    return {ErrorCode::kOutOfMemory, "device " + std::to_string(device) + " cannot allocate " +
                                         std::to_string(size_bytes) +
                                         " bytes: " + std::to_string(used_bytes) + " of its " +
                                         std::to_string(total_bytes) + " bytes are in use"};
  }
  used_bytes += size_bytes;
  return {};
}

void AllocationTable::Unreserve(int device, uint64_t size_bytes) {
  std::unique_lock lock(mutex_);
  used_bytes_[device] -= size_bytes;
}

uint64_t AllocationTable::Reserved(int device) const {
  std::shared_lock lock(mutex_);
  return used_bytes_[device];
}

}  // namespace ferry::gpu
