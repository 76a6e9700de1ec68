// The ranks of the node, for front ends (front_end.h): how they access each other's memory without
// messages, and how a thread waits for actions of other ranks. `rank` lives on this node where
// nothing else is said.
//
// Calling thread: any that the thread level allows; after SetThreads(true), any. Functions that
// block say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/api/message.h"
#include "common/error_code.h"
#include "common/process_memory.h"
#include "common/status.h"
#include "shm/element_lock.h"
#include "shm/layout/descriptor.h"

namespace ferry::client {

enum class CopyDirection : uint8_t { kFromPeer, kToPeer };

class NodePeers {
 public:
  // Allows any thread to call, at the same time as others, from now on; false: undoes that, and
  // only one thread calls at a time, at the old cost, unless the program itself asked ferry_init
  // for several threads. Call it while no other call is under way. While it is allowed, messages
  // cost a few nanoseconds more.
  virtual void SetThreads(bool allowed) = 0;
  // Makes one round of progress. True: there was something to do.
  virtual bool Poll() = 0;
  // Makes progress until `done(argument)` returns true, which it calls after each change; sleeps
  // when nothing happens for a while. Also returns once the rank is poisoned, and soon after
  // `end_ns` (MonotonicNs) in any case. Blocks. `peer`: the rank it mainly waits for, which decides
  // how it waits. Waiting for several requests this way leaves none of them to ferryd's worker in
  // between.
  virtual void WaitFor(bool (*done)(void*), void* argument, int32_t peer = kAny,
                       uint64_t end_ns = UINT64_MAX) = 0;
  // Makes the WaitFor calls of this rank's other threads call `done` again.
  virtual void WakeThreads() = 0;
  // Lets ranks of other nodes reach memory of the program's own, until Unexpose: by direct links to
  // this rank alone, whose thread or library serves them from now on. The serving thread holds
  // `lock` while it changes elements there; the lock outlives the exposure. Returns the segment, of
  // which one-sided operations name bytes by offsets from `base`; 0: the rank gets no direct links.
  // Call Unexpose once no operation uses the segment any more. Expose and Unexpose wait until each
  // of the rank's other threads has finished its current step.
  virtual uint32_t Expose(void* base, uint64_t size_bytes, shm::ElementLock* lock) = 0;
  virtual void Unexpose(uint32_t segment) = 0;
  // Copies between this rank's memory and another's. The owner has located its memory (Locate) and
  // keeps it in place meanwhile. Blocks while it copies. kUnsupported: the kernel denies this rank
  // that memory.
  virtual ErrorCode CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                                 uint64_t size_bytes) = 0;
  virtual ErrorCode CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                               uint64_t size_bytes) = 0;
  // Copies several blocks from another rank, in few system calls. That rank's blocks are named by
  // its own addresses and lie in memory that AllocateMemory has not returned; this rank's blocks
  // lie in memory that CPUs reach.
  ErrorCode CopyEachFromPeer(uint32_t rank, std::span<const ProcessCopy> copies) {
    return CopyEach(rank, CopyDirection::kFromPeer, copies);
  }
  ErrorCode CopyEachToPeer(uint32_t rank, std::span<const ProcessCopy> copies) {
    return CopyEach(rank, CopyDirection::kToPeer, copies);
  }
  virtual ErrorCode CopyEach(uint32_t rank, CopyDirection direction,
                             std::span<const ProcessCopy> copies) = 0;
  // Returns true if this rank can copy that rank's private memory, which AllocateMemory has not
  // returned.
  virtual bool IsPrivateMemoryReachable(uint32_t rank) const = 0;
  // Maps memory of another rank that its AllocateMemory returned, or that it shares, for as long as
  // the pointer lives. Sets *is_by_stream if only streams reach the memory, so that Copy,
  // CopyStrided and kernels alone may use it; kInvalidBuffer for such memory if `is_by_stream` is
  // null.
  virtual StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank, const shm::Location& where,
                                                       uint64_t size_bytes,
                                                       bool* is_by_stream = nullptr) = 0;
  // kOk, or why messages with that rank fail: it has died, or this one is poisoned.
  virtual ErrorCode PeerState(uint32_t rank) const = 0;
  // Makes that rank's WaitFor call `done` again, if it sleeps there. First store what `done` reads
  // (shm/wake.h).
  virtual void WakePeer(uint32_t rank) = 0;
  // Rests in a wait for a change of this rank's memory: makes progress, then sleeps until a message
  // comes for this rank, or an operation from another node, or a signal, has changed its memory
  // since this thread's last Rest, but at most `longest_ns`. Plain stores end no Rest. Blocks.
  virtual void Rest(uint64_t longest_ns) = 0;
  // Returns the code with a sentence that says what went wrong and what to do.
  virtual Status Explain(ErrorCode error) const = 0;

 protected:
  ~NodePeers() = default;
};

}  // namespace ferry::client
