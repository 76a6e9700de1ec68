// Every range of memory that a backend knows, found by any address inside it.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "gpu_backends/api/types.h"
#include "gpu_backends/base/mapping.h"

namespace ferry::gpu {

// How a range became known, which decides the call that may forget it.
enum class Origin : uint8_t { kAllocated, kImported, kRegistered };

struct Allocation {
  PointerKind kind = PointerKind::kUnknown;
  Origin origin = Origin::kAllocated;
  int device = -1;
  void* base = nullptr;
  uint64_t size_bytes = 0;
  uint64_t handle_offset_bytes = 0;  // from `base` to the user's pointer; not 0 for some imports
  uint64_t id = 0;                   // set by Insert
  // For emulated devices only:
  Mapping mapping;  // empty for registered memory
  Mapping behind;   // where streams reach it, if `mapping` may not be touched
  UniqueFd fd;      // for device memory allocated here

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(base); }
  uintptr_t handle() const { return begin() + handle_offset_bytes; }
};

// Thread-safe.
class AllocationTable {
 public:
  explicit AllocationTable(int device_count) : used_bytes_(device_count) {}

  // Takes the allocation and gives it an id. kAlreadyExists where it overlaps a known range.
  Status Insert(Allocation allocation);

  // Removes every range, in the order of addresses, as Remove would; for the end of the backend.
  std::vector<Allocation> RemoveAll();

  // Forgets the range whose handle is `pointer` and hands it out, to be unmapped outside the lock.
  // kInvalidBuffer, saying what the pointer is instead, unless it has that origin; `call` names the
  // caller in the message.
  StatusOr<Allocation> Remove(const void* pointer, Origin origin, const char* call);

  // Fills in all but `direct`, which the backend knows.
  PointerInfo Identify(const void* pointer) const;

  // Returns where streams reach the memory at `pointer`: usually at the same address.
  void* Behind(const void* pointer) const;

  // As Identify, but kInvalidBuffer for known memory that is not device memory allocated here.
  StatusOr<PointerInfo> Exportable(const void* pointer) const;
  // Exports device memory allocated here, around the pointer: a duplicate of its descriptor and the
  // offset.
  StatusOr<IpcHandle> Export(const void* pointer) const;

  // Returns kInvalidBuffer if the range begins in a known one and runs past its end, or, with
  // `must_be_known`, begins in none.
  Status CheckRange(const void* pointer, uint64_t size_bytes, bool must_be_known) const;

  // Takes `size_bytes` of a device's emulated memory. kOutOfMemory if less than that is free.
  Status Reserve(int device, uint64_t size_bytes, uint64_t total_bytes);
  void Unreserve(int device, uint64_t size_bytes);
  uint64_t Reserved(int device) const;

 private:
  static Status CheckExportable(const Allocation* found, const void* pointer);
  // The known range around an address, or null. The caller holds the lock.
  const Allocation* FindLocked(uintptr_t address) const;

  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Allocation> by_base_;  // ranges do not overlap
  std::vector<uint64_t> used_bytes_;         // per device
  uint64_t next_id_ = 1;
};

}  // namespace ferry::gpu
