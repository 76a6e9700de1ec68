// Operations that the NIC carries out by itself once a counter has reached a threshold: the
// optional facet of a Transport for communication without any CPU (triggered operations of Portals
// 4; FI_TRIGGER and FI_QUEUE_WORK of libfabric; "Co-Design and Evaluation of a CPU-Free MPI GPU
// Communication Abstraction and Implementation", sections II-C, V-A and V-B).
//
// A NIC counter only grows: by the host, by a GPU that stores to its doorbell, by remote writes
// into a target region, or by the ends of deferred operations. An operation waits for one counter
// and adds one to another when it is done, so chains need no CPU: a write, when it is done, fires
// the addition of one to a word that a GPU stream polls.
//
// A DeferredWork belongs to one NIC: in a Transport over several, each of Transport::Rails has its
// own, with the memory and peers of that NIC.
//
// Entries. A NIC has few of them (about 500 on Slingshot), and going beyond is undefined. So they
// are counted here, and an operation that gets none is refused. An entry serves once: arm the next
// one ahead of time.
//
// Ends. An accepted operation (an Arm that returned kOk) ends in exactly one OnDeferredEnd, which
// comes from within Poll of this facet. Nothing reports that a NIC never finishes an operation it
// has begun (the peer was already dead): keep a deadline of your own, from when the trigger was
// seen reached, and then close the trigger's counter.
//
// Calling thread: the progress thread, but for PrepareTarget. Nothing blocks. Only OpenCounter and
// targets allocate.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/error_code.h"
#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Names a counter of one DeferredWork. Never reused while the Transport lives.
enum class NicCounter : uint64_t {};

// Where a GPU (or the host) stores a 64-bit number to act on a counter without any call; null where
// the NIC has no such place. Memory-mapped I/O: register [page, page + page_bytes) with the GPU,
// store whole words, never load.
//
// Another process may map the page, too, where the provider's descriptor for it can be mapped a
// second time: [offset, offset + page_bytes) of `descriptor`, which stays the NIC's. A process that
// has the descriptor may reach all that its driver gives to this process, the pages of all counters
// to begin with: hand it only to processes that may do so.
struct CounterDoorbell {
  void* page = nullptr;
  uint64_t page_bytes = 0;
  uint64_t* add = nullptr;           // stores add to the counter
  uint64_t* add_errors = nullptr;    // stores add to its failures
  uint64_t* reset = nullptr;         // a store of 0 sets the counter to 0
  uint64_t* reset_errors = nullptr;  // a store of 0 sets its failures to 0
  int descriptor = -1;               // -1: only this process has the page
  uint64_t offset = 0;
};

// Fires as soon as `counter` has reached `threshold`, at once if it has already.
struct DeferredTrigger {
  NicCounter counter{};
  uint64_t threshold = 0;
};

// Writes [local, local + bytes), as it is when the trigger fires, to the peer. `local` belongs to
// the NIC from the arming until the end.
struct DeferredWrite {
  DeferredTrigger trigger;
  NicCounter done{};  // grows by one when `local` may be reused; not if the write fails
  PeerId peer{};
  const void* local = nullptr;
  RegionHandle region{};
  uint64_t bytes = 0;           // 1 to max_write_bytes()
  uint64_t remote_address = 0;  // as in RmaRequest
  uint64_t key = 0;
  uint64_t context = 0;  // handed back by OnDeferredEnd
};

// Adds 1 to the aligned 64-bit word at `remote_address`: a completion word, of this node (a peer
// whose address is our own) or of another. Atomic against other additions by the same NIC only.
struct DeferredIncrement {
  DeferredTrigger trigger;
  NicCounter done{};
  PeerId peer{};
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t context = 0;
};

// The numbers only ever grow, except `abandoned` and `counters`.
struct DeferredStatistics {
  uint64_t armed = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;
  uint64_t refused = 0;    // refused for want of an entry
  uint64_t resumed = 0;    // how often operations that were due needed a push
  uint64_t abandoned = 0;  // cancelled ones that the NIC had begun and still holds, now
  uint64_t counters = 0;   // counters that the NIC holds now
  uint64_t rings = 0;      // calls of AddToCounter
};

