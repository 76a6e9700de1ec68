#include "daemon/device_rings/ring_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic_operation.h"

namespace ferry::daemon {
namespace {

using shm::OneSidedOperation;
using shm::RingKind;
using shm::RingOperation;

constexpr uint32_t kMostLong = 64;                // under way, of one ring
constexpr uint64_t kPieceBytes = 64 << 10;        // of a copy inside the node
constexpr uint64_t kCopyBudgetBytes = 256 << 10;  // of one ring in one turn
constexpr uint32_t kHeldBudget = 256;             // tries to send held operations: one ring, one
                                                  // turn

RingKind KindOf(const RingOperation& request) { return static_cast<RingKind>(request.kind); }

bool IsInOrder(const RingOperation& request) { return (request.flags & shm::kRingInOrder) != 0; }
bool IsSignalled(const RingOperation& request) {
  return (request.flags & shm::kRingSignalled) != 0;
}

// Returns true if the device waits for the operation's value, or for its end, rather than for the
// time when its source may change.
bool WantsAnswer(const RingOperation& request) {
  return KindOf(request) == RingKind::kGet ||
         ((KindOf(request) == RingKind::kAtomic || IsSignalled(request)) &&
          request.completion_region != 0);
}

bool IsPut(uint32_t kind) {
  return static_cast<RingKind>(kind) == RingKind::kPut ||
         static_cast<RingKind>(kind) == RingKind::kPutValue;
}

}  // namespace

uint64_t RingOperations::BytesOf(const RingOperation& request) {
  switch (KindOf(request)) {
    case RingKind::kPut:
    case RingKind::kGet:
      return request.compare;
    case RingKind::kPutValue:
      return request.width;
    default:
      return 0;
  }
}

namespace {

// Checks the request's words against each other, without its rank's memory.
bool IsSound(const RingOperation& request) {
  const auto operation = static_cast<OneSidedOperation>(request.operation);
  const bool has_plain_words = request.operation == 0 && request.width == 0;
  if ((request.flags & ~(shm::kRingInOrder | shm::kRingSignalled)) != 0 ||
      (IsSignalled(request) && (KindOf(request) != RingKind::kPut || request.compare == 0))) {
    return false;
  }
  switch (KindOf(request)) {
    case RingKind::kPut:
      return has_plain_words && request.region != 0;
    case RingKind::kSignal:
      return request.operation != 0 && request.operation < shm::kSignalUpdates &&
             request.width == 0 && request.flags == 0 && request.region == 0 &&
             request.compare == 0 && request.completion_region == 0;
    case RingKind::kGet:
      return has_plain_words &&
             (request.region != 0 || (request.operand == 0 && request.completion_region != 0 &&
                                      request.compare <= sizeof(shm::RingCompletion::value)));
    case RingKind::kPutValue:
      return request.operation == 0 && request.region == 0 && request.width != 0 &&
             request.width <= shm::kInlinePutBytes;
    case RingKind::kAtomic:
      return request.region == 0 && shm::IsAtomic(operation) &&
             (request.width == 4 || request.width == 8);
    case RingKind::kFence:
      return has_plain_words && request.flags == 0 && request.region == 0 && request.operand == 0 &&
             request.there == 0 && request.rank == 0 && request.segment == 0 &&
             request.compare == 0;
    default:
      return false;
  }
}

}  // namespace

RingOperations::RingOperations(progress::RingCalls& one_sided, progress::ServedRank& rank,
                               uint64_t ring, uint64_t timeout_ns, Tell tell)
    : one_sided_(one_sided),
      rank_(rank),
      ring_(ring),
      timeout_ns_(timeout_ns),
      tell_(std::move(tell)) {}

ErrorCode RingOperations::Check(const RingOperation& request) const {
  if (!IsSound(request) || !rank_.job->IsRank(request.rank)) {
    return ErrorCode::kInvalidArgument;
  }
  const bool names_own = KindOf(request) == RingKind::kPut ||
                         (KindOf(request) == RingKind::kGet && request.region != 0);
  if (names_own &&
      rank_.FindRegion({request.region, 0, request.operand}, request.compare) == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  return ErrorCode::kOk;
}

// Takes the signal of a put that has one, from the request before it. False: that request was no
// signal, or one for another rank.
bool RingOperations::TakeSignal(const RingOperation& request, uint64_t ticket,
                                progress::RingSignal* signal) {
  if (!IsSignalled(request)) {
    return true;
  }
  *signal = std::exchange(signal_, {});
  return signal->update != shm::SignalUpdate::kNone && signalled_ticket_ == ticket &&
         signalled_rank_ == request.rank;
}

progress::RingCall RingOperations::CallOf(const Held& operation) const {
  const RingOperation& request = operation.request;
  progress::RingCall call;
  call.token = {ring_, operation.sequence};
  call.signal = operation.signal;
  call.width = request.width;
  call.wants_answer = WantsAnswer(request);
  call.peer = request.rank;
  call.segment = request.segment;
  call.offset = request.there;
  call.size_bytes = BytesOf(request);
  switch (KindOf(request)) {
    case RingKind::kPut:
    case RingKind::kGet:
      call.operation =
          KindOf(request) == RingKind::kPut ? OneSidedOperation::kPut : OneSidedOperation::kGet;
      call.here = {request.region, 0, request.operand};
      break;
    case RingKind::kPutValue:
      call.operation = OneSidedOperation::kPut;
      call.width = 0;
      call.operand = request.operand;
      call.compare = request.compare;
      break;
    default:
      call.operation = static_cast<OneSidedOperation>(request.operation);
      call.operand = request.operand;
      call.compare = request.compare;
      break;
  }
  return call;
}

// ---- Beginning ----------------------------------------------------------------------------------

void RingOperations::Begin(const RingOperation& request, uint64_t ticket, uint64_t now_ns) {
  const uint64_t sequence = first_ + flights_.size();
  flights_.push_back({ticket,
                      request.kind,
                      request.rank,
                      {request.completion_region, 0, request.completion},
                      BytesOf(request),
                      now_ns});
  progress::RingSignal signal;
  ErrorCode error = Check(request);
  if (error == ErrorCode::kOk && !TakeSignal(request, ticket, &signal)) {
    error = ErrorCode::kInvalidArgument;
  }
  if (error == ErrorCode::kOk && KindOf(request) == RingKind::kFence) {
    last_fence_ = sequence;  // what comes after it finds it, peer by peer
  }
  if (error == ErrorCode::kOk && KindOf(request) == RingKind::kSignal) {
    signal_ = {static_cast<shm::SignalUpdate>(request.operation), request.segment, request.there,
               request.operand};
    signalled_ticket_ = ticket + 1;
    signalled_rank_ = request.rank;
  }
  flights_.back().is_signalled = IsSignalled(request);
  if (error != ErrorCode::kOk ||
      (BytesOf(request) == 0 && KindOf(request) != RingKind::kAtomic)) {  // there is nothing to do
    return End(sequence, error, 0);
  }
  bool in_order = IsInOrder(request);
  bool must_hold = false;
  if (Peer* const peer = Find(request.rank); peer != nullptr) {
    in_order |= std::exchange(peer->latest, sequence) < last_fence_;
    must_hold = !peer->held.empty() || (in_order && peer->longs != 0);
  }
  Held operation{sequence, request, signal, in_order, {}};
  const ErrorCode code = must_hold ? ErrorCode::kWouldBlock : Issue(operation, now_ns);
  if (code == ErrorCode::kWouldBlock) {
    Peer& peer = PeerOf(request.rank, sequence);
    if (peer.held.empty()) {
      peers_with_held_.push_back(request.rank);
      peer.stuck_since_ns = 0;
    }
    peer.held.push_back(std::move(operation));
  } else if (code != ErrorCode::kOk) {
    End(sequence, code, 0);
  }
}

// Null: there is nothing to say of it.
RingOperations::Peer* RingOperations::Find(uint32_t rank) {
  const auto found = peers_.find(rank);
  if (found == peers_.end()) {
    return nullptr;
  }
  ++looks_;
  return &found->second;
}

// Finds or adds the peer, for the operation with that sequence.
RingOperations::Peer& RingOperations::PeerOf(uint32_t rank, uint64_t sequence) {
  ++looks_;
  Peer& peer = peers_[rank];
  peer.latest = std::max(peer.latest, sequence);
  return peer;
}

// Returns true if the request may be long: by its length, or since only streams reach the memory at
// one of its ends.
bool RingOperations::MayBeLong(const RingOperation& request) const {
  if (KindOf(request) != RingKind::kPut && KindOf(request) != RingKind::kGet) {
    return false;
  }
  if (BytesOf(request) > shm::kCellBytes || (request.segment & shm::kSegmentByStream) != 0) {
    return true;
  }
  const progress::ServedRegion* const own =
      request.region == 0
          ? nullptr
          : rank_.FindRegion({request.region, 0, request.operand}, BytesOf(request));
  return own != nullptr && own->memory.by_stream;
}

// kOk: it is under way, or over. kWouldBlock: it cannot begin yet.
ErrorCode RingOperations::Issue(Held& operation, uint64_t now_ns) {
  const uint32_t rank = operation.request.rank;
  if (const Peer* const peer = Find(rank);
      peer != nullptr && peer->failed != ErrorCode::kOk &&
      (operation.in_order || peer->first_failed < last_fence_)) {
    return peer->failed;
  }
  if (longs_ >= kMostLong && MayBeLong(operation.request)) {
    operation.claim.Drop();  // it asks again: until then its memory may go
    return ErrorCode::kWouldBlock;
  }
  const progress::RingCall call = CallOf(operation);
  if (rank_.job->IsLocal(rank)) {
    return IssueHere(call, now_ns);
  }
  bool is_long = false;
  const ErrorCode code = one_sided_.BeginForRing(rank_, call, now_ns, &operation.claim, &is_long);
  if (code == ErrorCode::kOk) {
    OnIssued(operation.sequence, is_long);
  }
  return code;
}

ErrorCode RingOperations::IssueHere(const progress::RingCall& call, uint64_t now_ns) {
  if (call.size_bytes > shm::kCellBytes) {
    progress::ServedRank* const other = rank_.job->served[call.peer];
    const auto is_there = [other](uint32_t segment, uint64_t offset, uint64_t size_bytes) {
      return other->FindRegion({shm::RegionOf(segment), 0, offset}, size_bytes) != nullptr;
    };
    if (other != nullptr &&
        (!is_there(call.segment, call.offset, call.size_bytes) ||
         (call.has_signal() &&
          !is_there(call.signal.segment, call.signal.offset, sizeof(uint64_t))))) {
      return ErrorCode::kInvalidBuffer;  // before the first piece is stored
    }
    copies_.push_back({call.token.sequence, call});
    OnIssued(call.token.sequence, /*is_long=*/true);
    return ErrorCode::kOk;
  }
  uint64_t value = 0;
  const ErrorCode code = one_sided_.CarryOutForRing(rank_, call, now_ns, &value);
  if (code == ErrorCode::kOk) {
    End(call.token.sequence, code, value);
  }
  return code;
}

// A short put is in the hands of the network: its source may be changed. A put with a signal is
// answered only at its end.
void RingOperations::OnIssued(uint64_t sequence, bool is_long) {
  Flight& flight = FlightOf(sequence);
  flight.state = State::kUnderWay;
  flight.is_long = is_long;
  if (is_long) {
    ++longs_;
    ++PeerOf(flight.peer, sequence).longs;
  } else if (IsPut(flight.kind) && !flight.is_signalled && flight.completion.region != 0) {
    const shm::Location completion = std::exchange(flight.completion, {});
    tell_({flight.ticket, flight.kind, completion, ErrorCode::kOk, 0});
  }
}

// ---- Ending -------------------------------------------------------------------------------------

void RingOperations::End(uint64_t sequence, ErrorCode error, uint64_t value) {
  if (const auto code = static_cast<int32_t>(error);  // perhaps another daemon's word
      code < 0 || code >= 1 << shm::kRingStatusBits || error == ErrorCode::kWouldBlock) {
    error = ErrorCode::kCorrupt;
  }
  if (sequence < first_ || sequence - first_ >= flights_.size()) {
    return;
  }
  Flight& flight = FlightOf(sequence);
  if (flight.state == State::kOver) {
    return;
  }
  flight.state = State::kOver;
  if (flight.is_long) {
    --longs_;
    --PeerOf(flight.peer, sequence).longs;
  }
  const bool is_silent = flight.completion.region == 0;
  if (error != ErrorCode::kOk && is_silent) {
    failed_ = failed_ == ErrorCode::kOk ? error : failed_;
    if (rank_.job->IsRank(flight.peer)) {
      Peer& peer = PeerOf(flight.peer, sequence);
      peer.failed = peer.failed == ErrorCode::kOk ? error : peer.failed;
      peer.first_failed = std::min(peer.first_failed, sequence);
    }
  }
  if (error != ErrorCode::kOk || !is_silent) {
    tell_({flight.ticket, flight.kind, flight.completion, error, value});
  }
  while (!flights_.empty() && flights_.front().state == State::kOver) {
    flights_.pop_front();
    ++first_;
  }
}

void RingOperations::EndAll(ErrorCode error) {
  copies_.clear();
  peers_.clear();
  peers_with_held_.clear();
  for (const Flight& flight : std::exchange(flights_, {})) {
    if (flight.state != State::kOver) {
      tell_({flight.ticket, flight.kind, flight.completion, error, 0});
    }
  }
}

// ---- Reports ------------------------------------------------------------------------------------

// Why it is held, if the rank that it is about says so.
const char* RingOperations::WantsOf(const Flight& flight, uint64_t sequence) const {
  const auto found = peers_.find(flight.peer);
  if (found == peers_.end() || found->second.held.empty()) {
    return nullptr;
  }
  const Held& first = found->second.held.front();
  if (first.sequence != sequence) {
    return "earlier operations there have not begun";
  }
  if (first.in_order && found->second.longs != 0) {
    return "it comes after long operations there, which are not over";
  }
  if (first.claim.waiting()) {
    return "its memory is not registered with the network yet";
  }
  return longs_ >= kMostLong && MayBeLong(first.request)
             ? "as many long operations are under way as a ring may have"
             : "the network takes nothing for that rank's node";
}

bool RingOperations::Report(size_t most, RingWaits* waits) const {
  for (size_t i = 0; i < std::min(most, flights_.size()); ++i) {
    const Flight& flight = flights_[i];
    if (flight.state == State::kOver) {
      continue;
    }
    const bool is_held = flight.state == State::kHeld;
    RingWait wait;
    wait.step = is_held ? RingWait::Step::kHeld : RingWait::Step::kUnderWay;
    wait.kind = static_cast<RingKind>(flight.kind);
    wait.is_signalled = flight.is_signalled;
    wait.number = flight.ticket + 1;
    wait.since_ns = flight.since_ns;
    wait.peer = flight.peer;
    wait.size_bytes = flight.size_bytes;
    wait.wants = is_held ? WantsOf(flight, first_ + i) : nullptr;
    waits->Add(wait);
  }
  return flights_.size() > most;
}

// ---- Going on -----------------------------------------------------------------------------------

uint32_t RingOperations::Advance(uint64_t now_ns) {
  uint32_t done = 0;
  uint64_t budget_bytes = kCopyBudgetBytes;
  for (size_t left = copies_.size(); left != 0 && budget_bytes != 0; --left) {
    Copy copy = std::move(copies_.front());  // in turn
    copies_.pop_front();
    ++done;
    if (!AdvanceCopy(copy, &budget_bytes, now_ns)) {
      copies_.push_back(std::move(copy));
    }
  }
  return done + AdvanceHeld(now_ns);
}

// Carries out a piece. True: the copy has ended.
bool RingOperations::AdvanceCopy(Copy& copy, uint64_t* budget_bytes, uint64_t now_ns) {
  progress::RingCall piece = copy.call;
  piece.size_bytes = std::min({copy.call.size_bytes - copy.done_bytes, kPieceBytes, *budget_bytes});
  piece.offset += copy.done_bytes;
  piece.here.address += copy.done_bytes;
  if (copy.done_bytes + piece.size_bytes != copy.call.size_bytes) {
    piece.signal = {};
  }
  uint64_t value = 0;
  const ErrorCode code = one_sided_.CarryOutForRing(rank_, piece, now_ns, &value);
  copy.done_bytes += piece.size_bytes;
  *budget_bytes -= piece.size_bytes;
  const bool is_over = code != ErrorCode::kOk || copy.done_bytes == copy.call.size_bytes;
  if (is_over) {
    End(copy.sequence, code, 0);
  }
  return is_over;
}

// Tries to send held operations. All peers have equal shares, and a peer goes to the end of the
// line after its turn: where there are more peers than tries, the others come next time.
uint32_t RingOperations::AdvanceHeld(uint64_t now_ns) {
  const auto peers = static_cast<uint32_t>(peers_with_held_.size());
  uint32_t issued = 0;
  for (uint32_t left = std::min(peers, kHeldBudget); left != 0; --left) {
    const uint32_t rank = peers_with_held_.front();
    peers_with_held_.pop_front();
    Peer& peer = *Find(rank);
    issued += IssueHeld(peer, std::max(kHeldBudget / peers, 1U), now_ns);
    if (!peer.held.empty()) {
      peers_with_held_.push_back(rank);
    }
  }
  return issued;
}

// The first of those held, at most so many.
uint32_t RingOperations::IssueHeld(Peer& peer, uint32_t most, uint64_t now_ns) {
  uint32_t issued = 0;
  while (!peer.held.empty() && issued < most) {
    Held& next = peer.held.front();
    if (next.in_order && peer.longs != 0) {
      break;
    }
    const uint64_t sequence = next.sequence;
    ErrorCode code = Issue(next, now_ns);
    const bool is_stuck = code == ErrorCode::kWouldBlock && IsStuck(peer, now_ns);
    if (code == ErrorCode::kWouldBlock && !is_stuck) {
      break;
    }
    code = is_stuck ? ErrorCode::kNodeUnreachable : code;
    peer.stuck_since_ns = is_stuck ? peer.stuck_since_ns : 0;  // the next one has waited as long
    peer.held.pop_front();
    ++issued;
    if (code != ErrorCode::kOk) {
      End(sequence, code, 0);
    }
  }
  return issued;
}

// Returns true if the peer's first held operation has waited too long for the network alone.
bool RingOperations::IsStuck(Peer& peer, uint64_t now_ns) const {
  const Held& next = peer.held.front();
  if (next.claim.waiting() || (longs_ >= kMostLong && MayBeLong(next.request))) {
    peer.stuck_since_ns = 0;
    return false;
  }
  peer.stuck_since_ns = peer.stuck_since_ns == 0 ? now_ns : peer.stuck_since_ns;
  return now_ns - peer.stuck_since_ns > timeout_ns_;
}

}  // namespace ferry::daemon
