// Which of the rank's addresses lie in memory that the daemon and the peers can map.
//
// Calling thread: Find from any, without a lock; Add and Remove one at a time (the caller locks). A
// change publishes a new table; old ones stay until the end, since a reader may still look at them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/core/address_hull.h"
#include "shm/layout/descriptor.h"

namespace ferry::client {

struct OwnRegion {
  std::byte* base = nullptr;
  uint64_t size_bytes = 0;
  uint32_t id = 0;
  int device = -1;         // that made the memory; -1: none
  bool by_stream = false;  // only streams reach it
  bool staged = true;      // the daemon moves it between nodes
  bool lent = false;       // memory of the program itself, that ranks of the node read
};

class RegionTable {
 public:
  RegionTable();

  // Where `pointer` lies, as other processes name it: region and offset, or region 0 and the
  // address itself when it is private memory (or not all of the `size_bytes` are in one region).
  // What is lent counts as private: its pages come and go, so the network must not keep them.
  shm::Location Find(const void* pointer, uint64_t size_bytes) const;
  // The same for a buffer that only ranks of the node read: in a lent region, too. Of several that
  // begin at one address the last one counts.
  shm::Location FindForNode(const void* pointer, uint64_t size_bytes) const;
  // The region around `pointer`, or null.
  const OwnRegion* Around(const void* pointer) const;
  // Around all regions that are, or were, for streams only. No address outside needs to be looked
  // up.
  const AddressHull& by_stream() const { return by_stream_; }
  // The region with this id, or null.
  const OwnRegion* ById(uint32_t id) const;

  void Add(const OwnRegion& region);
  void Remove(uint32_t id);

 private:
  using Table = std::vector<OwnRegion>;  // by base
  void Publish(Table table);

  std::atomic<const Table*> current_;
  AddressHull by_stream_;
  std::vector<std::unique_ptr<const Table>> all_;
};

}  // namespace ferry::client
