// NicMover: the operations of a round, and how they are given to the NIC. See nic_mover.h.
#include <algorithm>
#include <utility>

#include "daemon/triggered/nic_mover.h"

namespace ferry::daemon {

using transport::DeferredTrigger;
using transport::NicCounter;
using Place = DeferredPool::Place;

namespace {

// In a context, beside the pair's number.
constexpr uint64_t kPosted = 1U << 2;  // by this class, in the NIC's place
constexpr uint32_t kKindShift = 3;

}  // namespace

// ---- Which operations there are -----------------------------------------------------------------

uint32_t NicMover::parts() const {
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, (bytes() + kNicChunkBytes - 1) / kNicChunkBytes));
}

NicMover::Chunk NicMover::ChunkAt(uint32_t index) const {
  const uint64_t offset = index * kNicChunkBytes;
  return {pair_->message() + offset, offset, std::min(bytes() - offset, kNicChunkBytes)};
}

uint64_t NicMover::ContextOf(const Operation& operation) const {
  return transport::kDirectContext | PairContextOf(pair_->number()) |
         static_cast<uint64_t>(operation.kind) << kKindShift |
         (operation.place == Place::kSoftware ? kPosted : 0);
}

StatusOr<DeferredTrigger> NicMover::TriggerOf(const Operation& operation) {
  if (operation.kind == Kind::kStore || operation.kind == Kind::kFollow) {
    return DeferredTrigger{*moved_, operation.round * parts()};
  }
  if (operation.is_shared) {
    StatusOr<NicCounter> counter = shared_->Counter();
    FERRY_RETURN_IF_ERROR(counter.status());
    return DeferredTrigger{*counter, operation.round - doorbell_.base};
  }
  if (!trigger_) {
    FERRY_RETURN_IF_ERROR(OpenTrigger());
  }
  return DeferredTrigger{*trigger_, operation.round * addends()};
}

StatusOr<NicCounter> NicMover::DoneCounterOf(Kind kind) {
  switch (kind) {
    case Kind::kMove:
      return *moved_;
    case Kind::kClear:
      return *cleared_;
    case Kind::kStore:
    case Kind::kFollow:
      return *stored_;
    case Kind::kBegin:
      if (!begun_) {
        FERRY_RETURN_IF_ERROR(OpenCounter(&begun_));
      }
      return *begun_;
  }
  return Status(ErrorCode::kInternal, "no such operation");
}

bool NicMover::IsReached(const Operation& operation) {
  if (IsFiredByStarts(operation.kind) && !page_.Counts(operation.round)) {
    return rung_ >= operation.round;
  }
  const StatusOr<DeferredTrigger> trigger = TriggerOf(operation);
  return trigger.ok() && nic_.deferred.ReadCounter(trigger->counter) >= trigger->threshold;
}

// ---- Arming -------------------------------------------------------------------------------------

void NicMover::Want(uint64_t round) {
  wanted_ = std::max(wanted_, round);
  ArmWanted();
}

void NicMover::ArmWanted() {
  while (is_open_ && other_ && !is_closed_ && armed_ < wanted_ &&
         armed_ - rounds_done_ < kRoundsAhead) {
    // A NIC keeps the order of what waits for one counter only.
    if (armed_ > rounds_done_ && IsShared(armed_ + 1) != IsShared(armed_)) {
      break;
    }
    const uint64_t round = ++armed_;
    if (pair_->is_send()) {
      if (is_regular_send() && IsShared(round)) {
        Arm(Kind::kBegin, round);
      }
      for (uint32_t chunk = 0; chunk < parts(); ++chunk) {
        Arm(Kind::kMove, round, chunk);
      }
    } else if (!pair_->is_ready()) {
      Arm(Kind::kClear, round);
    }
    Arm(Kind::kStore, round);
    for (Pair* const follower : pair_->followers) {
      if (NicMover* const next = NextOf(follower);
          next != nullptr && next->LeaveToNic(*pair_, round)) {
        Arm(Kind::kFollow, round, 0, follower);
      }
    }
  }
}

