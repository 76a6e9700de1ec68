// The job as OpenSHMEM sees it, between shmem_init and shmem_finalize: the state that all code of
// this folder uses.
//
// Calling thread: shmem_init and shmem_finalize change it, all others read it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "shm/atomic.h"
#include "shmem/base/region.h"

namespace ferry::shmem {

// kJoined: between shmemx_heap_preinit and shmemx_heap_postinit.
enum class Phase : uint8_t { kBefore, kJoined, kRunning, kAfter };

// Symmetric heaps in memory of devices (spaces.h), beside the one in host memory.
inline constexpr size_t kMostSpaces = 3;
inline constexpr int kNoHeap = -1;

// A stretch of memory that all PEs have, each at an address of its own: the heap, spaces, and the
// static data of the program and its libraries.
struct Segment {
  std::string name;
  std::byte* base = nullptr;
  size_t size_bytes = 0;
  std::vector<ptrdiff_t> shifts = {};  // by PE: its address of a byte, less this PE's
  // libferry's names of remote PEs' memory (client/api/one_sided.h), by PE: the number of its
  // segment, and the offset in it at which this stretch begins.
  std::vector<uint32_t> numbers = {};
  std::vector<uint64_t> first_offsets = {};
  int heap = kNoHeap;         // 0: the heap in host memory; else the space's number
  bool is_by_stream = false;  // CPUs do not reach it, here or on another PE: only streams do
  bool is_programs = false;   // of shmemx_heap_create: the program itself allocates from it

  bool is_heap() const { return heap != kNoHeap; }
  bool Contains(const void* address, size_t bytes) const {
    const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - base);
    return offset < size_bytes && bytes <= size_bytes - offset;
  }
};

struct Job {
  client::FrontEnd* front_end = nullptr;  // null unless running
  int self = -1;
  int size = 0;
  int thread_level = 0;
  std::vector<int> local_pes;  // with this PE
  bool has_remote_pes = false;
  // FrontEnd::death_epoch while running, and its value at the last search for dead local PEs.
  static constexpr uint32_t kNoDeaths = 0;
  const uint32_t* death_epoch = &kNoDeaths;
  std::atomic<uint32_t> deaths_seen{0};
  std::unique_ptr<Region> region;
  Segment heap;  // of size 0 unless running
  std::vector<Segment> statics;
  // By number, from 1 on; null: there is none. A space that was taken out stays in memory, for
  // threads that may still look at it.
  std::array<std::atomic<const Segment*>, kMostSpaces> spaces{};
  bool is_checking = false;  // the checking mode (checks.h), on all PEs or on none
  std::atomic<Phase> phase{Phase::kBefore};

  bool IsLocal(int pe) const {
    return front_end->NodeOf(static_cast<uint32_t>(pe)) ==
           front_end->NodeOf(static_cast<uint32_t>(self));
  }
  bool AreLocal(const std::vector<int>& pes) const;
  // Returns true if PEs may have died since that search. Costs two loads.
  bool has_new_deaths() const {
    return shm::LoadRelaxed(*death_epoch) != deaths_seen.load(std::memory_order_relaxed);
  }
  bool is_running() const { return phase.load(std::memory_order_acquire) == Phase::kRunning; }
  // Returns the segment in which all of these bytes lie, or null.
  const Segment* FindSegment(const void* address, size_t bytes) const;
};
// Never destroyed: threads of the program may run to the end.
extern Job& job;

// Ends the program unless OpenSHMEM is running, with a sentence that says whether shmem_init is
// missing or shmem_finalize came before.
void CheckRunning(const char* call);
// Ends the program unless OpenSHMEM is running, or between shmemx_heap_preinit and
// shmemx_heap_postinit.
void CheckJoined(const char* call);
[[noreturn]] void FailNotRunning(const char* call);

}  // namespace ferry::shmem
