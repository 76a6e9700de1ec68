// The memory that a TcpTransport lets peers read and write. None of it is pinned: a registration is
// an entry of a table, with a random key.
//
// Calling thread: the progress thread, but for TcpRegistration and Prepare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"

namespace ferry::transport {

struct TcpRegistration final : Registration {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Access access = Access::kLocal;
};

struct TcpRegion {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Access access = Access::kLocal;
  uint64_t key = 0;
  uint32_t users = 0;    // operations, and answers to reads of peers
  uint32_t landing = 0;  // writes of peers that are coming in

  bool Contains(const void* address, uint64_t length) const {
    return transport::Contains(base, bytes, address, length);
  }
};

class TcpMemory {
 public:
  // As in Transport; addresses count from 0.
  static StatusOr<std::unique_ptr<Registration>> Prepare(void* base, uint64_t bytes, Access access);
  StatusOr<MemoryRegion> Adopt(std::unique_ptr<Registration> registration);
  // Removes a region. The caller has made sure that no operation uses it.
  std::unique_ptr<Registration> Release(RegionHandle handle);

  // Returns null if there is no such region.
  TcpRegion* Find(RegionHandle handle) { return regions_.Find(handle); }
  // Returns the region that a peer may read or write so (`access`); null if there is none, or if it
  // does not contain the range.
  TcpRegion* FindForPeer(uint64_t key, uint64_t address, uint64_t bytes, Access access);

 private:
  StatusOr<uint64_t> RandomKey();

  SlotMap<RegionHandle, TcpRegion> regions_;
  std::unordered_map<uint64_t, RegionHandle> by_key_;
  // Drawn in advance: one key costs a system call.
  std::array<uint64_t, 32> keys_{};
  size_t keys_left_ = 0;
};

}  // namespace ferry::transport
