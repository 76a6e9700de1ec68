#include "client/core/region_table.h"

#include <algorithm>

namespace ferry::client {
namespace {

// `region` is the one around `pointer`, or null.
shm::Location Locate(const OwnRegion* region, const void* pointer, uint64_t size_bytes) {
  if (region != nullptr) {
    const auto offset =
        static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - region->base);
    if (size_bytes <= region->size_bytes - offset) {
      return {region->id, region->by_stream ? shm::kLocationByStream : 0, offset};
    }
  }
  return {0, 0, reinterpret_cast<uint64_t>(pointer)};
}

}  // namespace

RegionTable::RegionTable() { Publish({}); }

shm::Location RegionTable::Find(const void* pointer, uint64_t size_bytes) const {
  const OwnRegion* const region = Around(pointer);
  return Locate(region == nullptr || region->lent ? nullptr : region, pointer, size_bytes);
}

shm::Location RegionTable::FindForNode(const void* pointer, uint64_t size_bytes) const {
  return Locate(Around(pointer), pointer, size_bytes);
}

const OwnRegion* RegionTable::Around(const void* pointer) const {
  // Pairs with Publish.
  const Table& table = *current_.load(std::memory_order_acquire);
  const auto* address = static_cast<const std::byte*>(pointer);
  const auto after = std::upper_bound(
      table.begin(), table.end(), address,
      [](const std::byte* wanted, const OwnRegion& region) { return wanted < region.base; });
  if (after == table.begin()) {
    return nullptr;
  }
  const OwnRegion& region = *std::prev(after);
  const auto offset = static_cast<uint64_t>(address - region.base);
  return offset < region.size_bytes ? &region : nullptr;
}

const OwnRegion* RegionTable::ById(uint32_t id) const {
  const Table& table = *current_.load(std::memory_order_acquire);
  const auto found = std::find_if(table.begin(), table.end(),
                                  [id](const OwnRegion& region) { return region.id == id; });
  return found == table.end() ? nullptr : &*found;
}

void RegionTable::Add(const OwnRegion& region) {
  if (region.by_stream) {
    by_stream_.Add(region.base, region.size_bytes);
  }
  Table table = *current_.load(std::memory_order_relaxed);
  table.insert(
      std::upper_bound(table.begin(), table.end(), region,
                       [](const OwnRegion& a, const OwnRegion& b) { return a.base < b.base; }),
      region);
  Publish(std::move(table));
}

void RegionTable::Remove(uint32_t id) {
  Table table = *current_.load(std::memory_order_relaxed);
  std::erase_if(table, [id](const OwnRegion& region) { return region.id == id; });
  Publish(std::move(table));
}

void RegionTable::Publish(Table table) {
  all_.push_back(std::make_unique<const Table>(std::move(table)));
  current_.store(all_.back().get(), std::memory_order_release);
}

}  // namespace ferry::client
