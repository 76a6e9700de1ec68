// Memory that every rail of a node has registered (rails_transport.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"
#include "transports/rails/rail_keys.h"

namespace ferry::transport {

// A registration for each rail. Destroying it unpins all of them.
struct RailsRegistration final : Registration {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  std::array<std::unique_ptr<Registration>, kMaxRails> of_rail;
};

struct RailRegion {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t key = 0;
  RailKeys keys{};
  std::array<RegionHandle, kMaxRails> handles{};
  uint32_t users = 0;  // operations of the rails' transport
  // Not null: some rails have released the region, so it cannot be used any more.
  std::unique_ptr<RailsRegistration> leaving;

  bool Contains(const void* address, uint64_t length) const {
    return transport::Contains(base, bytes, address, length);
  }
};

// Memory that every rail has registered.
//
// Calling thread: the progress thread, but for RailsRegistration and Prepare.
class RailMemory {
 public:
  // The rails outlive this.
  explicit RailMemory(std::vector<Transport*> rails) : rails_(std::move(rails)) {}

  // As in Transport; the key stands for all rails, and addresses count from 0.
  using PrepareOne = std::function<StatusOr<std::unique_ptr<Registration>>(Transport& rail)>;
  StatusOr<std::unique_ptr<Registration>> Prepare(void* base, uint64_t bytes,
                                                  const PrepareOne& prepare) const;
  StatusOr<MemoryRegion> Adopt(std::unique_ptr<Registration> registration);
  StatusOr<std::unique_ptr<Registration>> Release(RegionHandle handle);

  // Null if there is no such region, or if it is leaving.
  RailRegion* Find(RegionHandle handle);
  RailRegion* FindByKey(uint64_t key);

 private:
  const std::vector<Transport*> rails_;
  SlotMap<RegionHandle, RailRegion> regions_;
  std::unordered_map<uint64_t, RegionHandle> by_key_;
};

}  // namespace ferry::transport
