#include "shmem/device/devices.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/thread.h"
#include "ferry/device/shmem/table.h"
#include "include/ferry/ferry.h"
#include "shm/atomic.h"
#include "shm/layout/mpsc_ring_layout.h"
#include "shmem/base/cutovers.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"
#include "shmem/base/operations.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {
namespace {

static_assert(SHMEMX_DEVICE_ERR_ARGUMENT == FERRY_ERR_ARGUMENT);
static_assert(SHMEMX_DEVICE_ERR_PEER_DIED == FERRY_ERR_PEER_DIED);
static_assert(SHMEMX_DEVICE_ERR_DAEMON_DIED == FERRY_ERR_DAEMON_DIED);
static_assert(SHMEMX_DEVICE_ERR_NOT_FOUND == FERRY_ERR_NOT_FOUND);
static_assert(SHMEMX_DEVICE_ERR_UNSUPPORTED == FERRY_ERR_UNSUPPORTED);
static_assert(SHMEMX_DEVICE_ERR_BUFFER == FERRY_ERR_BUFFER);
// All languages of kernels lay them out alike.
static_assert(sizeof(ferry_shmem_way) == 80 && sizeof(ferry_shmem_table) == 448);
static_assert(sizeof(ferry_shmem_area) == 256 && sizeof(ferry_shmem_member) == 128);
static_assert(sizeof(ferry_shmem_asks) == 256 + FERRY_SHMEM_PLACES * 16);
// The words of a ring that a table has a copy of.
static_assert(offsetof(shm::MpscRingLayout, capacity) == 32 * sizeof(uint64_t) &&
              offsetof(shm::MpscRingLayout, producer_words) == 35 * sizeof(uint64_t));

// How often the others are looked at: as often as a host that has waited for long does.
constexpr std::chrono::milliseconds kLookAgain(5);

// As many requests of one table may be on their way to ferryd.
constexpr uint32_t kRingSlots = 1024;
// Where ferry_shmem_asks may begin.
constexpr uint64_t kAsksAlignment = 128;

struct Table {
  Team* team;
  int device = 0;
  std::vector<int> pes;               // of the world
  uint64_t area = 0;                  // offset in the region; 0: none
  void* memory = nullptr;             // for kernels
  std::vector<std::byte> image = {};  // what lies there: the head and the ways
  bool has_atomics = false;
  Cutovers cutovers = NoCutovers();
  uint64_t scratch = 0;                        // offset in the region; 0: there is no ring
  client::StreamQueues::DeviceRing ring = {};  // by which they ask ferryd

