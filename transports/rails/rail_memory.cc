#include "transports/rails/rail_memory.h"

#include <sys/random.h>

#include <cerrno>
#include <string>

namespace ferry::transport {
namespace {

Status OnRail(size_t rail, const Status& status) {
  return Status(status.code(), "rail " + std::to_string(rail) + ": " + status.message());
}

}  // namespace

StatusOr<std::unique_ptr<Registration>> RailMemory::Prepare(void* base, uint64_t bytes,
                                                            const PrepareOne& prepare) const {
  auto prepared = std::make_unique<RailsRegistration>();
  prepared->base = static_cast<std::byte*>(base);
  prepared->bytes = bytes;
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    StatusOr<std::unique_ptr<Registration>> part = prepare(*rails_[rail]);
    if (!part.ok()) {
      return OnRail(rail, part.status());
    }
    prepared->of_rail[rail] = std::move(*part);
  }
  return std::unique_ptr<Registration>(std::move(prepared));
}

StatusOr<MemoryRegion> RailMemory::Adopt(std::unique_ptr<Registration> registration) {
  std::unique_ptr<RailsRegistration> own(static_cast<RailsRegistration*>(registration.release()));
  RailRegion region;
  region.base = own->base;
  region.bytes = own->bytes;
  while (region.key == 0 || by_key_.contains(region.key)) {
    if (getrandom(&region.key, sizeof(region.key), 0) != sizeof(region.key)) {
      return StatusFromErrno(errno, "getrandom");
    }
  }
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    StatusOr<MemoryRegion> part = rails_[rail]->AdoptMemory(std::move(own->of_rail[rail]));
    if (!part.ok()) {
      while (rail-- > 0) {  // nothing uses them yet, so they go at once
        static_cast<void>(rails_[rail]->DeregisterMemory(region.handles[rail]));
      }
      return OnRail(rail, part.status());
    }
    region.handles[rail] = part->handle;
    region.keys[rail] = {part->key, part->remote_base};
  }
  const MemoryRegion result{regions_.Insert(), region.key, /*remote_base=*/0};
  by_key_.emplace(region.key, result.handle);
  *regions_.Find(result.handle) = std::move(region);
  return result;
}

StatusOr<std::unique_ptr<Registration>> RailMemory::Release(RegionHandle handle) {
  RailRegion* region = regions_.Find(handle);
  if (region == nullptr) {
    return Status(ErrorCode::kNotFound, "ReleaseMemory: no such region");
  }
  if (region->users != 0) {
    return Status(ErrorCode::kWouldBlock,
                  "ReleaseMemory: " + std::to_string(region->users) +
                      " operations still use the region; Poll and try again");
  }
  if (region->leaving == nullptr) {
    region->leaving = std::make_unique<RailsRegistration>();
    by_key_.erase(region->key);
  }
  // A rail may still hold an operation reported as failed; the other rails' registrations then wait
  // for it.
  Status held;
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    if (region->leaving->of_rail[rail] != nullptr) {
      continue;
    }
    StatusOr<std::unique_ptr<Registration>> part =
        rails_[rail]->ReleaseMemory(region->handles[rail]);
    if (part.ok()) {
      region->leaving->of_rail[rail] = std::move(*part);
    } else {
      held = OnRail(rail, part.status());
    }
  }
  FERRY_RETURN_IF_ERROR(held);
  std::unique_ptr<Registration> released = std::move(region->leaving);
  regions_.Erase(handle);
  return released;
}

RailRegion* RailMemory::Find(RegionHandle handle) {
  RailRegion* region = regions_.Find(handle);
  return region == nullptr || region->leaving != nullptr ? nullptr : region;
}

RailRegion* RailMemory::FindByKey(uint64_t key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : regions_.Find(found->second);
}

}  // namespace ferry::transport
