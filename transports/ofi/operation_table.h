// The slots of all operations of one transport, with their limits, deadlines and the peers' queues.
// Calls no provider and reads no clock. Not thread safe; allocates only when it is made.
#pragma once

#include <cstdint>
#include <vector>

#include "common/error_code.h"
#include "transports/api/transport.h"
#include "transports/ofi/operation.h"

namespace ferry::transport {

class OperationTable {
 public:
  struct Limits {
    uint32_t slots = 0;  // more than `outstanding`: spare ones for abandoned operations
    uint32_t outstanding = 0;
    uint32_t outstanding_per_peer = 0;
    uint64_t timeout_ns = 0;
  };
  struct Ended {
    uint64_t context = 0;
    ErrorCode code = ErrorCode::kOk;
  };

  // Counts into `statistics`, which outlives the table.
  OperationTable(const Limits& limits, Statistics* statistics);

  // Takes a slot for an operation to `peer`; `region` may be null. Errors: kWouldBlock (a limit
  // reached), kLimitExceeded (all slots abandoned). `*operation` is kPosted, but not yet held.
  ErrorCode Accept(Peer* peer, Region* region, uint64_t context, uint64_t now_ns,
                   Operation** operation);
  size_t IndexOf(const Operation* op) const { return static_cast<size_t>(op - slots_.data()); }

  // Put an operation into its peer's queue, and take it out.
  void Enqueue(Operation* op);
  void Dequeue(Operation* op);
  // Peers whose queue is not empty.
  PeerList& waiting() { return waiting_; }
  bool AnyWaiting() const { return !waiting_.empty(); }

  // Ends an operation that the NIC does not hold and that the caller reports.
  void Finish(Operation* op);
  // Ends an operation that TakeEnded will report.
  void Fail(Operation* op, ErrorCode code);
  void FailAll(Peer* peer, ErrorCode code);
  void FailOverdue(uint64_t now_ns);
  // True if there was one to report.
  bool TakeEnded(Ended* ended);
  bool AnyEnded() const { return !ending_.empty(); }
  // Call it when the NIC has let go of an operation that had failed before.
  void OnLateEnd(Operation* op);

  void RenewDeadline(Operation* op, uint64_t now_ns);
  // The next deadline; UINT64_MAX if nothing is outstanding.
  uint64_t NextDeadlineNs() const;
  // Notes that the transport was called. Time during which nobody called it (the process was
  // stopped, the machine suspended) is no fault of the peers: it is added to all deadlines.
  void OnCall(uint64_t now_ns);

 private:
  void Leave(Operation* op);
  void Release(Operation* op);

  const Limits limits_;
  Statistics* const statistics_;
  std::vector<Operation> slots_;
  uint32_t outstanding_ = 0;
  uint64_t last_call_ns_ = 0;
  LifeList free_;
  LifeList deadlines_;  // kQueued and kPosted, soonest first: the timeout is the same for all
  LifeList ending_;
  PeerList waiting_;
};

}  // namespace ferry::transport