  // Returns true if kernels need ferryd for operations that loads and stores cannot do, or do
  // badly.
  bool MustAsk() const { return !job.AreLocal(pes) || !has_atomics || cutovers != NoCutovers(); }
};

struct Devices {
  std::mutex mutex;
  std::vector<std::unique_ptr<Table>> tables;
  std::thread watch;
  std::condition_variable changed;  // `is_ending`, or there are tables
  bool is_ending = false;
};
Devices& devices = *new Devices();

// Of the copies by which kernels compute what they do not reach: a part of each PE's elements.
size_t ScratchBytes(size_t pes) { return std::max(size_t{256} << 10, pes * 1024); }

size_t AreaBytes(size_t pes) { return sizeof(ferry_shmem_area) + pes * sizeof(ferry_shmem_member); }

ferry_shmem_area& AreaOf(const Table& table) {
  return *reinterpret_cast<ferry_shmem_area*>(job.region->base() + table.area);
}

// ---- The watch ----------------------------------------------------------------------------------

void LookAtOthers(const Table& table) {
  ferry_shmem_area& area = AreaOf(table);
  auto* const members = reinterpret_cast<ferry_shmem_member*>(&area + 1);
  for (size_t i = 0; i < table.pes.size(); ++i) {
    const int pe = table.pes[i];
    const ErrorCode state = pe == job.self ? ErrorCode::kOk : StateOf(pe);
    if (state == ErrorCode::kOk) {
      continue;
    }
    // Pair with ferry_shmem_await_member, and with the waits of waits.h.
    shm::StoreRelease(members[i].state, static_cast<uint64_t>(state));
    if (state != ErrorCode::kNotFound) {  // who leaves may have stored what a wait is for
      shm::StoreRelease(area.error, static_cast<uint64_t>(state));
    }
  }
}

void Watch() {
  std::unique_lock lock(devices.mutex);
  while (!devices.changed.wait_for(lock, kLookAgain, [] { return devices.is_ending; })) {
    devices.changed.wait(lock, [] { return devices.is_ending || !devices.tables.empty(); });
    for (const std::unique_ptr<Table>& table : devices.tables) {
      LookAtOthers(*table);
    }
  }
}

// ---- Making a table -----------------------------------------------------------------------------

Status LetReach(int pe) {
  Status status = job.front_end->memory->LetDevicesReach(job.region->base_of(pe));
  if (status.ok()) {
    return status;
  }
  return {status.code(),
          "the device cannot reach the " + std::to_string(job.heap.size_bytes) + " bytes of PE " +
              std::to_string(pe) + "'s symmetric heap (" + status.ToString() +
              "): all of it is pinned, so set SHMEM_SYMMETRIC_SIZE to what the program needs"};
}

// Kernels that are functions of this process may not touch device memory behind a guarded link.
client::MemoryKind KindForTables() {
  return job.front_end->options().host_link_guard ? client::MemoryKind::kPinned
                                                  : client::MemoryKind::kDevice;
}

uint64_t BytesOf(const Table& table) {
  const uint64_t constant = sizeof(ferry_shmem_table) + table.pes.size() * sizeof(ferry_shmem_way);
  return table.ring.handle == 0 ? constant : constant + kAsksAlignment + sizeof(ferry_shmem_asks);
}

Status MakeRing(Table* table, int device) {
  StatusOr<client::StreamQueues::DeviceRing> ring =
      job.front_end->queues->MakeRing(device, kRingSlots, FERRY_SHMEM_PLACES);
  if (!ring.ok()) {
    return {ring.status().code(),
            "kernels would have no ring by which to ask ferryd for what stores do not do (" +
                ring.status().ToString() + ")"};
  }
  table->ring = *ring;
  return {};
}

// Makes the parts that this PE needs no other for: its own area, a ring if need be, and memory for
// the table.
Status Begin(Table* table, int device) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  const StatusOr<gpu::DeviceInfo> info = job.front_end->memory->DescribeDevice(device);
  FERRY_RETURN_IF_ERROR(info.status());
  if (!info->host_words) {
    return {ErrorCode::kUnsupported,
            "kernels of the device " + std::to_string(device) + " (" + info->name +
                ") do not see what CPUs store while they run, so they could not wait for PEs"};
  }
  table->has_atomics = info->host_atomics;
  StatusOr<Cutovers> cutovers =
      ParseCutovers(job.front_end->options().shmem_cutovers, "FERRY_SHMEM_CUTOVERS");
  FERRY_RETURN_IF_ERROR(cutovers.status());
  table->cutovers = *cutovers;
  for (const int pe : table->pes) {
    if (job.IsLocal(pe)) {
      FERRY_RETURN_IF_ERROR(LetReach(pe));
    }
  }
  const bool needs_scratch = table->MustAsk();
  table->area = job.region->AllocateSystem(AreaBytes(table->pes.size()));
  table->scratch = needs_scratch ? job.region->AllocateSystem(ScratchBytes(table->pes.size())) : 0;
  if (table->area == 0 || (needs_scratch && table->scratch == 0)) {
    return {ErrorCode::kLimitExceeded,
            "there are too many tables and teams: release what is not needed"};
  }
  if (table->MustAsk()) {
    FERRY_RETURN_IF_ERROR(MakeRing(table, device));
  }
  StatusOr<void*> memory =
      job.front_end->memory->AllocateMemory(BytesOf(*table), KindForTables(), device);
  FERRY_RETURN_IF_ERROR(memory.status());
  table->memory = *memory;
  return {};
}

// Blocks until all that was asked by it is over.
void FreeRing(Table* table) {
  if (table->ring.handle != 0) {
    (void)job.front_end->queues->FreeRing(
        table->ring.handle);  // a daemon that does not answer is told of
    table->ring = {};
  }
}

void Free(Table* table) {
  FreeRing(table);
  if (table->memory != nullptr) {
    (void)job.front_end->memory->FreeMemory(table->memory);
  }
  if (table->area != 0) {
    job.region->FreeSystem(table->area, AreaBytes(table->pes.size()));
  }
  if (table->scratch != 0) {
    job.region->FreeSystem(table->scratch, ScratchBytes(table->pes.size()));
  }
}

// The data that each PE of the team tells the others.
struct Offer {
  uint64_t area;
  int64_t error;  // ErrorCode
};