// The mover of a follower that has not gone, if this NIC's operations reach it. Null: it has none,
// or another NIC's.
NicMover* NicMover::NextOf(const Pair* follower) const {
  if (std::ranges::find(pair_->followers, follower) == pair_->followers.end() ||
      follower->error != ErrorCode::kOk || follower->mover == nullptr ||
      !follower->mover->is_nic()) {
    return nullptr;
  }
  auto* const mover = static_cast<NicMover*>(follower->mover.get());
  return &mover->nic_ == &nic_ && mover->is_open_ && !mover->is_closed_ ? mover : nullptr;
}

// Returns true if the receive's mover is to add that round to this send's trigger. Then that mover
// is asked for all later rounds, too; TakeFollowed adds the rounds that remain for this class.
bool NicMover::LeaveToNic(const Pair& followed, uint64_t round) {
  const auto found = std::ranges::find(pair_->follows, &followed);
  if (found == pair_->follows.end()) {
    return false;
  }
  followed_.resize(pair_->follows.size());
  Followed& known = followed_[static_cast<size_t>(found - pair_->follows.begin())];
  known.by_nic_from = std::min(known.by_nic_from, round);
  return true;
}

// Adds what has come of the messages that it follows, and the NIC does not add.
void NicMover::TakeFollowed() {
  followed_.resize(pair_->follows.size());
  for (size_t i = 0; i < followed_.size(); ++i) {
    Followed& known = followed_[i];
    const uint64_t come = std::min(pair_->follows[i]->rounds, known.by_nic_from - 1);
    if (come > known.added) {
      nic_.deferred.AddToCounter(*trigger_, come - known.added);
      known.added = come;
    }
  }
}

void NicMover::Arm(Kind kind, uint64_t round, uint32_t chunk, Pair* follower) {
  if (is_closed_) {
    return;  // what was armed before has failed
  }
  Operation operation{.kind = kind,
                      .chunk = chunk,
                      .round = round,
                      .is_shared = IsFiredByStarts(kind) && IsShared(round),
                      .follower = follower};
  operation.place = nic_.pool.Begin(job_);
  ErrorCode code = ErrorCode::kOk;
  if (operation.place == Place::kNic) {
    code = ArmOnNic(operation);
    if (code != ErrorCode::kOk) {
      nic_.pool.Refused(job_);
      operation.place = Place::kSoftware;
    } else if (operation.is_shared) {
      shared_->NoteArmed();
    }
  }
  operations_.push_back(operation);
  if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock &&
      code != ErrorCode::kLimitExceeded) {
    keeper_.OnBroken(*pair_, code);
  }
}

ErrorCode NicMover::ArmOnNic(const Operation& operation) {
  const Kind kind = operation.kind;
  const StatusOr<DeferredTrigger> trigger = TriggerOf(operation);
  const StatusOr<NicCounter> done = DoneCounterOf(kind);
  if (!trigger.ok() || !done.ok()) {
    return ErrorCode::kWouldBlock;  // no counter is left
  }
  if (kind == Kind::kMove && bytes() > 0) {
    const Chunk chunk = ChunkAt(operation.chunk);
    return nic_.deferred.ArmWrite({.trigger = *trigger,
                                   .done = *done,
                                   .peer = peer_on_nic_,
                                   .local = chunk.local,
                                   .region = message_.region().handle,
                                   .bytes = chunk.bytes,
                                   .remote_address = other_->address + chunk.offset,
                                   .key = other_->key,
                                   .context = ContextOf(operation)});
  }
  const NicPlace to = PlaceOf(operation);
  return nic_.deferred.ArmIncrement(
      {.trigger = *trigger,
       .done = *done,
       .peer = kind == Kind::kMove || kind == Kind::kClear ? peer_on_nic_ : nic_.self,
       .remote_address = to.address,
       .key = to.key,
       .context = ContextOf(operation)});
}

// Returns the place whose word an increment adds to.
NicPlace NicMover::PlaceOf(const Operation& operation) const {
  const auto place_of = [](const progress::PinnedMemory& memory) {
    return NicPlace{memory.region().remote_base, memory.region().key};
  };
  switch (operation.kind) {
    case Kind::kMove:
    case Kind::kClear:
      return *other_;
    case Kind::kStore:
      return place_of(done_word_);
    case Kind::kBegin:
      return place_of(target_);
    case Kind::kFollow:
      return place_of(NextOf(operation.follower)->target_);
  }
  return {};
}

}  // namespace ferry::daemon
