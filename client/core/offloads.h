// Offloaded send buffers: a buffer that others read slowly, or not at all, has a shadow in the
// rank's heap, which they read instead. DCFA-MPI (Si and others), section IV-B4: reg_offload_mr,
// sync_offload_mr, dereg_offload_mr.
//
// Explicit (Register, Synchronize, Deregister): the application says when the shadow is brought up
// to date, and any number of sends then read it. A send is redirected before anything else looks at
// its buffer: from there on it is a send from the heap.
// Automatic (TakeShadow, CopyIn): where the rank itself has to bring device memory to the host, the
// message has a shadow of its own, brought up to date when it starts.
//
// Calling thread: any. CopyIn and Synchronize block until the copy is done, and hold no lock
// meanwhile; Register and TakeShadow may block on the daemon once, while the heap is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "client/core/memory.h"
#include "client/core/offload_table.h"
#include "client/core/request_pool.h"
#include "common/status.h"
#include "shm/counters.h"

namespace ferry::client {

class Offloads {
 public:
  // Messages have shadows of their own from `min_bytes` on, which are kept, also where they could
  // do without (0: none). `memory` and `requests` outlive this.
  Offloads(uint64_t min_bytes, Memory* memory, const RequestPool* requests,
           const shm::Statistics& statistics);

  // Errors: ferry.h, as of the next two.
  StatusOr<OffloadHandle> Register(void* buffer, uint64_t size_bytes);
  // kToEnd: as many as there are behind `offset`.
  Status Synchronize(OffloadHandle handle, uint64_t offset, uint64_t size_bytes);
  Status Deregister(OffloadHandle handle);
  static constexpr uint64_t kToEnd = ~uint64_t{0};

  // Whether some buffer is registered. Where none is, no send needs to be redirected.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // Makes `buffer` the place in its shadow if all of it lies in a registered buffer.
  void Redirect(void** buffer, uint64_t size_bytes) const;
  // kInvalidBuffer if a send of these bytes, which Redirect has looked at, would read some that
  // were never synchronised.
  Status CheckSynchronized(const void* buffer, uint64_t size_bytes) const;
  // kInvalidBuffer if some of this memory is registered.
  Status CheckFree(const void* memory, uint64_t size_bytes) const;

  // Whether a message of this size is better sent from a shadow than by ferryd's pipeline, for
  // which it would be one block: nothing would overlap.
  bool IsWorthShadow(uint64_t size_bytes, uint64_t one_block_bytes) const {
    return min_bytes_ != 0 && size_bytes >= min_bytes_ && size_bytes <= one_block_bytes;
  }
  // A block of the heap to stand in for device memory; Memory::FreeBounce takes it back. `must`:
  // there is no other way; else half of the heap is left to the application.
  StatusOr<void*> TakeShadow(uint64_t size_bytes, bool must);
  // Brings `shadow` up to date.
  ErrorCode CopyIn(void* shadow, const void* source, uint64_t size_bytes);

 private:
  StatusOr<OffloadedBuffer*> Begin(OffloadHandle handle, uint64_t offset, uint64_t* size_bytes);

  const uint64_t min_bytes_;
  Memory* const memory_;
  const RequestPool* const requests_;
  shm::Statistics statistics_;
  mutable std::mutex mutex_;
  OffloadTable table_;
  std::atomic<bool> any_{false};
};

}  // namespace ferry::client
