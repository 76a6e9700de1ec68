// The interface that the front ends above ferry.h (MPI, later SHMEM) build on: a rank's connection,
// with features that ferry.h does not show, such as communicator contexts, synchronous sends and
// matched probes.
//
// A front end is a library of its own. It gets this interface from the libferry that the process
// has loaded, by ferry_front_end(). So a program that calls ferry.h and a front end side by side
// has one connection. Both libraries must be of one release.
//
// Calling thread: any that the thread level allows; after AllowThreads, any. Functions that block
// say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/api/host_call.h"
#include "client/api/one_sided.h"
#include "client/api/plain_addresses.h"
#include "client/api/program_step.h"
#include "common/error_code.h"
#include "common/process_memory.h"
#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/reduction.h"
#include "gpu_backends/api/strided_copy.h"
#include "gpu_backends/api/types.h"
#include "shm/element_lock.h"
#include "shm/layout/descriptor.h"
#include "shm/wait_policy.h"

namespace ferry::client {

// Communicator contexts. Applications of ferry.h use one context; Ferry's own messages never match
// theirs, nor those of front ends.
inline constexpr uint32_t kUserContext = 0;
inline constexpr uint32_t kInternalContext = 1;
inline constexpr uint32_t kFrontEndContexts = 2;  // the first that front ends may use

// 0 = null; otherwise slot index in the lower half, the slot's serial in the upper.
using RequestHandle = uint64_t;

// Names a queue of starts and waits that a stream carries out. 0 = none.
using QueueHandle = uint64_t;

// The handle of a send that completed at once and needed no request. Index 0 names no slot.
inline constexpr RequestHandle kCompletedSend = uint64_t{1} << 32;

// As the peer or the tag of a receive or a probe: any.
inline constexpr int32_t kAny = -1;

// How a receive looks to `ferryctl why`, which would take it for the program's own otherwise.
enum class Service : uint8_t {
  kNone,
  kServes,  // for what other ranks may want of a thread that serves them: nobody waits for it
  kServed,  // for what such a thread answers, whatever its rank's program does
};

// What a call needs to know to start a message. Peers are ranks of the job.
struct Message {
  void* buffer = nullptr;
  uint64_t size_bytes = 0;
  int32_t peer = 0;
  int32_t tag = 0;
  uint32_t context = kUserContext;
  bool synchronous = false;  // a send completes only once it has been matched
  bool ready = false;        // a persistent, matched send whose receive is already started
  bool in_place = false;     // a persistent, matched receive waits in no cell: its buffer has the
                             // message as soon as it has come
  Service service = Service::kNone;
};

struct Completion {
  int source = 0;
  int tag = 0;
  ErrorCode error = ErrorCode::kOk;
  uint64_t size_bytes = 0;
};

enum class MemoryKind { kHost, kPinned, kDevice };

class FrontEnd {
 public:
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // The index of the node that `rank` lives on.
  int NodeOf(uint32_t rank) const { return static_cast<int>(nodes_[rank]); }
  // Whether the job has more ranks on this node than it may use cores.
  bool IsCrowded() const { return is_crowded_; }
  // What the waits of a library that has code of its own for them call (shm::SetCrowdedHook); null:
  // nothing. Outlives this.
  shm::CrowdedHook crowded_hook() const { return crowded_hook_; }
  // Whether the NIC of this node carries out deferred operations (transports/api/deferred_work.h):
  // it moves the messages of matched pairs that have no cells, also those that follow others.
  bool nic_defers() const { return nic_defers_; }
  // The rank's options: from its environment, and its place in the job from whoever started it.
  const config::Options& options() const { return options_; }

  // Allows any thread to call, at the same time as others, from now on. Call it while no other call
  // is under way. Later messages cost a few nanoseconds more.
  virtual void AllowThreads() = 0;
  // Undoes AllowThreads: from now on only one thread calls at a time, at the old cost. That thread
  // makes this call while no other is under way. Does nothing if the program itself asked
  // ferry_init for several threads.
  virtual void RestrictThreads() = 0;
  virtual bool AreThreadsAllowed() const = 0;

