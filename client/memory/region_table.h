// Tells which addresses of the rank lie in memory that the daemon and the peers can map.
//
// Calling thread: lookups from any, without a lock; Add and Remove one at a time (the caller
// locks). A lookup that meets a change repeats: it returns what was there before or after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/api/plain_addresses.h"
#include "shm/layout/descriptor.h"

namespace ferry::client {

struct OwnRegion {
  std::byte* base = nullptr;
  uint64_t size_bytes = 0;
  uint32_t id = 0;         // 0: there is none
  int device = -1;         // that made the memory; -1: none
  bool by_stream = false;  // only streams reach it
  bool staged = true;      // the daemon moves it between nodes
  bool lent = false;       // memory of the program itself, that ranks of the node read
  // Device memory that the program allocated by its GPU vendor's calls; once it is freed, its
  // addresses are unmapped, or belong to another allocation.
  bool adopted = false;
  bool hidden = false;  // no other process can map it: neither the daemon nor the peers know it

  explicit operator bool() const { return id != 0; }
};

class RegionTable {
 public:
  RegionTable();

  // Returns where `pointer` lies, as other processes name it: region and offset, or region 0 and
  // the address itself when it is private memory (or not all of the `size_bytes` are in one
  // region). Lent memory counts as private: its pages come and go, so the network must not keep
  // them.
  shm::Location Find(const void* pointer, uint64_t size_bytes) const;
  // Returns where a buffer lies that only ranks of the node read: as Find, but lent regions count,
  // too. Of several regions that begin at one address, the last one counts.
  shm::Location FindForNode(const void* pointer, uint64_t size_bytes) const;
  // Returns the region around `pointer`; its id is 0 if there is none.
  OwnRegion Around(const void* pointer) const;
  // Returns the region with this id; its id is 0 if there is none.
  OwnRegion ById(uint32_t id) const;
  const PlainAddresses& addresses() const { return addresses_; }

  void Add(const OwnRegion& region);
  void Remove(uint32_t id);
  // As PlainAddresses::Watch.
  void WatchForVendor(const void* const* word) { addresses_.Watch(word); }

 private:
  // One region of a table, in words that one thread changes while other threads read them.
  class Slot {
   public:
    OwnRegion Load() const;
    void Store(const OwnRegion& region);
    std::byte* base() const { return base_.load(std::memory_order_acquire); }
    uint32_t id() const { return id_.load(std::memory_order_acquire); }

   private:
    std::atomic<std::byte*> base_{nullptr};
    std::atomic<uint64_t> size_bytes_{0};
    std::atomic<uint32_t> id_{0};
    std::atomic<int> device_{-1};
    std::atomic<uint32_t> flags_{0};
  };
  struct Table {  // in the order of their bases
    explicit Table(size_t slots) : capacity(slots), regions(std::make_unique<Slot[]>(slots)) {}
    const size_t capacity;
    std::atomic<size_t> count{0};
    std::unique_ptr<Slot[]> regions;
  };

  // Calls look(table) again until the table has not changed during the call.
  template <typename Look>
  OwnRegion Consistent(Look&& look) const;
  void Replace(const std::vector<OwnRegion>& regions);
  std::vector<OwnRegion> All() const;

  std::atomic<uint64_t> version_{0};  // odd: a change is under way
  std::atomic<const Table*> current_;
  PlainAddresses addresses_;
  // Each table is twice as large as the one before. All stay: another thread may still read an old
  // one.
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace ferry::client