class DeferredSink {
 public:
  virtual ~DeferredSink() = default;
  // `code` is kOk (`done` has grown), kCancelled (its trigger's counter was closed) or a code of
  // CompletionSink::OnComplete. May arm operations and open and close counters, but not Poll.
  virtual void OnDeferredEnd(uint64_t context, ErrorCode code) = 0;
};

class DeferredWork {
 public:
  virtual ~DeferredWork() = default;

  // The number of entries (TransportOptions::deferred_entries, else the NIC's), and how many are
  // taken.
  virtual uint32_t entries() const = 0;
  virtual uint32_t in_use() const = 0;
  // The longest write of one operation, and the highest threshold.
  virtual uint64_t max_write_bytes() const = 0;
  virtual uint64_t max_threshold() const = 0;
  virtual const DeferredStatistics& statistics() const = 0;

  // Opens a counter that is 0. Errors: kLimitExceeded, kOutOfMemory, kSystem.
  virtual StatusOr<NicCounter> OpenCounter() = 0;
  // Closes a counter. Operations that wait for it are discarded; those it has fired, the NIC may
  // still carry out. All end with kCancelled. Before the call, release the targets that count on it
  // and silence its doorbell. Operations that report to it may still end: the NIC keeps the
  // counter, with what waits for it, until the last one has. So close the first counter of a chain
  // first, and release the memory that increments go to: an increment that fires late then fails,
  // and hits nothing. Unknown counters are ignored.
  virtual void CloseCounter(NicCounter counter) = 0;
  virtual void AddToCounter(NicCounter counter, uint64_t n) = 0;
  // Returns the counter's value; 0 for an unknown counter.
  virtual uint64_t ReadCounter(NicCounter counter) = 0;
  // Returns the counter's doorbell. Looks for the descriptor anew each time, in /proc: call it once
  // for each counter.
  virtual CounterDoorbell Doorbell(NicCounter counter) = 0;
  // Notes that something other than AddToCounter has fired operations: the next Poll looks for
  // their ends.
  virtual void ExpectEnds() = 0;

  // Like Transport::PrepareMemory with remote access, but each remote write into the region, and
  // each remote increment, adds one to `counter` once its data is in place. Pass the result to
  // AdoptMemory and ReleaseMemory of the Transport. `device`: as for PrepareDeviceMemory, nothing
  // for a CPU's memory. Any thread, while the counter is open.
  // Errors: those of PrepareMemory and PrepareDeviceMemory; kNotFound (counter).
  virtual StatusOr<std::unique_ptr<Registration>> PrepareTarget(
      void* base, uint64_t bytes, NicCounter counter,
      const std::optional<DeviceMemory>& device = std::nullopt) = 0;

  // Errors: kWouldBlock (no entry; let the host do it), kLimitExceeded (threshold beyond
  // max_threshold(), or too many operations abandoned), kInvalidArgument (bytes, or the order),
  // kInvalidBuffer (local range or region; a word that is not aligned), kNotFound (a counter or the
  // peer), the code given to FailPeer, or the provider's refusal. FailPeer ends nothing that is
  // armed: close the counters.
  //
  // Order. Ends are counted, so the operations that report to one counter at a time go to one peer
  // and wait for one counter, in the order of its thresholds.
  virtual ErrorCode ArmWrite(const DeferredWrite& write) = 0;
  virtual ErrorCode ArmIncrement(const DeferredIncrement& increment) = 0;

  // Reports ends, and pushes on operations that are due where the provider needs that. Call it
  // besides Transport::Poll, which finds a NIC's errors. Returns the number of ends.
  virtual int Poll(DeferredSink& sink, uint64_t now_ns) = 0;
  // The latest time at which to call Poll; UINT64_MAX if nothing is armed.
  virtual uint64_t NextPollNs(uint64_t now_ns) const = 0;
};

}  // namespace ferry::transport
