// Registered memory: the regions of the callers, and the arena of a transport's own buffers.
//
// Calling thread: the progress thread, but for OfiRegistration and Prepare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/library.h"

namespace ferry::transport {

// A prepared registration. It has no `mr` where the provider pins nothing: then the progress thread
// registers the memory (PinsMemory).
struct OfiRegistration final : Registration {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Access access = Access::kLocal;
  fid_cntr* counter = nullptr;         // counts remote writes, if not null
  std::optional<DeviceMemory> device;  // nothing: a CPU's
  FidPtr<fid_mr> mr;
};

struct Region {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  std::unique_ptr<OfiRegistration> registration;
  void* descriptor = nullptr;  // null for host memory, unless the provider wants FI_MR_LOCAL
  uint32_t users = 0;          // operations that the NIC may still carry out on it

  bool Contains(const void* address, uint64_t length) const {
    return transport::Contains(base, bytes, address, length);
  }
};

class RegionTable {
 public:
  explicit RegionTable(const Endpoint* endpoint);

  // Does Transport::PrepareMemory. Remote writes add to `counter`, if it is not null.
  StatusOr<std::unique_ptr<Registration>> Prepare(void* base, uint64_t bytes, Access access,
                                                  fid_cntr* counter) const;
  // Does Transport::PrepareDeviceMemory. Remote writes add to `counter`, if it is not null.
  StatusOr<std::unique_ptr<Registration>> PrepareDevice(const DeviceMemory& memory, void* base,
                                                        uint64_t bytes, Access access,
                                                        fid_cntr* counter = nullptr) const;
  StatusOr<MemoryRegion> Adopt(std::unique_ptr<Registration> registration);
  StatusOr<std::unique_ptr<Registration>> Release(RegionHandle handle);
  void Clear() { regions_.Clear(); }
  Region* Find(RegionHandle handle) { return regions_.Find(handle); }

 private:
  Status Register(OfiRegistration* registration) const;

  const Endpoint* endpoint_;
  const bool pins_;
  SlotMap<RegionHandle, Region> regions_;
};

// Page-aligned anonymous memory, registered for local use if the provider wants that. Must outlive
// the endpoint, which may write into it until it is closed.
class Arena {
 public:
  static StatusOr<std::unique_ptr<Arena>> Create(const Endpoint& endpoint, size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Call it before the endpoint is closed; the memory itself lives as long as the arena.
  void Deregister() { mr_.reset(); }

  std::byte* base() const { return base_; }
  void* descriptor() const { return descriptor_; }

 private:
  Arena(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}

  std::byte* base_;
  size_t bytes_;
  FidPtr<fid_mr> mr_;
  void* descriptor_ = nullptr;
};

}  // namespace ferry::transport
