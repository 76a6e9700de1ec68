// The rings through which threads of this rank's GPUs send requests to the daemon
// (docs/device_ring.md): where they lie, and how rank and daemon agree on them.
//
// A ring is a block of the heap that the GPU backend has registered; the rank offers it in its
// session, and the daemon says whether it serves it. From then on the two communicate through the
// ring only. The words that only producers use lie in device memory, unless the device is emulated:
// atomic operations across the bus are slow, and not all devices support them.
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

#include "client/memory/memory.h"
#include "common/status.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/layout/session_layout.h"

namespace ferry::client {

// Names a ring: its place + 1 and, above 32 bits, how often the place had been taken before. 0 =
// none.
using RingHandle = uint64_t;

// The state of a ring, as the daemon reports it.
struct RingState {
  ErrorCode error = ErrorCode::kOk;  // why it is not served any more
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t first_ticket = 0;  // the first of these
  uint32_t first_kind = 0;
  ErrorCode first_error = ErrorCode::kOk;
};

class DeviceRings {
 public:
  // All outlive it.
  struct Parts {
    Memory* memory;
    shm::SessionLayout* session;
    std::function<void()> ring_daemon;  // call it after `rings` of the session has changed
    std::function<ErrorCode()> poison;
    uint64_t timeout_ns;
  };
  explicit DeviceRings(Parts parts) : parts_(std::move(parts)) {}
  DeviceRings(const DeviceRings&) = delete;
  DeviceRings& operator=(const DeviceRings&) = delete;

  // kInvalidArgument, kUnsupported (no GPU backend), kLimitExceeded, kOutOfMemory, kTimeout, and
  // the errors of the backend or the daemon.
  StatusOr<RingHandle> Make(int device, uint32_t capacity, uint32_t completions);
  // Destroys a ring, after all posted requests are carried out. kInvalidArgument: the handle names
  // no ring.
  Status Destroy(RingHandle handle);
  // Destroys all rings, before the rank leaves.
  void DestroyAll();
  StatusOr<void*> AddressOf(RingHandle handle);
  StatusOr<RingState> StateOf(RingHandle handle);
  // Ends all rings: devices that wait stop with this error. Any thread.
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
  std::mutex changes_;        // one ring changes at a time; held while waiting for the daemon
  mutable std::mutex mutex_;  // guards places_
  std::array<Place, shm::kMaxRings> places_;
};

}  // namespace ferry::client