// Returns the address at which kernels of the device find PE `pe`'s part of a space; 0: they do not
// reach it.
uint64_t AddressForKernels(const Segment& space, int pe, int device) {
  const ptrdiff_t shift = space.shifts[static_cast<size_t>(pe)];
  std::byte* const there = shift == kRemote ? nullptr : space.base + shift;
  return there != nullptr && job.front_end->memory->LetKernelsReach(device, there).ok()
             ? reinterpret_cast<uintptr_t>(there)
             : 0;
}

uint64_t OffsetOf(const Segment& space, int pe) {
  return space.first_offsets[static_cast<size_t>(pe)];
}

// Returns ferryd's number for PE `pe`'s part; 0: a kernel cannot ask for it, since a table has one
// offset for all PEs. Only memory of the program's own begins at different offsets.
uint32_t SegmentForKernels(const Segment& space, int pe) {
  return OffsetOf(space, pe) == OffsetOf(space, job.self) ? space.numbers[static_cast<size_t>(pe)]
                                                          : 0;
}

// Puts the spaces that there are into the table's image.
void SetSpaces(Table* table) {
  auto* const head = reinterpret_cast<ferry_shmem_table*>(table->image.data());
  auto* const ways = reinterpret_cast<ferry_shmem_way*>(head + 1);
  for (size_t i = 0; i < kMostSpaces; ++i) {
    const size_t heap = i + 1;
    const Segment* const space = job.spaces[i].load(std::memory_order_acquire);
    head->heap_bytes[heap] = space == nullptr ? 0 : space->size_bytes;
    head->heap_bases[heap] = space == nullptr ? 0 : reinterpret_cast<uintptr_t>(space->base);
    head->heap_offsets[heap] = space == nullptr ? 0 : OffsetOf(*space, job.self);
    for (size_t j = 0; j < table->pes.size(); ++j) {
      const int pe = table->pes[j];
      ways[j].heaps[heap] = space == nullptr ? 0 : AddressForKernels(*space, pe, table->device);
      ways[j].segments[heap] = space == nullptr ? 0 : SegmentForKernels(*space, pe);
    }
  }
}

// Copies a part of the image to the device.
void CopyImage(const char* call, const Table& table, size_t offset, size_t bytes) {
  const Status copied = job.front_end->memory->Copy(static_cast<std::byte*>(table.memory) + offset,
                                                    table.image.data() + offset, bytes);
  if (!copied.ok()) {
    Fail(call, "the table cannot be copied to the device: " + copied.ToString());
  }
}

// Writes the table, now that all areas are known.
void Fill(const char* call, Table* table, const std::vector<Offer>& offers) {
  ferry_shmem_table head{};
  head.version = FERRY_SHMEM_TABLE_VERSION;
  head.pe = static_cast<uint32_t>(table->team->self);
  head.pe_count = static_cast<uint32_t>(table->pes.size());
  head.is_one_node = job.AreLocal(table->pes) ? 1 : 0;
  head.heap_bytes[0] = job.heap.size_bytes;
  head.heap_offsets[0] = kHeapOffset;
  head.heap_bases[0] = reinterpret_cast<uintptr_t>(job.heap.base);
  head.has_atomics = table->has_atomics ? 1 : 0;
  static_assert(sizeof(head.cutovers) == sizeof(table->cutovers));
  std::memcpy(head.cutovers, table->cutovers.data(), sizeof(head.cutovers));
  if (table->scratch != 0) {
    head.scratch = reinterpret_cast<uintptr_t>(job.region->base() + table->scratch);
    head.scratch_bytes = ScratchBytes(table->pes.size());
  }
  if (table->ring.handle != 0) {
    head.ring = reinterpret_cast<uintptr_t>(table->ring.address);
    std::memcpy(head.ring_words,
                static_cast<const std::byte*>(table->ring.address) +
                    offsetof(shm::MpscRingLayout, capacity),
                sizeof(head.ring_words));
  }
  table->image.assign(BytesOf(*table), {});  // zeros are the first state of ferry_shmem_asks
  std::memcpy(table->image.data(), &head, sizeof(head));
  for (size_t i = 0; i < offers.size(); ++i) {
    const int pe = table->pes[i];
    ferry_shmem_way way{};
    way.rank = static_cast<uint32_t>(pe);
    way.segments[0] = job.region->numbers()[static_cast<size_t>(pe)];
    way.area_offset = offers[i].area;
    if (job.IsLocal(pe)) {
      const auto base = reinterpret_cast<uintptr_t>(job.region->base_of(pe));
      way.heaps[0] = base + kHeapOffset;
      way.area = base + offers[i].area;
    }
    std::memcpy(table->image.data() + sizeof(head) + i * sizeof(way), &way, sizeof(way));
  }
  SetSpaces(table);
  CopyImage(call, *table, 0, table->image.size());
  table->image.resize(sizeof(head) + offers.size() * sizeof(ferry_shmem_way));
  table->image.shrink_to_fit();
}

