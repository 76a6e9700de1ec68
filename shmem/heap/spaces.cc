#include "shmem/heap/spaces.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/api/one_sided.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/operations.h"
#include "shmem/base/pieces.h"
#include "shmem/device/devices.h"
#include "shmem/heap/heap.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {

// Never given back to the system, so that a handle that the program uses too late is noticed, and
// that no thread looks at a segment which is gone.
struct Space {
  int number = 0;  // from 1 on, the same on all PEs; 0: it was destroyed
  int device = -1;
  Segment segment;
  std::vector<std::shared_ptr<std::byte>> mapped = {};  // local PEs' parts
};

namespace {

struct Spaces {
  std::mutex mutex;
  std::deque<Space> all;
};
Spaces& spaces = *new Spaces();

// By HeapCreate, for OpenProgramsHeap.
struct Named {
  void* base = nullptr;
  size_t bytes = 0;
};
Named named;

std::atomic<const Segment*>& SlotOf(int number) {
  return job.spaces[static_cast<size_t>(number - 1)];
}

// The first number that is free; 0: none is. All PEs make and destroy spaces in the same order.
int FreeNumber() {
  for (int number = 1; number <= static_cast<int>(kMostSpaces); ++number) {
    if (SlotOf(number).load(std::memory_order_relaxed) == nullptr) {
      return number;
    }
  }
  return 0;
}

// The description of a PE's part, which it sends to the others.
struct Offer {
  uint64_t bytes = 0;  // that it was asked for
  int64_t error = 0;   // ErrorCode
  uint64_t size_bytes = 0;
  shm::Location where{};
};

// The result of a PE's look at the others' parts.
struct Finding {
  int64_t error = 0;
  uint64_t alignment = 0;  // of all addresses by which it reaches parts
};

// ---- Making one ---------------------------------------------------------------------------------

// This PE's part.
Status Allocate(Space* space, size_t bytes) {
  FERRY_RETURN_IF_ERROR(CheckDevice(space->device));
  if (space->number == 0) {
    return {ErrorCode::kLimitExceeded, "there are " + std::to_string(kMostSpaces) +
                                           " spaces already: destroy one that is not needed"};
  }
  if (bytes == 0) {
    return {ErrorCode::kInvalidArgument, "a space has at least one byte"};
  }
  const StatusOr<void*> memory =
      job.front_end->memory->AllocateMemory(bytes, client::MemoryKind::kDevice, space->device);
  FERRY_RETURN_IF_ERROR(memory.status());
  space->segment.base = static_cast<std::byte*>(*memory);
  space->segment.size_bytes = bytes;
  return {};
}

Offer OfferOf(const Space& space, size_t bytes, const Status& made) {
  Offer offer{.bytes = bytes, .error = static_cast<int64_t>(made.code())};
  if (made.ok()) {
    offer.size_bytes = space.segment.size_bytes;
    offer.where = job.front_end->one_sided->Locate(space.segment.base, bytes);
  }
  return offer;
}

// Fails unless this is memory that other PEs can reach.
Status CheckPrograms(void* base, size_t bytes) {
  const shm::Location where = job.front_end->one_sided->Locate(base, bytes);
  if (where.region != 0) {
    return {};
  }
  const std::string what = std::to_string(bytes) + " bytes at " + AddressText(base);
  if (job.front_end->one_sided->Locate(base, 1).region != 0) {
    return {ErrorCode::kInvalidBuffer, what + " run past the end of their allocation"};
  }
  return {ErrorCode::kInvalidBuffer,
          what + (where.flags == 0
                      ? " are memory of this process alone: take memory of cuMemAlloc, hipMalloc, "
                        "zeMemAllocDevice, ferry_alloc or MPI_Alloc_mem"
                      : " are memory that their driver lets no other process map, as that of pools "
                        "and managed memory: take memory of cuMemAlloc, hipMalloc or "
                        "zeMemAllocDevice")};
}

// Finds the others' parts, and maps those of local PEs. `alignment`: what all addresses have by
// which this PE reaches parts.
Status FindParts(Space* space, const std::vector<Offer>& offers, uint64_t* alignment) {
  Segment& segment = space->segment;
  uintptr_t addresses = 0;  // joined bit by bit: the lowest bit that one of them has
  for (int pe = 0; pe < job.size; ++pe) {
    const Offer& offer = offers[static_cast<size_t>(pe)];
    segment.numbers.push_back(client::SegmentOf(offer.where));
    segment.first_offsets.push_back(offer.where.address);
    segment.is_by_stream |= offer.where.flags != 0;
    std::byte* base = pe == job.self ? segment.base : nullptr;
    if (pe != job.self && job.IsLocal(pe)) {
      bool is_by_stream = false;
      StatusOr<std::shared_ptr<std::byte>> mapped = job.front_end->peers->MapPeer(
          static_cast<uint32_t>(pe), offer.where, offer.size_bytes, &is_by_stream);
      if (!mapped.ok()) {
        return {mapped.status().code(), "this process cannot map the part of PE " +
                                            std::to_string(pe) + ": " + mapped.status().ToString()};
      }
      base = mapped->get();
      space->mapped.push_back(std::move(*mapped));
    }
    segment.shifts.push_back(base == nullptr ? kRemote : base - segment.base);
    addresses |= reinterpret_cast<uintptr_t>(base);
  }
  *alignment = addresses & (~addresses + 1);
  return {};
}

void FreePart(const char* call, Space* space) {
  if (space->segment.base == nullptr || space->segment.is_programs) {
    return;
  }
  const Status freed = job.front_end->memory->FreeMemory(space->segment.base);
  if (!freed.ok() && job.front_end->poison() == ErrorCode::kOk) {  // else the daemon has let go
    Fail(call, HeapName(space->number) + ": " + freed.ToString());
  }
}

// Tells the user of this PE's own error, before others, who learn of it, may end the job.
void TellOwn(const char* call, const Status& own) {
  if (!own.ok()) {
    Warn(call, own.message().empty() ? own.ToString() : own.message());
  }
}

// Returns true if no PE has an error. Else tells the user which PE has one, unless it is this one.
template <typename Told>
bool AreAllWell(const char* call, const std::vector<Told>& told, const Status& own) {
  for (int pe = 0; pe < job.size; ++pe) {
    if (told[static_cast<size_t>(pe)].error != 0) {
      if (own.ok()) {
        Warn(call, "PE " + std::to_string(pe) +
                       " has no such space, and says why; so this one has none, either");
      }
      return false;
    }
  }
  return true;
}

void CompareSizes(const char* call, size_t bytes, const std::vector<Offer>& offers) {
  for (int pe = 0; pe < job.size; ++pe) {
    const uint64_t theirs = offers[static_cast<size_t>(pe)].bytes;
    if (theirs != bytes) {
      Fail(call, "PE " + std::to_string(pe) + " asks for a space of " + std::to_string(theirs) +
                     " bytes, this one for " + std::to_string(bytes) +
                     ": all PEs must ask for the same");
    }
  }
}

// Makes a space of the PEs' parts. `own`: why this PE has no part, or kOk. There are two exchanges:
// no PE may free a part that another PE still maps. `alignment`: see Finding, of all PEs.
bool Make(const char* call, Space* space, size_t bytes, Status own, uint64_t* alignment) {
  const auto pes = static_cast<size_t>(job.size);
  Assembly& world = *WorldTeam()->assembly;
  TellOwn(call, own);
  const Offer offer = OfferOf(*space, bytes, own);
  std::vector<Offer> offers(pes);
  world.Gather(call, &offer, sizeof(offer), offers.data());
  CompareSizes(call, bytes, offers);
  if (!AreAllWell(call, offers, own)) {
    return false;
  }
  Finding finding;
  own = FindParts(space, offers, &finding.alignment);
  TellOwn(call, own);
  finding.error = static_cast<int64_t>(own.code());
  std::vector<Finding> findings(pes);
  world.Gather(call, &finding, sizeof(finding), findings.data());
  if (!AreAllWell(call, findings, own)) {
    space->mapped.clear();
    world.Sync(call);
    return false;
  }
  *alignment = finding.alignment;
  for (const Finding& each : findings) {
    *alignment = std::min(*alignment, each.alignment);
  }
  SlotOf(space->number)
      .store(&space->segment, std::memory_order_release);  // Pairs with FindSegment.
  return true;
}

Space& CheckSpace(const char* call, Space* space) {
  CheckRunning(call);
  if (space == nullptr) {
    Fail(call, "the space is SHMEMX_SPACE_INVALID");
  }
  std::lock_guard lock(spaces.mutex);
  const bool is_known = std::any_of(spaces.all.begin(), spaces.all.end(),
                                    [&](const Space& each) { return &each == space; });
  if (!is_known || space->number == 0) {
    Fail(call, is_known ? "the space was destroyed before"
                        : "this is no space that shmemx_space_create has returned");
  }
  return *space;
}

// Returns once all PEs are here, and destroy the same space.
void MeetToDestroy(const char* call, const Space& space) {
  std::vector<int> numbers(static_cast<size_t>(job.size));
  Quiet(call, DefaultContext());
  CheckCollective(call, *WorldTeam()->assembly, {});
  WorldTeam()->assembly->Gather(call, &space.number, sizeof(space.number), numbers.data());
  for (int pe = 0; pe < job.size; ++pe) {
    if (numbers[static_cast<size_t>(pe)] != space.number) {
      Fail(call, "PE " + std::to_string(pe) + " has passed " +
                     HeapName(numbers[static_cast<size_t>(pe)]) + ", this one " +
                     HeapName(space.number) + ": all PEs must pass the same");
    }
  }
}

}  // namespace

