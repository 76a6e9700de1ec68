// PartitionedReceive: taking parts from the sender, and carrying a round on to its end.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#include "common/clock.h"
#include "mpi/base/connection.h"
#include "mpi/partitioned/receive.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

// How often the receiver looks at the sender's words, to which the sender is adding; it looks at
// once where the sender has left it a unit. Parts of a unit that is not full are taken if the unit
// has not changed between two looks.
constexpr uint64_t kLookEveryNs = 2'000;

}  // namespace

bool PartitionedReceive::IsDone() {
  if (!is_active() || is_complete_.load(std::memory_order_acquire)) {
    return true;
  }
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && AdvanceLocked();
}

Failure PartitionedReceive::HasArrived(int partition, bool* has_arrived) {
  const auto is_there = [&] {
    return !is_active() || is_complete_.load(std::memory_order_acquire) || has_failed() ||
           (is_matched_.load(std::memory_order_acquire) && visible_.is_there() &&
            visible_.Have(NeededFor(partition), round()));
  };
  *has_arrived = is_there();
  if (!*has_arrived) {
    if (!is_matched_.load(std::memory_order_relaxed)) {
      (void)front_end->peers->Poll();
    }
    (void)IsDone();
    *has_arrived = is_there();
  }
  return {};
}

bool PartitionedReceive::IsBusy() {
  return is_active() && (has_prequest_.load(std::memory_order_relaxed)
                             ? !IsDone()
                             : !is_matched_.load(std::memory_order_acquire));
}

Watched::Progress PartitionedReceive::AdvanceAll() {
  if (has_prequest_.load(std::memory_order_relaxed)) {
    (void)IsDone();
    return {};
  }
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    (void)MatchLocked();
  }
  return {};
}

bool PartitionedReceive::HasNews() {
  if (!is_matched_.load(std::memory_order_acquire) || !arrived_.is_there()) {
    return true;
  }
  return shm::LoadRelaxed(arrived_.of(missed_unit_.load(std::memory_order_relaxed))) !=
             missed_word_.load(std::memory_order_relaxed) ||
         shm::LoadRelaxed(words().left) != seen_left_.load(std::memory_order_relaxed);
}

bool PartitionedReceive::AdvanceLocked() {
  if (is_complete_.load(std::memory_order_relaxed) || has_failed()) {
    return true;
  }
  if (MatchLocked() && visible_.is_there()) {
    if (ArriveLocked()) {
      return true;
    }
    if (TakeReadyLocked() && ArriveLocked()) {
      return true;
    }
    if (const uint64_t error = shm::LoadAcquire(words().sender_error); error != 0) [[unlikely]] {
      SetFailure({ErrorClassOf(error), "the sender cannot go on with this message"});
    }
  }
  LookForEnd(HasSenderEnded());
  return has_failed();
}

// Looks for parts that have arrived. Returns true if all have.
bool PartitionedReceive::ArriveLocked() {
  CopyOutLocked();
  visible_units_ = visible_.FirstMissing(visible_units_, round());
  if (visible_units_ < units_.count()) {
    missed_unit_.store(visible_units_, std::memory_order_relaxed);
    missed_word_.store(shm::LoadRelaxed(visible_.of(visible_units_)), std::memory_order_relaxed);
    return false;
  }
  is_complete_.store(true, std::memory_order_release);
  TellOwnThread();
  if (landing_.data != nullptr) {
    (void)ClearLocked();
  }
  return true;
}

// ---- Taking -------------------------------------------------------------------------------------

// Takes all ready parts. Returns true if there were some.
bool PartitionedReceive::TakeReadyLocked() {
  if (!can_take_ || cleared_ < round() || taken_units_ == units_.count()) {
    return false;
  }
  bool has_taken = false;
  for (bool goes_on = true; goes_on;) {
    // Pairs with the sender's LeaveToReceiver.
    const uint64_t left = shm::LoadAcquire(words().left);
    if (seen_left_.exchange(left, std::memory_order_relaxed) != left) {
      goes_on = TakeOnceLocked(std::min(UnitOfLeft(left) + 1, units_.count()), false);
    } else if (const uint64_t now_ns = MonotonicNs();
               now_ns >= next_look_ns_.load(std::memory_order_relaxed)) {
      next_look_ns_.store(now_ns + kLookEveryNs, std::memory_order_relaxed);
      goes_on = TakeOnceLocked(units_.count(), true);
    } else {
      break;
    }
    has_taken = has_taken || goes_on;
  }
  return has_taken;
}

// Takes parts of the units before `end`. `takes_stale`: also those of units that are not full and
// have not changed since the last look. Returns true if it has taken some.
bool PartitionedReceive::TakeOnceLocked(uint32_t end, bool takes_stale) {
  const uint64_t took = took_;
  for (uint32_t unit = taken_units_; unit < end;) {
    const uint64_t before = took_;
    unit += TakeFullLocked(unit, took_ == took);
    if (took_ == before) {
      if (takes_stale) {
        PullLocked(unit, TakeStaleLocked(unit));
      }
      ++unit;
    }
  }
  while (taken_units_ < units_.count() && sender_words_.IsTaken(taken_units_, round())) {
    ++taken_units_;
  }
  return took_ != took;
}

