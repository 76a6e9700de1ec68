// The rings by which threads of this rank's GPUs ask the daemon for something
// (docs/device_ring.md): where they lie, and how rank and daemon agree on them.
//
// A ring is a block of the heap that the GPU backend has registered; the rank offers it in its
// session, the daemon says whether it serves it. From then on the two meet in the ring only. The
// words that only producers use lie in memory of the device, unless that is emulated: atomic
// operations across the bus are slow, and not all devices can do them.
//
// Calling thread: any; Make and Destroy one after the other, blocking on the daemon for as long as
// it takes to turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "client/core/memory.h"
#include "common/status.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/layout/session_layout.h"

namespace ferry::client {

// Names a ring: its place + 1, and above 32 bits how often that had been taken before. 0 = none.
using RingHandle = uint64_t;

// What the daemon says of a ring.
struct RingState {
  ErrorCode error = ErrorCode::kOk;  // why it is not served any more
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t first_ticket = 0;  // of these, the first
  uint32_t first_kind = 0;
  ErrorCode first_error = ErrorCode::kOk;
};

class DeviceRings {
 public:
  // All outlive it.
  struct Parts {
    Memory* memory;
    shm::SessionLayout* session;
    std::function<void()> ring_daemon;  // after `rings` of the session has changed
    std::function<ErrorCode()> poison;
    uint64_t timeout_ns;
  };
  explicit DeviceRings(Parts parts) : parts_(std::move(parts)) {}
  DeviceRings(const DeviceRings&) = delete;
  DeviceRings& operator=(const DeviceRings&) = delete;

  // kInvalidArgument, kUnsupported (no GPU backend), kLimitExceeded, kOutOfMemory, kTimeout, and
  // what the backend or the daemon says.
  StatusOr<RingHandle> Make(int device, uint32_t capacity, uint32_t completions);
  // What was posted is carried out first. kInvalidArgument: the handle names no ring.
  Status Destroy(RingHandle handle);
  // All, before the rank leaves.
  void DestroyAll();
  StatusOr<void*> AddressOf(RingHandle handle);
  StatusOr<RingState> StateOf(RingHandle handle);
  // Any thread: devices that wait stop, with that.
  void EndAll(ErrorCode error);

 private:
  struct Place {
    shm::MpscRingLayout* ring = nullptr;  // null: free
    void* producer_words = nullptr;       // memory of the device; null: they are in the ring
    uint32_t uses = 0;
  };

  RingHandle HandleOf(uint32_t index) const {
    return uint64_t{places_[index].uses} << 32 | (index + 1);
  }
  StatusOr<uint32_t> Lookup(RingHandle handle) const;
  Status CheckSizes(int device, uint32_t capacity, uint32_t completions) const;
  shm::RingWords& WordsOf(uint32_t index) { return parts_.session->rings[index]; }
  Status Fill(Place* place, int device, uint32_t capacity, uint32_t completions,
              shm::Location* where);
  Status Tell(uint32_t index, bool is_there);
  void Forget(uint32_t index);
  void Free(const Place& place);

  Parts parts_;
  std::mutex changes_;        // of one ring at a time, while the daemon is waited for
  mutable std::mutex mutex_;  // of places_
  std::array<Place, shm::kMaxRings> places_;
};

}  // namespace ferry::client
