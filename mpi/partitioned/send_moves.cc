// PartitionedSend: moving data, and carrying a round on to its end.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/clock.h"
#include "mpi/base/connection.h"
#include "mpi/partitioned/send.h"

namespace ferry::mpi {
namespace {

// A smaller unit is not left to an attending receiver: copying it takes less time than the receiver
// needs to see it.
constexpr uint64_t kLeastLeft = 8 << 10;
// Where so few bytes are copied, an atomic addition in the receiver's memory would take longer.
constexpr uint64_t kQuickBytes = 4 << 10;
// Between nodes: the longest put that goes in one message of its own.
constexpr uint64_t kShortPut = 8 << 10;
// The sender moves parts of a unit that is not full, and that the receiver cannot take by itself,
// once the unit has not changed for this time.
constexpr uint64_t kStaleNs = 10'000;
// That time for parts that kernels have readied, since a look at those may need a copy from the
// device.
constexpr uint64_t kStaleOfKernelsNs = 50'000;

}  // namespace

// ---- Moving -------------------------------------------------------------------------------------

// Units are left to a receiver that attends: small ones all, for it copies several at once, and so
// does this side once it waits; of large ones no more than half wait for it at a time, so that
// threads that ready many copy, too.
bool PartitionedSend::LeaveToReceiver(uint32_t unit, uint64_t round, bool is_alone) {
  if (units_.unit_bytes() < kLeastLeft || answer_.can_take == 0 ||
      shm::LoadRelaxed(words_.block().attending) != round) {
    return false;
  }
  const uint64_t left = PartsIn(left_.load(std::memory_order_relaxed), round);
  if (!is_alone && units_.unit_bytes() >= kLeastCounted) {
    const uint64_t took = PartsIn(shm::LoadRelaxed(words_.block().took), round);
    if (left > took && (left - took) * 2 >= uint64_t{units_.partitions} * units_.pieces) {
      return false;
    }
  }
  left_.store(PartsOfRound(round, left + units_.PartsIn(unit)), std::memory_order_relaxed);
  receiver_.StoreSoon(offsetof(ReceiverBlock, left), LeftUnit(round, unit));
  TellReceiver();
  return true;
}

// Under mutex_, or counted by acting_.
void PartitionedSend::Move(uint32_t unit, uint64_t round) {
  while (const uint64_t bits = words_.Take(unit, round, true, share_)) {
    MoveBits(unit, bits, round);
  }
}

// Local: takes full units from this one back, and copies them at once; or some of this one's parts.
// Returns how many units are done with. *is_first: nothing was taken before, in this look.
uint32_t PartitionedSend::MoveFullLocked(uint32_t unit, uint64_t round, bool* is_first) {
  const uint64_t most = share_.IsOwn(unit) ? units_.bytes_at_once() : 0;
  uint32_t count = 0;
  for (uint64_t bytes = 0; count <= unit && (count == 0 || bytes < most);
       bytes += units_.unit_bytes()) {
    const uint32_t at = unit - count;
    const bool is_alone = *is_first && words_.IsNextTaken(at, round, share_);
    const uint64_t bits = words_.Take(at, round, true, share_, is_alone);
    *is_first = *is_first && bits == 0;
    if (bits != units_.FullOf(at)) {  // the other side has taken something of it, or may do so
      MoveBits(at, bits, round);
      if (count == 0) {
        return bits == 0 ? 1 : 0;
      }
      break;
    }
    ++count;
  }
  const uint32_t first = unit - count + 1;
  const uint64_t offset = first * units_.unit_bytes();
  const uint64_t size_bytes = std::min(count * units_.unit_bytes(), units_.total_bytes() - offset);
  const std::byte* const from = SourceAt(offset, size_bytes);
  const ErrorCode error = from == nullptr && size_bytes != 0
                              ? ErrorCode::kInvalidBuffer
                              : destination_.CopyTo(offset, from, size_bytes, IsSourceByStream());
  if (error != ErrorCode::kOk) {
    BreakBy(error);
    return count;
  }
  for (uint32_t i = 0; i + 1 < count; ++i) {
    arrived_.Fill(first + i, round);
  }
  arrived_.Add(unit, units_.FullOf(unit));
  TellReceiver();
  return count;
}

void PartitionedSend::MoveBits(uint32_t unit, uint64_t bits, uint64_t round) {
  if (bits == 0) {
    return;
  }
  // The remote receiver copies pieces out of its landing while other pieces are on their way.
  const bool is_piece_by_piece = !is_local_ && units_.pieces != 1 && answer_.is_landing != 0;
  while (bits != 0) {
    const Units::Run run = Units::TakeRun(&bits, is_piece_by_piece ? 1 : kPartitionsPerUnit);
    if (const ErrorCode error = MoveRun(unit, run, round); error != ErrorCode::kOk) {
      BreakBy(error);
      return;
    }
  }
  TellReceiver();
}

void PartitionedSend::BreakBy(ErrorCode error) {
  Failure failure = FailureOf(error);
  Break(failure.ok() ? Failure{MPI_ERR_OTHER, "a partition could not be copied"}
                     : std::move(failure));
}

// The source of the data, packed if need be. Null: packing has failed, and the failure is noted.
const std::byte* PartitionedSend::SourceAt(uint64_t offset, uint64_t size_bytes) {
  if (packed_ == nullptr) [[likely]] {
    return static_cast<const std::byte*>(payload_.data()) + offset;
  }
  std::byte* const packed = packed_.get() + offset;
  if (Failure failure =
          payload_.CopyOut(packed, static_cast<int64_t>(offset), static_cast<int64_t>(size_bytes));
      !failure.ok()) {
    SetFailure(std::move(failure));
    return nullptr;
  }
  return packed;
}

ErrorCode PartitionedSend::MoveRun(uint32_t unit, const Units::Run& run, uint64_t round) {
  const auto [offset, size_bytes] = units_.BytesOf(unit, run);
  const std::byte* const from = SourceAt(offset, size_bytes);
  if (from == nullptr && size_bytes != 0) {
    return ErrorCode::kInvalidBuffer;
  }
  if (is_local_) {
    const ErrorCode error = destination_.CopyTo(offset, from, size_bytes, IsSourceByStream());
    if (error != ErrorCode::kOk) {
      return error;
    }
    if (size_bytes <= kQuickBytes && run.bits() == units_.FullOf(unit)) {
      arrived_.Fill(unit, round);
    } else {
      arrived_.Add(unit, run.bits());
    }
    return ErrorCode::kOk;
  }
  const shm::Location& data = answer_.data;
  const client::RemoteAddress place =
      size_bytes == 0  // nothing has a place there
          ? receiver_.place()
          : client::RemoteAddress{peer_, client::SegmentOf(data), data.address + offset};
  // Short ones are copied on their way, so that the send need not wait until they are there.
  const bool is_short = size_bytes <= kShortPut && !IsSourceByStream() && data.flags == 0;
  if (!is_short) {
    needs_quiet_.store(true, std::memory_order_relaxed);  // before acting_ says that it is put
  }
  return front_end->one_sided->Put(
      context_, place, from, size_bytes, receiver_.AddTo(ArrivedOffset(unit), run.bits()),
      is_short ? client::WhenDone::kAtReturn : client::WhenDone::kAtQuiet);
}

// Pairs with the receiver's TellOfRest: either it sees what was changed, or this sees that it
// rests.
void PartitionedSend::TellReceiver() {
  if (is_local_ && shm::Load(words_.block().receiver_rests, std::memory_order_seq_cst) != 0) {
    front_end->one_sided->TellOfChange(peer_);
  }
}

// ---- Progress -----------------------------------------------------------------------------------

// A mistake of a kernel is told at once.
bool PartitionedSend::IsDone() {
  return IsOver() || (prequest_ != nullptr && prequest_->HasNoted());
}

bool PartitionedSend::IsOver() {
  if (!is_active()) {
    return true;
  }
  if (is_local_ && units_.count() == 1 && !has_prequest_.load(std::memory_order_relaxed) &&
      is_settled_.load(std::memory_order_acquire) && arrived_.is_there() &&
      arrived_.IsFull(0, round())) {
    return true;
  }
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && AdvanceLocked();
}

bool PartitionedSend::IsBusy() { return !IsOver(); }

Watched::Progress PartitionedSend::AdvanceAll() {
  (void)IsOver();
  return {};
}

bool PartitionedSend::AdvanceLocked() {
  const uint64_t this_round = round();
  if (is_done_) {
    return true;
  }
  (void)IsOfferGone();
  if (prequest_ != nullptr) {
    FlushLocked(this_round);
  }
  SenderBlock& block = words_.block();
  if (SettleLocked() && answer_.error != 0) {
    if (AreAllReadiedLocked(this_round)) {
      SetFailure(Refusal());
    }
  } else if (is_settled_.load(std::memory_order_relaxed) && words_.IsCleared(this_round)) {
    MoveReadyLocked(this_round);
    if (IsOverLocked(this_round)) {
      is_done_ = true;
      TellOwnThread();
      return true;
    }
  }
  if (const uint64_t error = shm::LoadAcquire(block.receiver_error); error != 0) [[unlikely]] {
    SetFailure({ErrorClassOf(error), "the receiver cannot go on with this message"});
  }
  // A receiver that has begun this round has ended it, too, before it freed its request.
  LookForEnd(shm::LoadAcquire(block.receiver_ended) != 0 && !words_.IsCleared(this_round));
  return is_done_ = has_failed();
}

// Marks partitions that kernels have readied in units that stay incomplete. Breaks the message if
// ferryd cannot move a unit: that never arrives, and the other side has to hear of it.
void PartitionedSend::FlushLocked(uint64_t this_round) {
  const uint64_t now_ns = MonotonicNs();
  if (now_ns >= next_flush_ns_) {
    next_flush_ns_ = now_ns + kStaleOfKernelsNs;
    prequest_->Flush(this_round, taken_units_);
    if (Failure failure = prequest_->FindRefused(this_round); !failure.ok()) [[unlikely]] {
      Break(std::move(failure));
    }
  }
}

// Moves ready units. A receiver whose kernels wait may have no host thread that takes them.
void PartitionedSend::MoveReadyLocked(uint64_t this_round) {
  const bool may_take = answer_.can_take == 0 || prequest_ != nullptr;
  const uint64_t now_ns = may_take ? MonotonicNs() : 0;
  const bool takes_stale = may_take && now_ns >= next_look_ns_;
  if (takes_stale) {
    seen_.resize(units_.count());
  }
  // Local from the last one on: the receiver begins with the first, so each of the two copies
  // mostly the same data in each round, and finds them in its core's caches.
  bool is_first = true;
  for (uint32_t end = units_.count(); is_local_ && end > taken_units_;) {
    end -= MoveFullLocked(end - 1, this_round, &is_first);
  }
  for (uint32_t unit = taken_units_; (!is_local_ || takes_stale) && unit < units_.count(); ++unit) {
    Move(unit, this_round);
    if (takes_stale) {
      MoveStale(unit, this_round);
    }
  }
  while (taken_units_ < units_.count() && words_.IsTaken(taken_units_, this_round)) {
    ++taken_units_;
  }
  if (takes_stale) {
    next_look_ns_ = now_ns + kStaleNs;
  }
}

// Moves ready parts of a unit that has not changed since the last look.
void PartitionedSend::MoveStale(uint32_t unit, uint64_t this_round) {
  const uint64_t ready = shm::LoadAcquire(words_.of(unit).ready);
  if (std::exchange(seen_[unit], ready) != ready) {
    return;
  }
  MoveBits(unit, words_.Take(unit, this_round, false), this_round);
}

// Returns true if the round is over. Local: all parts have arrived, of which the receiver moves
// some. Remote: all parts were put, and the puts are over. A quiet context is not enough, since a
// thread may be about to put parts that it has taken.
bool PartitionedSend::IsOverLocked(uint64_t this_round) {
  if (is_local_) {
    arrived_units_ = arrived_.FirstMissing(arrived_units_, this_round);
    return arrived_units_ == units_.count() && AreAskedLocked(this_round);
  }
  if (taken_units_ != units_.count() || acting_.load(std::memory_order_acquire) != 0 ||
      !AreAskedLocked(this_round)) {
    return false;
  }
  if (!needs_quiet_.load(std::memory_order_relaxed)) {
    return true;
  }
  if (!front_end->one_sided->IsQuiet(context_)) {
    return false;
  }
  if (const ErrorCode error = front_end->one_sided->Quiet(context_, nullptr);
      error != ErrorCode::kOk) {
    Break(FailureOf(error));
  }
  return true;
}

// Returns true if all that kernels have asked ferryd for is over.
bool PartitionedSend::AreAskedLocked(uint64_t this_round) {
  Failure failure;
  if (prequest_ != nullptr && !prequest_->AreAsked(this_round, &failure)) {
    return false;
  }
  if (!failure.ok()) {
    Break(std::move(failure));
  }
  return true;
}

bool PartitionedSend::AreAllReadiedLocked(uint64_t this_round) {
  while (readied_units_ < units_.count() && words_.IsReady(readied_units_, this_round)) {
    ++readied_units_;
  }
  return readied_units_ == units_.count();
}

}  // namespace ferry::mpi
