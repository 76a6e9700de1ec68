// A transport's record of each accepted operation: slots with limits, deadlines and the peers'
// queues. The life of an operation:
//
//   kFree -> kPosted <-> kQueued         a queued one waits in its peer's queue to be posted
//   kPosted -> kFree                     done, or refused by the NIC: reported at once
//   kPosted or kQueued -> kEnding        ended by us: the next Poll reports it
//   kEnding -> kFree                     reported, and the NIC does not hold it
//   kEnding -> kAbandoned -> kFree       reported, and the NIC let go of it later
//
// A slot is free again only when its end has been reported *and* the NIC has let go, so a late
// completion always finds the operation that it belongs to.
//
// Calls no provider and reads no clock. Not thread safe; allocates only when it is made.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/error_code.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"

namespace ferry::transport {

namespace intrusive {
template <typename Tag>
using Hook =
    boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>,
                                     boost::intrusive::link_mode<boost::intrusive::normal_link>>;
template <typename T, typename Tag>
using List = boost::intrusive::list<T, boost::intrusive::base_hook<Hook<Tag>>,
                                    boost::intrusive::constant_time_size<false>>;
struct Life;   // free, deadlines or ending, by state
struct Queue;  // the peer's queue, if kQueued
struct Waiting;
}  // namespace intrusive

// The table's record of an operation; a transport's own record derives from it. `Peer` derives from
// OperationPeer, `Region` has a number `users`.
template <typename Peer, typename Region>
struct OperationRecord : intrusive::Hook<intrusive::Life>, intrusive::Hook<intrusive::Queue> {
  using Kind = OperationKind;
  enum class State : uint8_t { kFree, kQueued, kPosted, kEnding, kAbandoned };

  State state = State::kFree;
  bool held = false;  // by the NIC: a completion will come
  ErrorCode result = ErrorCode::kOk;
  Peer* peer = nullptr;
  Region* region = nullptr;  // null if it uses none
  uint64_t context = 0;
  uint64_t deadline_ns = 0;
};

// The table's record of a peer.
template <typename Operation>
struct OperationPeer : intrusive::Hook<intrusive::Waiting> {
  uint32_t outstanding = 0;  // accepted, not ended
  // Operations put off, in order of acceptance.
  intrusive::List<Operation, intrusive::Queue> queue;
};

template <typename Operation>
class OperationTable {
 public:
  using Peer = std::remove_pointer_t<decltype(Operation::peer)>;
  using Region = std::remove_pointer_t<decltype(Operation::region)>;
  using State = typename Operation::State;

  struct Limits {
    uint32_t slots = 0;  // more than `outstanding`: see OperationReserve, and for abandoned ones
    uint32_t outstanding = 0;
    uint32_t outstanding_per_peer = 0;
    uint64_t timeout_ns = 0;
  };
  struct Ended {
    uint64_t context = 0;
    ErrorCode code = ErrorCode::kOk;
  };

  // Counts into `statistics`, which outlives the table.
  OperationTable(const Limits& limits, Statistics* statistics)
      : limits_(limits), statistics_(statistics), slots_(limits.slots) {
    for (Operation& op : slots_) {
      free_.push_back(op);
    }
  }

  // Takes a slot for an operation to `peer`; `region` may be null. Errors: kWouldBlock (a limit
  // reached), kLimitExceeded (all slots abandoned). `*operation` is kPosted, but not yet held.
  ErrorCode Accept(Peer* peer, Region* region, uint64_t context, uint64_t now_ns,
                   Operation** operation) {
    if (statistics_->abandoned == slots_.size()) {
      return ErrorCode::kLimitExceeded;
    }
    if (free_.empty() || peer->outstanding >= limits_.outstanding_per_peer ||
        !MayHaveOneMore(
            {limits_.outstanding, limits_.slots - limits_.outstanding, outstanding_, busy_peers_},
            peer->outstanding)) {
      statistics_->would_block++;
      return ErrorCode::kWouldBlock;
    }
    Operation* op = &free_.front();
    free_.pop_front();
    deadlines_.push_back(*op);
    op->state = State::kPosted;
    op->peer = peer;
    op->region = region;
    op->context = context;
    op->deadline_ns = now_ns + limits_.timeout_ns;
    outstanding_++;
    busy_peers_ += peer->outstanding++ == 0 ? 1 : 0;
    if (region != nullptr) {
      region->users++;
    }
    *operation = op;
    return ErrorCode::kOk;
  }

  size_t IndexOf(const Operation* op) const { return static_cast<size_t>(op - slots_.data()); }
  // Returns the operation in that slot; null beyond the last one.
  Operation* At(size_t index) { return index < slots_.size() ? &slots_[index] : nullptr; }

