#include "client/memory/region_table.h"

#include <sched.h>

#include <algorithm>

namespace ferry::client {
namespace {

constexpr size_t kFirstCapacity = 16;

enum Flag : uint32_t { kByStream = 1, kStaged = 2, kLent = 4, kAdopted = 8, kHidden = 16 };

// `region` is the one around `pointer`, if any.
shm::Location Locate(const OwnRegion& region, const void* pointer, uint64_t size_bytes) {
  if (region && !region.hidden) {
    const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - region.base);
    if (size_bytes <= region.size_bytes - offset) {
      return {region.id, region.by_stream ? shm::kLocationByStream : 0, offset};
    }
  }
  return {0, 0, reinterpret_cast<uint64_t>(pointer)};
}

}  // namespace

// Loads acquire and stores release, so that who has seen a word of a change sees that version_ has
// changed before it.
OwnRegion RegionTable::Slot::Load() const {
  const uint32_t flags = flags_.load(std::memory_order_acquire);
  return {.base = base(),
          .size_bytes = size_bytes_.load(std::memory_order_acquire),
          .id = id(),
          .device = device_.load(std::memory_order_acquire),
          .by_stream = (flags & kByStream) != 0,
          .staged = (flags & kStaged) != 0,
          .lent = (flags & kLent) != 0,
          .adopted = (flags & kAdopted) != 0,
          .hidden = (flags & kHidden) != 0};
}

void RegionTable::Slot::Store(const OwnRegion& region) {
  base_.store(region.base, std::memory_order_release);
  size_bytes_.store(region.size_bytes, std::memory_order_release);
  id_.store(region.id, std::memory_order_release);
  device_.store(region.device, std::memory_order_release);
  flags_.store((region.by_stream ? kByStream : 0U) | (region.staged ? kStaged : 0U) |
                   (region.lent ? kLent : 0U) | (region.adopted ? kAdopted : 0U) |
                   (region.hidden ? kHidden : 0U),
               std::memory_order_release);
}

RegionTable::RegionTable() {
  tables_.push_back(std::make_unique<Table>(kFirstCapacity));
  current_.store(tables_.back().get(), std::memory_order_release);
}

template <typename Look>
OwnRegion RegionTable::Consistent(Look&& look) const {
  for (;; (void)sched_yield()) {  // who changes it may have lost its core
    const uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0) {
      continue;
    }
    const OwnRegion found = look(*current_.load(std::memory_order_acquire));
    if (version_.load(std::memory_order_acquire) == version) [[likely]] {
      return found;
    }
  }
}

shm::Location RegionTable::Find(const void* pointer, uint64_t size_bytes) const {
  const OwnRegion region = Around(pointer);
  return Locate(region.lent ? OwnRegion{} : region, pointer, size_bytes);
}

shm::Location RegionTable::FindForNode(const void* pointer, uint64_t size_bytes) const {
  return Locate(Around(pointer), pointer, size_bytes);
}

OwnRegion RegionTable::Around(const void* pointer) const {
  const auto* address = static_cast<const std::byte*>(pointer);
  return Consistent([address](const Table& table) -> OwnRegion {
    const Slot* const begin = table.regions.get();
    const auto* const after = std::upper_bound(
        begin, begin + table.count.load(std::memory_order_acquire), address,
        [](const std::byte* wanted, const Slot& slot) { return wanted < slot.base(); });
    if (after == begin) {
      return {};
    }
    const OwnRegion region = std::prev(after)->Load();
    return static_cast<uint64_t>(address - region.base) < region.size_bytes ? region : OwnRegion{};
  });
}

OwnRegion RegionTable::ById(uint32_t id) const {
  return Consistent([id](const Table& table) -> OwnRegion {
    const Slot* const begin = table.regions.get();
    const Slot* const end = begin + table.count.load(std::memory_order_acquire);
    const Slot* const found =
        std::find_if(begin, end, [id](const Slot& slot) { return slot.id() == id; });
    return found == end ? OwnRegion{} : found->Load();
  });
}

std::vector<OwnRegion> RegionTable::All() const {
  std::vector<OwnRegion> all;
  const Table& table = *tables_.back();
  for (size_t i = 0; i < table.count.load(std::memory_order_relaxed); ++i) {
    all.push_back(table.regions[i].Load());
  }
  return all;
}

void RegionTable::Add(const OwnRegion& region) {
  if (region.by_stream) {
    addresses_.AddByStream(region.base, region.size_bytes);
  }
  std::vector<OwnRegion> all = All();
  all.insert(
      std::upper_bound(all.begin(), all.end(), region,
                       [](const OwnRegion& a, const OwnRegion& b) { return a.base < b.base; }),
      region);
  Replace(all);
}

void RegionTable::Remove(uint32_t id) {
  std::vector<OwnRegion> all = All();
  std::erase_if(all, [id](const OwnRegion& region) { return region.id == id; });
  Replace(all);
}

void RegionTable::Replace(const std::vector<OwnRegion>& regions) {
  if (regions.size() > tables_.back()->capacity) {
    tables_.push_back(std::make_unique<Table>(2 * tables_.back()->capacity));
  }
  Table& table = *tables_.back();
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);  // the stores that follow release it
  for (size_t i = 0; i < regions.size(); ++i) {
    table.regions[i].Store(regions[i]);
  }
  table.count.store(regions.size(), std::memory_order_release);
  current_.store(&table, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

}  // namespace ferry::client