void Enter(const char* call, std::unique_ptr<Table> table) {
  std::lock_guard lock(devices.mutex);
  devices.tables.push_back(std::move(table));
  if (!devices.watch.joinable()) {
    StatusOr<std::thread> started =
        StartThread("ferry-shmem-pes", "that tells kernels of PEs that have died", Watch);
    if (!started.ok()) {
      Fail(call, started.status().ToString());
    }
    devices.watch = std::move(*started);
  }
  devices.changed.notify_all();
}

// The table at this address, taken out of the list; null: there is none.
std::unique_ptr<Table> Take(const void* memory) {
  std::lock_guard lock(devices.mutex);
  const auto found = std::find_if(devices.tables.begin(), devices.tables.end(),
                                  [&](const auto& table) { return table->memory == memory; });
  if (found == devices.tables.end()) {
    return nullptr;
  }
  std::unique_ptr<Table> taken = std::move(*found);
  devices.tables.erase(found);
  return taken;
}

}  // namespace

Status CheckDevice(int device) {
  const int count = job.front_end->memory->DeviceCount();
  if (count == 0) {
    return {ErrorCode::kUnsupported,
            "no GPU backend is in use: see the option gpu_backend (FERRY_GPU_BACKEND); \"host\" "
            "emulates devices"};
  }
  if (device < 0 || device >= count) {
    return {ErrorCode::kInvalidArgument, "the device " + std::to_string(device) +
                                             " is not between 0 and " + std::to_string(count - 1)};
  }
  return {};
}

void RefillTables(const char* call) {
  std::lock_guard lock(devices.mutex);
  for (const std::unique_ptr<Table>& table : devices.tables) {
    SetSpaces(table.get());
    constexpr size_t kBegin = offsetof(ferry_shmem_table, heap_bytes);
    constexpr size_t kEnd = offsetof(ferry_shmem_table, ring);
    CopyImage(call, *table, kBegin, kEnd - kBegin);
    CopyImage(call, *table, sizeof(ferry_shmem_table), table->pes.size() * sizeof(ferry_shmem_way));
  }
}

int DeviceCount(const char* call) {
  CheckRunning(call);
  return job.front_end->memory->DeviceCount();
}

void* DevicePrepare(const char* call, Team* team, int device) {
  CheckRunning(call);
  const Team& its = CheckTeam(call, team);
  auto table = std::make_unique<Table>();
  table->team = team;
  table->device = device;
  table->pes = its.pes;
  const Status begun = Begin(table.get(), device);
  const Offer own{table->area, static_cast<int64_t>(begun.code())};
  std::vector<Offer> offers(table->pes.size());
  CheckCollective(call, *its.assembly, {});
  its.assembly->Gather(call, &own, sizeof(own), offers.data());
  for (size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].error != 0) {
      Warn(call, begun.ok() ? "PE " + std::to_string(table->pes[i]) +
                                  " has no table, and says why; so this one has none, either"
                            : begun.message());
      Free(table.get());
      return nullptr;
    }
  }
  Fill(call, table.get(), offers);
  void* const memory = table->memory;
  Enter(call, std::move(table));
  return memory;
}

void DeviceRelease(const char* call, void* memory) {
  CheckRunning(call);
  if (memory == nullptr) {
    return;
  }
  std::unique_ptr<Table> table = Take(memory);
  if (table == nullptr) {
    Fail(call, AddressText(memory) +
                   " is no table that shmemx_device_prepare has returned: was it released before?");
  }
  const Team& team = CheckTeam(call, table->team);
  FreeRing(table.get());
  team.assembly->Sync(call);  // then no kernel, nor ferryd for one, stores into the area
  Free(table.get());
}

void CompleteDevices() {
  std::lock_guard lock(devices.mutex);
  for (const std::unique_ptr<Table>& table : devices.tables) {
    FreeRing(table.get());
  }
}

void EndDeviceWatch() {
  if (!devices.watch.joinable()) {
    return;
  }
  {
    std::lock_guard lock(devices.mutex);
    devices.is_ending = true;
  }
  devices.changed.notify_all();
  devices.watch.join();
  devices.is_ending = false;
}

void ForgetDevices() {
  EndDeviceWatch();
  for (const std::unique_ptr<Table>& table : devices.tables) {
    Free(table.get());
  }
  devices.tables.clear();
}

}  // namespace ferry::shmem