// Takes full units from this one on, and copies them at once; or some of this one's parts. Returns
// how many units are done with. `is_first`: nothing was taken before, in this look.
uint32_t PartitionedReceive::TakeFullLocked(uint32_t unit, bool is_first) {
  const uint64_t this_round = round();
  const uint64_t most = share_.IsOwn(unit) ? units_.bytes_at_once() : 0;
  uint32_t count = 0;
  uint64_t other_bits = 0;  // of a unit of which the other side has taken something, or may do so
  for (uint64_t bytes = 0; unit + count < units_.count() && (count == 0 || bytes < most);
       bytes += units_.unit_bytes()) {
    const uint32_t at = unit + count;
    const bool is_alone =
        is_first && count == 0 && sender_words_.IsNextTaken(at, this_round, share_);
    const uint64_t bits = sender_words_.Take(at, this_round, true, share_, is_alone);
    if (bits != units_.FullOf(at)) {
      other_bits = bits;
      break;
    }
    ++count;
  }
  if (count != 0) {
    TellOfTaken(uint64_t{count} * units_.per_unit * units_.pieces);
    const uint64_t offset = unit * units_.unit_bytes();
    if (!PullBytesLocked(offset,
                         std::min(count * units_.unit_bytes(), units_.total_bytes() - offset))) {
      return 0;
    }
    for (uint32_t i = 0; i + 1 < count; ++i) {
      arrived_.Fill(unit + i, this_round);
    }
    arrived_.Add(unit + count - 1, units_.FullOf(unit + count - 1));
    TellSender();
  }
  PullLocked(unit + count, other_bits);
  return count;
}

// The sender leaves it more then.
void PartitionedReceive::TellOfTaken(uint64_t parts) {
  took_ += parts;
  if (units_.unit_bytes() >= kLeastCounted) {
    shm::StoreRelaxed(sender_words_.block().took, PartsOfRound(round(), took_));
  }
}

uint64_t PartitionedReceive::TakeStaleLocked(uint32_t unit) {
  const uint64_t ready = shm::LoadAcquire(sender_words_.of(unit).ready);
  return std::exchange(seen_[unit], ready) == ready ? sender_words_.Take(unit, round(), false) : 0;
}

void PartitionedReceive::PullLocked(uint32_t unit, uint64_t bits) {
  if (bits == 0) {
    return;
  }
  TellOfTaken(static_cast<uint64_t>(std::popcount(bits)));
  while (bits != 0) {
    const Units::Run run = Units::TakeRun(&bits);
    const auto [offset, size_bytes] = units_.BytesOf(unit, run);
    if (!PullBytesLocked(offset, size_bytes)) {
      return;
    }
    arrived_.Add(unit, run.bits());
  }
  TellSender();
}

// False: it failed, as both sides know.
bool PartitionedReceive::PullBytesLocked(uint64_t offset, uint64_t size_bytes) {
  const bool lands = landing_.data != nullptr;
  std::byte* const to = (lands ? landing_.data : static_cast<std::byte*>(payload_.data())) + offset;
  const ErrorCode error = source_.CopyFrom(offset, to, size_bytes, !lands && is_by_stream_);
  if (error == ErrorCode::kOk) {
    return true;
  }
  Failure failure = FailureOf(error);
  Break(failure.ok() ? Failure{MPI_ERR_OTHER, "a partition could not be copied"}
                     : std::move(failure));
  return false;
}

// ---- Landing ------------------------------------------------------------------------------------

void PartitionedReceive::CopyOutLocked() {
  if (landing_.data == nullptr) {
    return;
  }
  const uint64_t this_round = round();
  for (uint32_t unit = visible_units_; unit < units_.count(); ++unit) {
    // The sender may have written anything there: bits of no partition would lead out of the
    // memory.
    const uint64_t full = units_.FullOf(unit);
    const uint64_t before = visible_.Bits(unit, this_round);
    const uint64_t now = before | (arrived_.Bits(unit, this_round) & full);
    uint64_t bits = now & ~before;
    if (bits == 0) {
      continue;
    }
    while (bits != 0) {
      const auto [offset, size_bytes] = units_.BytesOf(unit, Units::TakeRun(&bits));
      if (Failure failure = Place(offset, size_bytes, landing_.data + offset); !failure.ok()) {
        Break(std::move(failure));
        return;
      }
    }
    shm::StoreRelease(visible_.of(unit), BaseOf(this_round, full) + now);  // Pairs with HasArrived.
  }
}

Failure PartitionedReceive::Place(uint64_t offset, uint64_t size_bytes,
                                  const std::byte* from) const {
  if (size_bytes != 0 && payload_.is_dense() && !is_by_stream_) {
    shm::CopyWords(static_cast<std::byte*>(payload_.data()) + offset, from, size_bytes);
    return {};
  }
  return payload_.CopyIn(from, static_cast<int64_t>(offset), static_cast<int64_t>(size_bytes));
}

}  // namespace ferry::mpi
