#include "client/triggered/device_rings.h"

#include <algorithm>
#include <bit>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/sleep.h"
#include "shm/atomic.h"
#include "shm/mpsc_ring.h"
#include "shm/wait_policy.h"

namespace ferry::client {
namespace {

constexpr uint32_t kMaxCompletions = 1 << 20;
constexpr char kEmulated[] = "host";     // the backend whose threads are those of CPUs
constexpr uint64_t kNoTickets[16] = {};  // the producers' words, on cache lines of their own

}  // namespace

Status DeviceRings::CheckSizes(int device, uint32_t capacity, uint32_t completions) const {
  const gpu::GpuBackend* const backend = parts_.memory->backend();
  if (backend == nullptr) {
    return {ErrorCode::kUnsupported, "ferry_ring_create: no GPU backend is in use"};
  }
  if (device < 0 || device >= backend->device_count()) {
    return {ErrorCode::kInvalidArgument, "ferry_ring_create: device " + std::to_string(device) +
                                             " of " + std::to_string(backend->device_count())};
  }
  if (!std::has_single_bit(capacity) || capacity < 2 || capacity > shm::kMaxRingSlots) {
    return {ErrorCode::kInvalidArgument, "ferry_ring_create: " + std::to_string(capacity) +
                                             " slots; it must be a power of two, from 2 to " +
                                             std::to_string(shm::kMaxRingSlots)};
  }
  if (completions > kMaxCompletions) {
    return {ErrorCode::kInvalidArgument, "ferry_ring_create: " + std::to_string(completions) +
                                             " completions; at most " +
                                             std::to_string(kMaxCompletions)};
  }
  return {};
}

StatusOr<RingHandle> DeviceRings::Make(int device, uint32_t capacity, uint32_t completions) {
  FERRY_RETURN_IF_ERROR(CheckSizes(device, capacity, completions));
  std::lock_guard changes(changes_);
  const auto free = std::find_if(places_.begin(), places_.end(),
                                 [](const Place& place) { return place.ring == nullptr; });
  if (free == places_.end()) {
    return Status(ErrorCode::kLimitExceeded, "ferry_ring_create: a rank has " +
                                                 std::to_string(shm::kMaxRings) + " rings at most");
  }
  const auto index = static_cast<uint32_t>(free - places_.begin());
  Place made;
  shm::Location where;
  if (Status status = Fill(&made, device, capacity, completions, &where); !status.ok()) {
    Free(made);
    return status;
  }
  {
    std::lock_guard lock(mutex_);
    made.uses = free->uses + 1;
    *free = made;
  }
  shm::RingWords& words = WordsOf(index);
  shm::StoreRelaxed(words.region, where.region);
  shm::StoreRelaxed(words.offset, where.address);
  shm::StoreRelaxed(words.capacity, capacity);
  Status status = Tell(index, true);
  if (status.ok() && shm::LoadRelaxed(words.error) != 0) {
    status = {static_cast<ErrorCode>(shm::LoadRelaxed(words.error)),
              "ferry_ring_create: ferryd does not serve the ring"};
  }
  if (!status.ok()) {
    if (status.code() != ErrorCode::kTimeout) {  // else the daemon may still take it up
      Forget(index);
    }
    return status;
  }
  return HandleOf(index);
}

Status DeviceRings::Fill(Place* place, int device, uint32_t capacity, uint32_t completions,
                         shm::Location* where) {
  const uint64_t slots_end = shm::MpscRing::SizeBytes(capacity);
  const uint64_t bytes = slots_end + uint64_t{completions} * sizeof(shm::RingCompletion);
  StatusOr<void*> block = parts_.memory->Allocate(bytes, MemoryKind::kPinned, device);
  FERRY_RETURN_IF_ERROR(block.status());
  auto* const ring = static_cast<shm::MpscRingLayout*>(*block);
  place->ring = ring;
  *where = parts_.memory->regions().Find(ring, bytes);
  ring->completions = completions;
  ring->region = where->region;
  ring->completions_offset = where->address + slots_end;
  gpu::GpuBackend* const backend = parts_.memory->backend();
  if (backend->name() != kEmulated) {
    StatusOr<void*> words = backend->AllocateDevice(device, sizeof(kNoTickets));
    FERRY_RETURN_IF_ERROR(words.status());
    place->producer_words = *words;
    FERRY_RETURN_IF_ERROR(parts_.memory->streams()->Copy(*words, kNoTickets, sizeof(kNoTickets)));
    ring->producer_words = reinterpret_cast<uintptr_t>(*words);
  }
  return shm::MpscRing::Initialize(ring, capacity);
}

void DeviceRings::Free(const Place& place) {
  if (place.producer_words != nullptr) {
    (void)parts_.memory->backend()->Free(place.producer_words);
  }
  if (place.ring != nullptr) {
    (void)parts_.memory->Free(place.ring);
  }
}

// Begins another life of the ring's words, and waits until the daemon has acted on it. A call after
// a time-out waits once more.
Status DeviceRings::Tell(uint32_t index, bool is_there) {
  shm::RingWords& words = WordsOf(index);
  uint32_t life = shm::LoadRelaxed(words.life);
  if ((life % 2 != 0) != is_there) {
    shm::StoreRelease(words.life, ++life);  // Pairs with Rings::Look.
  }
  parts_.ring_daemon();
  const uint64_t deadline_ns = MonotonicNs() + parts_.timeout_ns;
  shm::Waiter waiter{shm::WaitPolicy{}};
  GrowingSleep sleep;
  while (shm::LoadAcquire(words.life_seen) != life) {  // Pairs with the daemon's store.
    if (const ErrorCode poison = parts_.poison(); poison != ErrorCode::kOk) {
      return {poison, "the daemon serves this rank no more"};
    }
    if (MonotonicNs() > deadline_ns) {
      return {ErrorCode::kTimeout, "ferryd has not answered: look at its log, or ferryctl status"};
    }
    if (waiter.Idle()) {
      std::this_thread::sleep_for(sleep.Next());
    }
  }
  return {};
}

void DeviceRings::Forget(uint32_t index) {
  std::lock_guard lock(mutex_);
  Free(places_[index]);
  places_[index] = {nullptr, nullptr, places_[index].uses};
}

StatusOr<uint32_t> DeviceRings::Lookup(RingHandle handle) const {
  const uint64_t index = (handle & 0xffffffff) - 1;
  if (index >= places_.size() || places_[index].ring == nullptr || HandleOf(index) != handle) {
    return Status(ErrorCode::kInvalidArgument,
                  "the handle " + std::to_string(handle) + " names no ring, or one that is gone");
  }
  return static_cast<uint32_t>(index);
}

Status DeviceRings::Destroy(RingHandle handle) {
  std::lock_guard changes(changes_);
  uint32_t index = 0;
  {
    std::lock_guard lock(mutex_);
    StatusOr<uint32_t> found = Lookup(handle);
    FERRY_RETURN_IF_ERROR(found.status());
    index = *found;
  }
  Status status = Tell(index, false);
  if (status.code() == ErrorCode::kTimeout) {
    return status;  // the daemon may still look at it
  }
  Forget(index);
  return {};  // a rank that is served no more has no rings either
}

void DeviceRings::DestroyAll() {
  for (uint32_t index = 0; index < places_.size(); ++index) {
    if (places_[index].ring != nullptr) {
      (void)Destroy(HandleOf(index));
    }
  }
}

StatusOr<void*> DeviceRings::AddressOf(RingHandle handle) {
  std::lock_guard lock(mutex_);
  StatusOr<uint32_t> index = Lookup(handle);
  FERRY_RETURN_IF_ERROR(index.status());
  return static_cast<void*>(places_[*index].ring);
}

StatusOr<RingState> DeviceRings::StateOf(RingHandle handle) {
  std::lock_guard lock(mutex_);
  StatusOr<uint32_t> index = Lookup(handle);
  FERRY_RETURN_IF_ERROR(index.status());
  const shm::RingWords& words = WordsOf(*index);
  RingState state;
  state.error = static_cast<ErrorCode>(shm::LoadAcquire(places_[*index].ring->ended));
  state.errors = shm::LoadAcquire(words.errors);  // Pairs with Rings::Finish.
  state.requests = shm::LoadRelaxed(words.requests);
  if (state.errors != 0) {
    state.first_ticket = shm::LoadRelaxed(words.first_ticket);
    state.first_kind = shm::LoadRelaxed(words.first_kind);
    state.first_error = static_cast<ErrorCode>(shm::LoadRelaxed(words.first_error));
  }
  return state;
}

void DeviceRings::EndAll(ErrorCode error) {
  std::lock_guard lock(mutex_);
  for (const Place& place : places_) {
    if (place.ring != nullptr) {
      // Pairs with ferry_device_ring_wait.
      shm::StoreRelease(place.ring->ended, static_cast<uint64_t>(error));
    }
  }
}

}  // namespace ferry::client