Space* SpaceCreate(const char* call, int device, size_t bytes) {
  CheckRunning(call);
  CheckCollective(call, *WorldTeam()->assembly, {.amount = bytes});
  const int number = FreeNumber();
  Space* space = nullptr;
  {
    std::lock_guard lock(spaces.mutex);
    space = &spaces.all.emplace_back(Space{
        .number = number, .device = device, .segment = {.name = HeapName(number), .heap = number}});
  }
  uint64_t alignment = 0;
  if (!Make(call, space, bytes, Allocate(space, bytes), &alignment)) {
    FreePart(call, space);
    std::lock_guard lock(spaces.mutex);
    spaces.all.pop_back();
    return nullptr;
  }
  OpenHeap(number, alignment);
  RefillTables(call);
  return space;
}

void HeapCreate(const char* call, void* base, size_t bytes, int kind) {
  if (job.is_running()) {
    Fail(call,
         "OpenSHMEM has begun already: name the memory before shmemx_heap_postinit, or before "
         "shmem_init");
  }
  if (named.bytes != 0) {
    Fail(call, std::to_string(named.bytes) + " bytes at " + AddressText(named.base) +
                   " were named before: a PE has one heap of its own memory");
  }
  if (base == nullptr || bytes == 0) {
    Fail(call, base == nullptr ? "the base is null" : "a heap has at least one byte");
  }
  if (kind < kExternalHeapZe || kind > kExternalHeapHost) {
    Fail(call, "the kind of memory " + std::to_string(kind) + " is none of SHMEMX_EXTERNAL_HEAP_*");
  }
  named = {base, bytes};
}