  // ---- Messages --------------------------------------------------------------------------------
  // kInvalidBuffer: the buffer runs past the end of device memory, or is an offloaded one of which
  // some bytes were never synchronised (looked at when a persistent send starts). kLimitExceeded
  // when all request slots are in use; the rank's poison when it has one. A handle of 0 is not
  // returned with kOk; kCompletedSend may be.
  virtual ErrorCode StartSend(const Message& message, RequestHandle* handle) = 0;
  virtual ErrorCode StartReceive(const Message& message, RequestHandle* handle) = 0;
  // The fast path for small messages, without a request: a send that can leave at once, or a
  // receive whose message has arrived from this node. False: nothing happened; use the ordinary
  // call, which also reports what is wrong with the message.
  virtual bool SendNow(const Message& message) = 0;
  virtual bool ReceiveNow(const Message& message, Completion* completion) = 0;
  // Block. The return value tells whether the message started; `completion->error`, how it ended.
  virtual ErrorCode Send(const Message& message, Completion* completion) = 0;
  ErrorCode Receive(const Message& message, Completion* completion) {
    return ReceiveUntil(message, UINT64_MAX, completion, nullptr);
  }
  // As Receive, until `end_ns` (MonotonicNs). Soon after that it returns kWouldBlock, and the
  // receive continues as *handle.
  virtual ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                                 RequestHandle* handle) = 0;
  // Makes a persistent request without starting it.
  virtual ErrorCode MakePersistent(const Message& message, bool is_send, RequestHandle* handle) = 0;
  virtual ErrorCode Start(RequestHandle handle) = 0;
  virtual ErrorCode FreePersistent(RequestHandle handle) = 0;
  // Asks for cancellation. The request must still be completed; it ends with kCancelled or as
  // usual.
  virtual bool Cancel(RequestHandle handle) = 0;

