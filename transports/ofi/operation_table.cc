#include "transports/ofi/operation_table.h"

#include <algorithm>

#include "transports/ofi/memory.h"

namespace ferry::transport {

OperationTable::OperationTable(const Limits& limits, Statistics* statistics)
    : limits_(limits), statistics_(statistics), slots_(limits.slots) {
  for (Operation& op : slots_) {
    free_.push_back(op);
  }
}

ErrorCode OperationTable::Accept(Peer* peer, Region* region, uint64_t context, uint64_t now_ns,
                                 Operation** operation) {
  if (statistics_->abandoned == slots_.size()) {
    return ErrorCode::kLimitExceeded;
  }
  if (free_.empty() || outstanding_ >= limits_.outstanding ||
      peer->outstanding >= limits_.outstanding_per_peer) {
    statistics_->would_block++;
    return ErrorCode::kWouldBlock;
  }
  Operation* op = &free_.front();
  free_.pop_front();
  deadlines_.push_back(*op);
  op->state = Operation::State::kPosted;
  op->peer = peer;
  op->region = region;
  op->context = context;
  op->deadline_ns = now_ns + limits_.timeout_ns;
  outstanding_++;
  peer->outstanding++;
  if (region != nullptr) {
    region->users++;
  }
  *operation = op;
  return ErrorCode::kOk;
}

void OperationTable::Enqueue(Operation* op) {
  Peer* peer = op->peer;
  if (peer->queue.empty()) {
    waiting_.push_back(*peer);
  }
  peer->queue.push_back(*op);
  op->state = Operation::State::kQueued;
}

void OperationTable::Dequeue(Operation* op) {
  Peer* peer = op->peer;
  peer->queue.erase(peer->queue.iterator_to(*op));
  if (peer->queue.empty()) {
    waiting_.erase(waiting_.iterator_to(*peer));
  }
  op->state = Operation::State::kPosted;
}

// Takes an operation out of the accounts of those in progress.
void OperationTable::Leave(Operation* op) {
  deadlines_.erase(deadlines_.iterator_to(*op));
  outstanding_--;
  op->peer->outstanding--;
}

// Gives back the slot of an operation that is on no list, reported, and not held by the NIC.
void OperationTable::Release(Operation* op) {
  if (op->region != nullptr) {
    op->region->users--;
  }
  op->state = Operation::State::kFree;
  free_.push_front(*op);  // the one used last is in the cache
}

void OperationTable::Finish(Operation* op) {
  Leave(op);
  Release(op);
}

void OperationTable::Fail(Operation* op, ErrorCode code) {
  if (op->state == Operation::State::kQueued) {
    Dequeue(op);
  }
  Leave(op);
  statistics_->errors++;
  op->result = code;
  op->state = Operation::State::kEnding;
  ending_.push_back(*op);
}

void OperationTable::FailAll(Peer* peer, ErrorCode code) {
  for (auto next = deadlines_.begin(); next != deadlines_.end() && peer->outstanding > 0;) {
    Operation& op = *next++;  // Fail takes it off the list
    if (op.peer == peer) {
      Fail(&op, code);
    }
  }
}

void OperationTable::FailOverdue(uint64_t now_ns) {
  while (!deadlines_.empty() && deadlines_.front().deadline_ns <= now_ns) {
    Operation* op = &deadlines_.front();
    statistics_->timeouts++;
    Fail(op, op->held ? ErrorCode::kTimeout : ErrorCode::kNodeUnreachable);
  }
}

bool OperationTable::TakeEnded(Ended* ended) {
  if (ending_.empty()) {
    return false;
  }
  Operation* op = &ending_.front();
  ending_.pop_front();
  *ended = {op->context, op->result};
  if (op->held) {
    op->state = Operation::State::kAbandoned;
    statistics_->abandoned++;
  } else {
    Release(op);
  }
  return true;
}

void OperationTable::OnLateEnd(Operation* op) {
  if (op->state == Operation::State::kAbandoned) {
    statistics_->abandoned--;
    Release(op);
  }  // else TakeEnded releases it
}

void OperationTable::RenewDeadline(Operation* op, uint64_t now_ns) {
  op->deadline_ns = now_ns + limits_.timeout_ns;
  deadlines_.splice(deadlines_.end(), deadlines_, deadlines_.iterator_to(*op));
}

uint64_t OperationTable::NextDeadlineNs() const {
  return deadlines_.empty() ? UINT64_MAX : deadlines_.front().deadline_ns;
}

void OperationTable::OnCall(uint64_t now_ns) {
  const uint64_t gap_ns = now_ns - std::min(last_call_ns_, now_ns);
  last_call_ns_ = now_ns;
  if (gap_ns > limits_.timeout_ns / 2) {
    for (Operation& op : deadlines_) {
      op.deadline_ns += gap_ns;
    }
  }
}

}  // namespace ferry::transport