size_t ProgramsHeapBytes() { return named.bytes; }

void OpenProgramsHeap(const char* call) {
  if (named.bytes == 0) {
    return;
  }
  const Named its = named;
  named = {};
  Space* space = nullptr;
  {
    std::lock_guard lock(spaces.mutex);
    space = &spaces.all.emplace_back(
        Space{.number = FreeNumber(), .segment = {.name = "the heap of shmemx_heap_create"}});
  }
  space->segment.heap = space->number;
  space->segment.is_programs = true;
  space->segment.base = static_cast<std::byte*>(its.base);
  space->segment.size_bytes = its.bytes;
  uint64_t ignored = 0;
  if (!Make(call, space, its.bytes, CheckPrograms(its.base, its.bytes), &ignored)) {
    Fail(call, "without its heap the program cannot go on");
  }
}

void SpaceDestroy(const char* call, Space* space) {
  CheckRunning(call);
  if (space == nullptr) {
    return;
  }
  Space& its = CheckSpace(call, space);
  MeetToDestroy(call, its);
  SlotOf(its.number).store(nullptr, std::memory_order_release);
  ForgetPieces(its.number);
  RefillTables(call);
  its.mapped.clear();
  WorldTeam()->assembly->Sync(call);  // no PE maps this PE's part any more
  FreePart(call, &its);
  std::lock_guard lock(spaces.mutex);
  its.number = 0;
}

void* SpaceMalloc(const char* call, Space* space, size_t bytes, size_t alignment, bool zero) {
  return MallocIn(call, CheckSpace(call, space).number, bytes, alignment, zero);
}

void GetSpaceInfo(const char* call, Space* space, SpaceInfo* info) {
  const Space& its = CheckSpace(call, space);
  info->device = its.device;
  info->cpu_reach = !its.segment.is_by_stream;
  GetHeapInfoOf(its.number, &info->heap);
}

size_t CountOpenSpaces() {
  std::lock_guard lock(spaces.mutex);
  return static_cast<size_t>(std::count_if(
      spaces.all.begin(), spaces.all.end(),
      [](const Space& space) { return space.number != 0 && !space.segment.is_programs; }));
}

void UnmapSpaces() {
  for (Space& space : spaces.all) {
    space.mapped.clear();
  }
}

void ForgetSpaces() {
  for (Space& space : spaces.all) {
    if (space.number != 0) {
      SlotOf(space.number).store(nullptr, std::memory_order_release);
      FreePart("shmem_finalize", &space);
      space.number = 0;
    }
  }
}

}  // namespace ferry::shmem
