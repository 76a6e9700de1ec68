// Streams and events: queues of operations that a device runs in order, and marks in them.
//
// Every call is thread-safe. "Enqueues" means that the call returns before the operation runs; its
// memory must stay valid until it has. A stream or event is owned by the caller and must be
// destroyed before the backend that made it. After fork(), calls in the child return kForked.
//
// Failure. The first operation that fails poisons its stream: operations behind it may be skipped,
// further calls return its error, and so do events recorded behind it. A stream that waits for such
// an event is poisoned in turn. So a failure reaches all waiting threads and streams, and none of
// them waits for ever.
#pragma once

#include <cstdint>
#include <functional>

#include "common/status.h"
#include "gpu_backends/api/reduction.h"
#include "gpu_backends/api/spread_copy.h"
#include "gpu_backends/api/strided_copy.h"

namespace ferry::shm {
struct PairLayout;
}

namespace ferry::gpu {

// A mark in a stream. An event that was never recorded counts as complete.
class Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // kOk once everything before the last record has run, kWouldBlock until then, or the error that
  // poisoned the stream; kCancelled if the stream was destroyed first. Does not block.
  virtual Status Query() = 0;
  // Blocks until Query would not say kWouldBlock, and returns what it then says.
  virtual Status Synchronize() = 0;

 protected:
  Event() = default;
};

enum class WaitCondition : uint8_t {
  kGreaterOrEqual,  // unsigned; keep words below 2^63, where the vendors' comparisons agree
  kEqual,           // may be missed if the word moves on: use it only on words that then stay
};

// The caller's knowledge of a copy's ends: which of them are device memory. The others are looked
// up, and a failure of the vendor in that is not taken to mean that they are ordinary memory.
struct DeviceEnds {
  bool destination = false;
  bool source = false;
  // The devices of such ends; -1: it is looked up.
  int destination_device = -1;
  int source_device = -1;
};

// The bytes of one message of a matched pair whose ends share a node
// (docs/stream_triggered.md). The blocks of both ends lie in host memory that several processes map
// (shm/layout/pair_layout.h); shm/pair_move.h defines how the ends use them, by 64-bit atomic
// operations that CPUs and all devices of the node see.
struct MatchedMove {
  void* destination = nullptr;
  const void* source = nullptr;
  uint64_t size_bytes = 0;
  DeviceEnds ends;
  // The blocks of this end and of the other, and the life of the other's block that is meant.
  shm::PairLayout* own = nullptr;
  shm::PairLayout* other = nullptr;
  uint32_t other_life = 0;
  bool is_send = false;
  // The ends meet, and the second one to come moves the bytes. False: a ready send, which moves
  // them in any case.
  bool meets = false;
  uint64_t round = 0;  // the pair's round: 1 for its first message
};