  // Looks for an unexpected message; kWouldBlock when there is none and `block` is false.
  virtual ErrorCode Probe(const Message& pattern, bool block, Completion* found) = 0;
  // As Probe, and takes the message out of the queue, so that no other receive or probe matches it;
  // receives it into memory of its size. The caller waits for `receive->handle`, then frees
  // `receive->buffer` with std::free, also after an error. The buffer is null before the call, and
  // for an empty message.
  struct MatchedReceive {
    RequestHandle handle = 0;
    void* buffer = nullptr;
    Completion envelope;
  };
  virtual ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) = 0;

  // ---- Matched requests and queues -------------------------------------------------------------
  // As the functions of those names in ferry/stream.h. `match` is a request that completes once all
  // are matched, or one cannot be.
  virtual Status BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) = 0;
  virtual Status IsMatched(RequestHandle request, bool* matched) = 0;
  // Whether the request belongs to a queue just now: nothing else may be done with it.
  virtual bool IsEnqueued(RequestHandle request) = 0;
  virtual StatusOr<QueueHandle> MakeQueue(uint32_t type, const void* stream_address) = 0;
  virtual Status FreeQueue(QueueHandle queue) = 0;
  virtual Status AwaitQueue(QueueHandle queue) = 0;  // blocks
  virtual Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) = 0;
  virtual Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) = 0;
  // Enqueues a call: when the stream gets there, a thread of libferry's carries it out; the stream
  // goes on once it is over, however it ends. AwaitQueue returns the first failure. Queues do not
  // wait for each other. When the stream is destroyed, a call that has begun is waited for. Allows
  // threads for good, as AllowThreads does. Errors of the stream; kInvalidArgument: no such queue;
  // kUnsupported: the stream cannot wait; kSystem: no thread can be started.
  virtual Status EnqueueCall(QueueHandle queue, HostCall call) = 0;
  // A program: steps that a queue starts, and waits for, as it does a request, over matched
  // requests that nobody else uses (client/triggered/program.h). Each request is started, and then
  // waited for, once. EnqueueStart, EnqueueWait, IsEnqueued and the calls below take its handle.
  // `name` says what the program does, for messages. kOutOfMemory, kUnsupported without a GPU
  // backend.
  virtual StatusOr<RequestHandle> MakeProgram(std::string name,
                                              std::span<const RequestHandle> requests,
                                              std::vector<ProgramStep> steps) = 0;
  // Frees the program but keeps its requests. kInvalidRequest while it is enqueued, or the rank
  // carries it out.
  virtual Status FreeProgram(RequestHandle program) = 0;
  // Begins a start that the rank carries out itself, in place of a queue; its partners' starts may
  // be on queues. Errors as of EnqueueStart.
  virtual Status StartProgram(RequestHandle program) = 0;
  // Carries on with that start as far as possible without waiting. Call it again, one thread at a
  // time, until it returns true: the start is over, and *error says how it ended.
  virtual bool AdvanceProgram(RequestHandle program, ErrorCode* error) = 0;

  // ---- Completion ------------------------------------------------------------------------------
  // Tries once. True: it is complete, `completion` is filled and the handle is no longer valid
  // (unless persistent). A persistent request that was not started counts as complete.
  virtual bool Test(RequestHandle handle, Completion* completion) = 0;
  virtual void Wait(RequestHandle handle, Completion* completion) = 0;  // blocks
  // As Test, without making progress: reports what is known by now.
  virtual bool TestNow(RequestHandle handle, Completion* completion) = 0;
  // Whether the request is known to be complete, or the rank poisoned. Copies what the calling
  // thread has to copy, but makes no other progress: for use in WaitFor's `done`.
  virtual bool IsComplete(RequestHandle handle) = 0;
  // One round of progress. True: there was something to do.
  virtual bool Poll() = 0;
  // Makes progress until `done(argument)` is true, which it asks after each change; sleeps when
  // nothing happens for a while. Also returns once the rank is poisoned, and soon after `end_ns`
  // (MonotonicNs) in any case. Blocks. `peer`: the rank it mainly waits for, which decides how it
  // waits. Waiting for several requests this way leaves none of them to ferryd's worker in between.
  virtual void WaitFor(bool (*done)(void*), void* argument, int32_t peer = kAny,
                       uint64_t end_ns = UINT64_MAX) = 0;
  // Makes WaitFor of other threads ask `done` again.
  virtual void WakeThreads() = 0;

  // ---- Memory ----------------------------------------------------------------------------------
  virtual StatusOr<void*> AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) = 0;
  virtual Status FreeMemory(void* pointer) = 0;
  // Makes memory of the caller's own as good as AllocateMemory's: ranks of the node may map it, and
  // the network reaches it. `fd` is a sealed memfd (shm/segment.h) of `size_bytes`, all of which is
  // mapped, shared, at `base` until UnshareMemory. Pages that nobody has touched take no memory.
  // Both block on the daemon. kLimitExceeded: the user's quota of regions. kInvalidBuffer: a
  // request that is not complete uses it, or it is not shared.
  virtual Status ShareMemory(int fd, void* base, uint64_t size_bytes) = 0;
  virtual Status UnshareMemory(void* base) = 0;
  // A heap block for a shadow of device memory: registered with the GPU backend, which then copies
  // at full speed, and kept for reuse while nobody else needs the room. Not zeroed. Null if it
  // would take room from the half of the heap that is the application's.
  virtual void* TakeShadow(uint64_t size_bytes) = 0;
  // Gives the block back. False: TakeShadow has not returned it.
  virtual bool GiveShadow(void* shadow) = 0;
  // Copies copy between any two kinds of memory; blocks until it is done.
  virtual Status Copy(void* destination, const void* source, uint64_t size_bytes) = 0;
  // The device copies between blocks of its memory and any other memory; blocks until it is done.
  // kUnsupported: the device cannot, so Copy has to move the blocks one by one.
  virtual Status CopyStrided(const gpu::StridedCopy& copy) = 0;
  // Reduces on the device that owns the result's memory, or else an operand's; blocks until it is
  // done. Errors as of gpu::Stream::Reduce. kUnsupported where CanReduce says no, or some memory
  // belongs to another device.
  virtual Status Reduce(const gpu::Reduction& reduction) = 0;
  virtual bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) = 0;
  // The device whose memory this is, if only streams reach it; -1: other memory.
  virtual int DeviceOf(const void* pointer) const = 0;
  // Whether CPUs cannot access this memory, so that only the three calls above touch its bytes.
  bool IsByStream(const void* pointer) const {
    return MayBeByStream(pointer) && DeviceOf(pointer) >= 0;
  }
  // A look that costs next to nothing: false if IsByStream is; true for such memory, and for what
  // lies between several pieces of it.
  bool MayBeByStream(const void* pointer) const { return !addresses_->IsPlain(pointer); }

  // ---- The ranks of this node ------------------------------------------------------------------
  // How ranks of one node work in each other's memory, without messages. `rank` lives on this node.
  //
  // Where memory of this rank lies, in the form that other ranks use. `flags` is not 0 if only
  // streams reach it, nor for private memory (region 0) that no other process reaches, be it that
  // the kernel lets this one reach others: a driver's own, say.
  virtual shm::Location LocateHere(const void* pointer, uint64_t size_bytes) const = 0;
  // The same for ranks of other nodes, too, who put there, and get, while this rank computes: where
  // they may have direct links, a thread of this rank serves them from now on.
  virtual shm::Location Locate(const void* pointer, uint64_t size_bytes) const = 0;
  // Lets ranks of other nodes reach memory of the program's own, until Unexpose: by direct links to
  // this rank alone, whose thread or library serves them from now on. While others change elements
  // there, the lock is held, which outlives that. Returns the segment, of which one-sided
  // operations name bytes by offsets from `base`; 0: the rank gets no direct links. Unexpose it
  // once nobody uses it any more. Both wait for the rank's other threads, for a step of theirs.
  virtual uint32_t Expose(void* base, uint64_t size_bytes, shm::ElementLock* lock) = 0;
  virtual void Unexpose(uint32_t segment) = 0;
  // Copies between this rank's memory and another's, which that rank has located and keeps in place
  // meanwhile. Blocks while it copies. kUnsupported: the kernel denies this rank that memory.
  virtual ErrorCode CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                                 uint64_t size_bytes) = 0;
  virtual ErrorCode CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                               uint64_t size_bytes) = 0;
  // The same for several at once, in few system calls: memory of that rank which AllocateMemory has
  // not returned, by its addresses, and memory of this one that streams are not needed for.
  virtual ErrorCode CopyEachFromPeer(uint32_t rank, std::span<const ProcessCopy> copies) = 0;
  virtual ErrorCode CopyEachToPeer(uint32_t rank, std::span<const ProcessCopy> copies) = 0;
  // Whether such copies reach memory that AllocateMemory has not returned.
  virtual bool IsPrivateMemoryReachable(uint32_t rank) const = 0;
  // Maps memory of another rank that its AllocateMemory returned, or that it shares, for as long as
  // the pointer lives. What only streams reach is for Copy, CopyStrided and kernels, and is told by
  // `is_by_stream`; kInvalidBuffer for such memory where that is null.
  virtual StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank, const shm::Location& where,
                                                       uint64_t size_bytes,
                                                       bool* is_by_stream = nullptr) = 0;
  // Lets kernels of all devices reach host memory at this process's addresses, until the mapping
  // ends: `base` is what MapPeer has returned for the beginning of a peer's region, or memory that
  // this rank shares. All of it is pinned, so that each of its pages takes memory from now on; may
  // block while that happens. Does nothing if they reach it already. kUnsupported without a GPU
  // backend; kInvalidBuffer for other memory; errors of gpu::GpuBackend::RegisterHostMemory.
  virtual Status LetDevicesReach(const std::byte* base) = 0;
  // Lets kernels of the device load from and store to memory of a device at this address, which
  // AllocateMemory or MapPeer has returned. kUnsupported, with the reason: they cannot.
  virtual Status LetKernelsReach(int device, const void* pointer) = 0;
  // How many devices the GPU backend has; 0 without one.
  virtual int DeviceCount() const = 0;
  // Of a device that there is.
  virtual StatusOr<gpu::DeviceInfo> DescribeDevice(int device) const = 0;
  // As ferry_ring_create and ferry_ring_destroy (ferry/device_ring.h), which say more.
  struct DeviceRing {
    uint64_t handle = 0;  // 0: none
    void* address = nullptr;
  };
  virtual StatusOr<DeviceRing> MakeRing(int device, uint32_t slots, uint32_t completions) = 0;
  virtual Status FreeRing(uint64_t handle) = 0;
  // kOk, or why messages with that rank fail: it has died, or this one is poisoned.
  virtual ErrorCode PeerState(uint32_t rank) const = 0;
  // Grows after each change of a PeerState for the worse, so that others look only then. A word
  // that the daemon changes.
  const uint32_t& death_epoch() const { return *death_epoch_; }
  // Makes that rank's WaitFor ask `done` again, if it sleeps there. Store what `done` looks at
  // first (shm/wake.h).
  virtual void WakePeer(uint32_t rank) = 0;
  // Ends a Rest of that rank's, of this node: its memory was changed, by stores of this one's
  // before this call.
  virtual void TellOfChange(uint32_t rank) = 0;

  // ---- Memory of other ranks -------------------------------------------------------------------
  virtual OneSided& one_sided() = 0;
  // For a wait for memory that others change: makes progress, then sleeps until something comes for
  // this rank, or an operation from another node, or a signal, has changed its memory since this
  // thread's last Rest, but not longer than that. Plain stores wake nobody. Blocks.
  virtual void Rest(uint64_t longest_ns) = 0;

  // ---- Errors ----------------------------------------------------------------------------------
  // kOk, or why nothing works any more.
  virtual ErrorCode poison() const = 0;
  // The code, with a sentence that says what went wrong and what to do.
  virtual Status Explain(ErrorCode error) const = 0;

 protected:
  ~FrontEnd() = default;

  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::vector<uint32_t> nodes_;  // by rank
  config::Options options_;
  bool is_crowded_ = false;  // ranks of the node share cores
  bool nic_defers_ = false;
  const PlainAddresses* addresses_ = nullptr;  // once the rank has joined
  const uint32_t* death_epoch_ = nullptr;      // likewise
  shm::CrowdedHook crowded_hook_ = nullptr;
};

// Bumped with each change of this file.
inline constexpr uint32_t kFrontEndVersion = 27;

}  // namespace ferry::client

// The interface of this process, once ferry_init has returned; null before it, after ferry_finalize
// and for another version. libferry exports it.
extern "C" ferry::client::FrontEnd* ferry_front_end(uint32_t version);

// How front ends share the connection: each of them joins it once, and leaves it once.
//
// The first to join makes it, unless the program has called ferry_init; a process that belongs to
// no job makes one of itself alone, over the node's daemon or one of its own. Several threads may
// call from then on if any of those that joined has asked for that (`required` is FERRY_THREAD_*).
// The last to leave ends a connection that a front end has made; before that, all ranks meet. Both
// return what ferry_init and ferry_finalize do. Both block. Main thread.
extern "C" int ferry_front_end_join(int required);
extern "C" int ferry_front_end_leave(void);

// Ends the job, as ferry_abort does; but an exit code of 0 is a success. Any thread.
extern "C" [[noreturn]] void ferry_front_end_exit(int exit_code);