  // Put an operation into its peer's queue, and take it out.
  void Enqueue(Operation* op) {
    Peer* peer = op->peer;
    if (peer->queue.empty()) {
      waiting_.push_back(*peer);
    }
    peer->queue.push_back(*op);
    op->state = State::kQueued;
  }
  void Dequeue(Operation* op) {
    Peer* peer = op->peer;
    peer->queue.erase(peer->queue.iterator_to(*op));
    if (peer->queue.empty()) {
      waiting_.erase(waiting_.iterator_to(*peer));
    }
    op->state = State::kPosted;
  }
  // Peers whose queue is not empty.
  intrusive::List<Peer, intrusive::Waiting>& waiting() { return waiting_; }
  const intrusive::List<Peer, intrusive::Waiting>& waiting() const { return waiting_; }
  bool AnyWaiting() const { return !waiting_.empty(); }

  // Ends an operation that the NIC does not hold and that the caller reports.
  void Finish(Operation* op) {
    Leave(op);
    Release(op);
  }
  // Ends an operation that TakeEnded will report.
  void End(Operation* op, ErrorCode code) {
    if (op->state == State::kQueued) {
      Dequeue(op);
    }
    Leave(op);
    statistics_->errors += code == ErrorCode::kOk ? 0 : 1;
    op->result = code;
    op->state = State::kEnding;
    ending_.push_back(*op);
  }
  // Calls `fail(op)`, which ends it, for all operations of the peer.
  template <typename Fail>
  void ForAllOf(Peer* peer, Fail&& fail) {
    for (auto next = deadlines_.begin(); next != deadlines_.end() && peer->outstanding > 0;) {
      Operation& op = *next++;  // `fail` takes it off the list
      if (op.peer == peer) {
        fail(&op);
      }
    }
  }
  void EndAll(Peer* peer, ErrorCode code) {
    ForAllOf(peer, [this, code](Operation* op) { End(op, code); });
  }
  // Ends the operation that is overdue for longest, and returns it; null if none is.
  Operation* EndOverdue(uint64_t now_ns) {
    if (deadlines_.empty() || deadlines_.front().deadline_ns > now_ns) {
      return nullptr;
    }
    Operation* op = &deadlines_.front();
    statistics_->timeouts++;
    End(op, op->held ? ErrorCode::kTimeout : ErrorCode::kNodeUnreachable);
    return op;
  }

  // Takes the next ended operation to report. False: there is none.
  bool TakeEnded(Ended* ended) {
    if (ending_.empty()) {
      return false;
    }
    Operation* op = &ending_.front();
    ending_.pop_front();
    *ended = {op->context, op->result};
    if (op->held) {
      op->state = State::kAbandoned;
      statistics_->abandoned++;
    } else {
      Release(op);
    }
    return true;
  }
  bool AnyEnded() const { return !ending_.empty(); }
  // Call it when the NIC has let go of an operation that had ended before.
  void OnLateEnd(Operation* op) {
    if (op->state == State::kAbandoned) {
      statistics_->abandoned--;
      Release(op);
    }  // else TakeEnded releases it
  }

  void RenewDeadline(Operation* op, uint64_t now_ns) {
    op->deadline_ns = now_ns + limits_.timeout_ns;
    deadlines_.splice(deadlines_.end(), deadlines_, deadlines_.iterator_to(*op));
  }
  // The next deadline; UINT64_MAX if nothing is outstanding.
  uint64_t NextDeadlineNs() const {
    return deadlines_.empty() ? UINT64_MAX : deadlines_.front().deadline_ns;
  }
  // Notes that the transport was called. Time without calls (the process was stopped, the machine
  // suspended) is no fault of the peers: it is added to all deadlines, and returned.
  uint64_t OnCall(uint64_t now_ns) {
    const uint64_t gap_ns = now_ns - std::min(last_call_ns_, now_ns);
    last_call_ns_ = now_ns;
    if (gap_ns <= limits_.timeout_ns / 2) {
      return 0;
    }
    for (Operation& op : deadlines_) {
      op.deadline_ns += gap_ns;
    }
    return gap_ns;
  }

 private:
  using Lives = intrusive::List<Operation, intrusive::Life>;

  // Takes an operation out of the accounts of those in progress.
  void Leave(Operation* op) {
    deadlines_.erase(deadlines_.iterator_to(*op));
    outstanding_--;
    busy_peers_ -= --op->peer->outstanding == 0 ? 1 : 0;
  }
  // Gives back the slot of an operation that is on no list, reported, and not held by the NIC.
  void Release(Operation* op) {
    if (op->region != nullptr) {
      op->region->users--;
    }
    op->state = State::kFree;
    free_.push_front(*op);  // the one used last is in the cache
  }

  const Limits limits_;
  Statistics* const statistics_;
  std::vector<Operation> slots_;
  uint32_t outstanding_ = 0;
  uint32_t busy_peers_ = 0;  // that have some of these
  uint64_t last_call_ns_ = 0;
  Lives free_;
  Lives deadlines_;  // kQueued and kPosted, soonest first: the timeout is the same for all
  Lives ending_;
  intrusive::List<Peer, intrusive::Waiting> waiting_;
};

}  // namespace ferry::transport
