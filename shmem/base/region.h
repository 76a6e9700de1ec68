// The memory that this PE shares with the others of its node, and theirs: a place (place_layout.h),
// the system area, and the symmetric heap. Each PE makes its own as one memfd, and maps those of
// the local PEs. For remote PEs it has libferry's names of their parts.
//
// Pages are taken when they are touched, so the region has its full size from the start: the heap
// needs no growing. Offsets in it are alike on all PEs, addresses are not.
//
// Calling thread: that of shmem_init and shmem_finalize; AllocateSystem and FreeSystem from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/api/front_end.h"
#include "client/memory/offset_allocator.h"
#include "common/status.h"
#include "shm/segment.h"
#include "shmem/base/place_layout.h"

namespace ferry::shmem {

// PEs of this node are *local*: their memory is mapped. All others are *remote*: operations with
// them go through the daemons. kRemote stands for a remote PE in place of the distance between a
// local PE's address of a byte and this PE's.
inline constexpr ptrdiff_t kRemote = PTRDIFF_MIN;

class Region {
 public:
  // Makes this PE's part. kLimitExceeded, kConfiguration and the like, with advice.
  static StatusOr<std::unique_ptr<Region>> Make(client::FrontEnd* front_end, uint64_t heap_bytes);
  // Maps the local PEs' parts. Blocks until all PEs have called it.
  Status MeetOthers();
  // Returns true if calls are to be checked (checks.h): as set before MeetOthers; after it, as PE 0
  // has set it.
  bool is_checking() const { return is_checking_; }
  // Sets the size of the heap that shmemx_heap_create has named, 0 if none. To be called before
  // MeetOthers. All PEs must have named a heap of the same size.
  void set_programs_heap_bytes(uint64_t bytes) { programs_heap_bytes_ = bytes; }
  void set_is_checking(bool is_checking) { is_checking_ = is_checking; }
  // Ends the sharing of the region, which the other PEs do not use any more. kInvalidBuffer while
  // messages of another front end use it.
  Status End();

  uint64_t heap_bytes() const { return heap_bytes_; }
  std::byte* base() const { return mapping_.base(); }
  // Returns where this process maps the part of a local PE.
  std::byte* base_of(int pe) const { return bases_[static_cast<size_t>(pe)]; }
  PlaceLayout& place() const { return *reinterpret_cast<PlaceLayout*>(base()); }
  PlaceLayout& place_of(int pe) const { return *reinterpret_cast<PlaceLayout*>(base_of(pe)); }
  // Returns the distance from an address in this PE's part to the same offset in that of PE `pe`.
  // kRemote for remote PEs.
  ptrdiff_t shift_of(int pe) const {
    return base_of(pe) == nullptr ? kRemote : base_of(pe) - base();
  }
  // The segments of all parts, by PE, for one-sided operations.
  const std::vector<uint32_t>& numbers() const { return numbers_; }

  // Allocates zeroed memory of the system area. Returns its offset in the region; 0: it is full.
  uint64_t AllocateSystem(size_t size_bytes);
  void FreeSystem(uint64_t offset, size_t size_bytes);

 private:
  Region(client::FrontEnd* front_end, uint64_t heap_bytes)
      : front_end_(front_end), heap_bytes_(heap_bytes) {}

  client::FrontEnd* const front_end_;
  const uint64_t heap_bytes_;
  bool is_checking_ = false;
  uint64_t programs_heap_bytes_ = 0;
  shm::Mapping mapping_;
  std::vector<std::byte*> bases_;                   // by PE; null: it is remote
  std::vector<uint32_t> numbers_;                   // by PE
  std::vector<std::shared_ptr<std::byte>> mapped_;  // others' parts
  std::mutex mutex_;
  client::OffsetAllocator system_;
};

// Sends `size_bytes` of each PE to all others; `all` gets them by PE. It uses messages of its own,
// for the time before there are teams. Blocks until all PEs have called it.
Status ExchangeByMessages(client::FrontEnd* front_end, const void* own, size_t size_bytes,
                          void* all);

}  // namespace ferry::shmem