class Stream {
 public:
  // Does not wait for queued work: operations that have not begun may be dropped (their events say
  // kCancelled) and a wait in progress is abandoned. Synchronize first to see the work done. A copy
  // or host function in progress is waited for.
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Enqueues a copy between any two of device, pinned, managed and ordinary host memory (with
  // ordinary memory the call may block until the copy is done). The ranges must not overlap. Zero
  // bytes do nothing. kInvalidArgument for null pointers and overlap; kInvalidBuffer for a range
  // that starts inside an allocation and runs past its end.
  virtual Status CopyAsync(void* destination, const void* source, uint64_t size_bytes) = 0;
  // Enqueues a copy as CopyAsync does, where the caller knows that one end, or both, is device
  // memory: the call does not look that up.
  virtual Status CopyDeviceAsync(void* destination, const void* source, uint64_t size_bytes) {
    return CopyAsync(destination, source, size_bytes);
  }

  // Enqueues one small kernel of Ferry's own that moves all of the blocks by loads and stores. Both
  // places must be device, pinned, managed or registered memory (kInvalidBuffer otherwise, and
  // where blocks lie outside the first one's allocation). No bytes do nothing. kInvalidArgument for
  // null, for sizes beyond 2^63, for a packed place between the blocks, and where blocks to be
  // written overlap. kUnsupported where the device has no kernel for it: then copy block by block.
  virtual Status CopyStrided(const StridedCopy& copy) = 0;

  // Enqueues one small kernel of Ferry's own that copies all blocks to all destinations by loads
  // and stores. They must be device, pinned, managed or registered memory (kInvalidBuffer
  // otherwise), and memory of another device must be such as GpuBackend::LetKernelsReach has
  // allowed for this stream's device. No bytes do nothing. kInvalidArgument for null, for no or too
  // many places, for sizes beyond 2^63, and where a destination overlaps another or a source that
  // does not lie in its place. kUnsupported where the device has no kernel for it.
  virtual Status CopySpread(const SpreadCopy& copy) = 0;

  // Enqueues one small kernel of Ferry's own that reduces. All buffers must be device, pinned,
  // managed or registered memory (kInvalidBuffer otherwise), aligned to their type;
  // kInvalidArgument where they are not, for null, for too many, for sizes beyond 2^63, where the
  // operation is not defined for the type, and where a result overlaps another one, or an operand
  // without being it. No elements reduce nothing, and the buffers may be any: the answer then says
  // whether the device could. kUnsupported where it has no kernel for it, or does not reach the
  // memory.
  virtual Status Reduce(const Reduction& reduction) = 0;

  // Enqueues the mark; `event` then stands for this point. It may be recorded again or destroyed
  // while earlier waits for it are still queued: those keep the point they captured.
  // kInvalidArgument for null and for an event of another backend.
  virtual Status RecordEvent(Event* event) = 0;

  // Makes operations enqueued after this call wait until `event`, as last recorded before the call,
  // is complete. No CPU thread of the caller blocks. Errors as for RecordEvent.
  virtual Status WaitEvent(Event* event) = 0;

  // Enqueues a 64-bit store of `value`, seen by any waiter after all that this stream did before
  // it. `word` must be aligned to 8 bytes (kInvalidArgument) and lie in pinned or registered
  // memory, or in device memory where the device can wait there (kInvalidBuffer otherwise).
  virtual Status WriteValue64(uint64_t* word, uint64_t value) = 0;

  // Makes operations enqueued after this call wait until the word meets the condition. A CPU,
  // another stream or another process may write it, with a 64-bit release store. Errors as for
  // WriteValue64.
  virtual Status WaitValue64(uint64_t* word, uint64_t value, WaitCondition condition) = 0;

  // Enqueues one small kernel of Ferry's own, which starts a round and never waits: BeginMove and,
  // if that says so, a copy and CompleteMove. A backend whose devices share the work offers the
  // message in parts instead. Memory and words must be reachable for the device. Errors as for
  // CopyAsync.
  virtual Status LaunchMove(const MatchedMove& move) = 0;

  // Makes operations enqueued after this call wait until the round is complete at this end, or has
  // failed; then the pair is closed before they run (ClosePair). Meanwhile the device may help to
  // move it (HelpMove); it need not: WaitValue64 on `own->done`, and a small kernel that closes
  // what has failed, will do. `size_bytes` as for LaunchMove; 0 also means that there is nothing to
  // help with. Errors as for LaunchMove. For a pair between nodes `other` is null, and only
  // `own->done` is waited for.
  virtual Status AwaitMove(const MatchedMove& move) = 0;

  // Enqueues a function to be called once, from a thread of the backend, without exceptions. It
  // must not call this interface. A status other than ok poisons the stream. Never called for a
  // stream that was poisoned or destroyed before its turn. kInvalidArgument for an empty function.
  virtual Status LaunchHost(std::function<Status()> function) = 0;

  // kOk if everything enqueued so far has run, kWouldBlock if not, or the stream's error. Does not
  // block.
  virtual Status Query() = 0;

  // Blocks until everything enqueued before the call has run. Returns the stream's error, if any.
  virtual Status Synchronize() = 0;

 protected:
  Stream() = default;
};

}  // namespace ferry::gpu
