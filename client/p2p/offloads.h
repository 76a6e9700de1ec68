// Offloaded send buffers: a buffer that other ranks or the daemon read slowly, or not at all, has a
// bounce buffer in the rank's heap, and they read that instead. DCFA-MPI (Si and others), section
// IV-B4: reg_offload_mr, sync_offload_mr, dereg_offload_mr.
//
// Explicit (Register, Synchronize, Deregister): the application says when the bounce buffer is
// brought up to date, and any number of sends then read it. A send is redirected before anything
// else looks at its buffer, and is an ordinary send from the heap from then on. Automatic
// (TakeBounceBuffer, CopyIn): where the rank itself has to bring device memory to the host, each
// message has a bounce buffer of its own, filled when it starts.
//
// Calling thread: any. CopyIn and Synchronize block until the copy is done, and hold no lock
// meanwhile; Register and TakeBounceBuffer may block on the daemon once, while the heap is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "client/memory/memory.h"
#include "client/p2p/offload_table.h"
#include "client/p2p/request_pool.h"
#include "common/status.h"
#include "shm/counters.h"

namespace ferry::client {

class Offloads {
 public:
  // Messages of `min_bytes` or more get bounce buffers of their own, which are kept, even where the
  // message could do without (0: none do). `memory` and `requests` outlive this.
  Offloads(uint64_t min_bytes, Memory* memory, const RequestPool* requests,
           const shm::Statistics& statistics);

  // Errors of this and the next two: see ferry.h.
  StatusOr<OffloadHandle> Register(void* buffer, uint64_t size_bytes);
  // `size_bytes` may be kToEnd: all bytes from `offset` on.
  Status Synchronize(OffloadHandle handle, uint64_t offset, uint64_t size_bytes);
  Status Deregister(OffloadHandle handle);
  static constexpr uint64_t kToEnd = ~uint64_t{0};

  // Returns true if some buffer is registered. Where none is, no send needs to be redirected.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // Points `buffer` to its place in the bounce buffer if all of it lies in a registered buffer.
  void Redirect(void** buffer, uint64_t size_bytes) const;
  // kInvalidBuffer if a send of these bytes, after Redirect, would read some that were never
  // synchronised.
  Status CheckSynchronized(const void* buffer, uint64_t size_bytes) const;
  // kInvalidBuffer if some of this memory is registered.
  Status CheckFree(const void* memory, uint64_t size_bytes) const;

  // Returns true if messages may have bounce buffers of their own that they could do without.
  bool copies() const { return min_bytes_ != 0; }
  // Returns true if a message of this size is better sent from a bounce buffer than by ferryd's
  // pipeline, where it would be a single block and nothing would overlap.
  bool IsWorthBounceBuffer(uint64_t size_bytes, uint64_t one_block_bytes) const {
    return min_bytes_ != 0 && size_bytes >= min_bytes_ && size_bytes <= one_block_bytes;
  }
  // A heap block for the bounce buffer of device memory, or null; Memory::FreeBounceBuffer takes it
  // back. `must`: there is no other way. Otherwise half of the heap is left to the application.
  void* TakeBounceBuffer(uint64_t size_bytes, bool must);
  // Copies `source` into `bounce_buffer`.
  ErrorCode CopyIn(void* bounce_buffer, const void* source, uint64_t size_bytes);

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
