#include "daemon/triggered/nic_mover.h"

#include <algorithm>
#include <utility>

#include "shm/counter.h"

namespace ferry::daemon {

using transport::DeferredTrigger;
using transport::NicCounter;
using Place = DeferredPool::Place;

namespace {

// In a context, beside the pair's number.
constexpr uint64_t kPosted = 1U << 2;  // by this class, in the NIC's place
constexpr uint32_t kKindShift = 3;

}  // namespace

NicMover::NicMover(Pair& pair, PairKeeper& keeper, DeferredNic& nic, transport::PeerId peer,
                   DeferredPool::Job job, uint32_t weight)
    : pair_(&pair),
      keeper_(keeper),
      nic_(nic),
      peer_(peer),
      peer_on_nic_(nic.whole.PeerOn(peer, nic.index)),
      job_(job),
      resources_(pair, nic, [this](ErrorCode code) { OnSettled(code); }) {
  nic_.Join(job_, weight, bytes());
  resources_.Begin();
}

NicMover::~NicMover() { Close(); }

void NicMover::OnSettled(ErrorCode code) {
  if (code != ErrorCode::kOk) {
    return keeper_.OnNicRefused(*pair_);
  }
  is_open_ = true;
  OfferPage();
  keeper_.Watch(*pair_);
  keeper_.OnNicOpen(*pair_, resources_.TargetPlace());
}

void NicMover::Connect(NicPlace other) {
  if (!other_) {
    other_ = other;
    OfferPage();
    ArmWanted();
    keeper_.Watch(*pair_);
  }
}

// Offers the page once the pair stays with the NIC for good.
void NicMover::OfferPage() {
  if (is_open_ && other_) {
    resources_.OfferPage();
  }
}

// ---- The doorbell -------------------------------------------------------------------------------

// Takes over what the rank has announced and started.
void NicMover::TakeStarts(uint64_t now_ns) {
  Starts& starts = pair_->starts;
  if (const ErrorCode code = starts.Refresh(is_idle()); code != ErrorCode::kOk) {
    return keeper_.OnBroken(*pair_, code);
  }
  resources_.page().Refresh();
  if (starts.announced() > wanted_) {
    if (has_starts()) {
      Share();
    }
    Want(starts.announced());
  }
  if (shared_ != nullptr) {
    shared_->Ring();
  }
  const uint64_t made = starts.Made();
  if (made >= shm::kCounterFailure) {
    return keeper_.OnBroken(*pair_, ErrorCode::kCancelled);
  }
  if (made > ring_waits_) {
    Want(made);
    ring_waits_ = made;
    ring_waits_ns_ = now_ns;
  }
}

void NicMover::Share() {
  const SharedDoorbell& shared = pair_->starts.shared();
  if (!(shared == doorbell_)) {
    shared_ = shared.word != nullptr ? nic_.triggers.Hold(shared.word) : nullptr;
  }
  doorbell_ = shared;
}

// A start before the last round is done would undo the even-count rule. Some NICs' counters are
// read late, so one that seems too early waits for them. A ready send's trigger that the rank may
// yet ring counts the starts by the shared doorbell, too; one that it does ring knows of all but
// the start that a device has had made by a ring (Pairs::StartByRing).
void NicMover::TakeRing() {
  if (ring_waits_ <= rung_ ||
      ring_waits_ > nic_.deferred.ReadCounter(resources_.moved()) / parts() + 1) {
    return;
  }
  if (is_regular_send() &&
      !resources_.page().Counts(ring_waits_)) {  // kBegin adds its shared starts
    uint64_t own = 0;
    for (uint64_t round = rung_ + 1; round <= ring_waits_; ++round) {
      own += IsShared(round) ? 0 : 1;
    }
    if (own != 0) {
      nic_.deferred.AddToCounter(*resources_.trigger(), own);
    }
    trigger_rung_ = ring_waits_;
  } else if (resources_.trigger() && (!IsShared(ring_waits_) || nic_.gives_pages())) {
    if (resources_.page().Counts(ring_waits_)) {
      trigger_rung_ = ring_waits_ - 1;
    }
    nic_.deferred.AddToCounter(*resources_.trigger(), ring_waits_ - trigger_rung_);
    trigger_rung_ = ring_waits_;
  }
  rung_ = ring_waits_;
}

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
    return DeferredTrigger{resources_.moved(), operation.round * parts()};
  }
  if (operation.is_shared) {
    StatusOr<NicCounter> counter = shared_->Counter();
    FERRY_RETURN_IF_ERROR(counter.status());
    return DeferredTrigger{*counter, operation.round - doorbell_.base};
  }
  if (!resources_.trigger()) {
    FERRY_RETURN_IF_ERROR(OpenTrigger());
  }
  return DeferredTrigger{*resources_.trigger(), operation.round * addends()};
}

// A ready send's, of its own.
Status NicMover::OpenTrigger() {
  FERRY_RETURN_IF_ERROR(resources_.OpenTrigger());
  if (rung_ != 0) {
    nic_.deferred.AddToCounter(*resources_.trigger(), rung_);
    trigger_rung_ = rung_;
  }
  return Status();
}

StatusOr<NicCounter> NicMover::DoneCounterOf(Kind kind) {
  switch (kind) {
    case Kind::kMove:
      return resources_.moved();
    case Kind::kClear:
      return resources_.cleared();
    case Kind::kStore:
    case Kind::kFollow:
      return resources_.stored();
    case Kind::kBegin:
      return resources_.Begun();
  }
  return Status(ErrorCode::kInternal, "no such operation");
}

bool NicMover::IsReached(const Operation& operation) {
  if (IsFiredByStarts(operation.kind) && !resources_.page().Counts(operation.round)) {
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
      nic_.deferred.AddToCounter(*resources_.trigger(), come - known.added);
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
                                   .region = resources_.message().region().handle,
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
      return place_of(resources_.done_word());
    case Kind::kBegin:
      return place_of(resources_.target());
    case Kind::kFollow:
      return place_of(NextOf(operation.follower)->resources_.target());
  }
  return {};
}

// ---- Running ------------------------------------------------------------------------------------

uint32_t NicMover::Advance(uint64_t now_ns) {
  if (!is_open_) {
    return 0;
  }
  if (pair_->error != ErrorCode::kOk) {
    HoldFailure(now_ns);
    return 0;
  }
  TakeStarts(now_ns);
  if (pair_->error == ErrorCode::kOk && !pair_->follows.empty()) {
    TakeFollowed();
  }
  const uint32_t done = pair_->error == ErrorCode::kOk && is_active() ? Poll(now_ns) : 0;
  if (pair_->error != ErrorCode::kOk) {
    return done;
  }
  SetDeadline();
  if (rounds_done_ == pair_->rounds) {
    return done;
  }
  keeper_.OnRounds(*pair_, rounds_done_);
  return done + 1;
}

bool NicMover::IsDue() const {
  return is_open_ &&
         (pair_->error == ErrorCode::kOk ? is_active() || pair_->is_armed() : !has_held_);
}

uint32_t NicMover::Poll(uint64_t now_ns) {
  TakeRing();
  uint32_t done = 0;
  for (size_t i = 0; i < operations_.size() && !is_closed_; ++i) {
    Operation& operation = operations_[i];
    if (operation.phase == Phase::kDone || (operation.due_ns == 0 && !IsReached(operation))) {
      continue;
    }
    if (operation.due_ns == 0) {
      operation.due_ns = std::max<uint64_t>(now_ns, 1);
      if (resources_.page().Counts(operation.round)) {
        nic_.deferred.ExpectEnds();  // this daemon has not rung
      }
    }
    if (operation.place == Place::kSoftware && operation.phase == Phase::kWaiting) {
      done += Perform(&operation, now_ns);
    }
  }
  Retire();
  return done;
}

void NicMover::SetDeadline() {
  uint64_t due_ns = UINT64_MAX;
  for (const Operation& operation : operations_) {
    if (operation.phase != Phase::kDone && operation.due_ns != 0) {
      due_ns = std::min(due_ns, operation.due_ns);
    }
  }
  const bool is_early = ring_waits_ > rung_ && ring_waits_ns_ < due_ns;
  due_ns = is_early ? ring_waits_ns_ : due_ns;
  keeper_.SetDeadline(*pair_, due_ns == UINT64_MAX ? due_ns : due_ns + nic_.timeout_ns,
                      is_early ? ErrorCode::kInvalidRequest : ErrorCode::kTimeout);
}

// Returns 1 if the operation is under way or over.
uint32_t NicMover::Perform(Operation* operation, uint64_t now_ns) {
  if (const Kind kind = operation->kind; kind != Kind::kMove && kind != Kind::kClear) {
    if (kind == Kind::kStore) {
      pair_->done.Add(1);
    } else if (NicMover* const next = kind == Kind::kBegin ? this : NextOf(operation->follower);
               next != nullptr) {
      nic_.deferred.AddToCounter(*next->resources_.trigger(), 1);
    }
    EndOperation(operation);
    return 1;
  }
  const ErrorCode code = PostWrite(*operation, now_ns);
  if (code == ErrorCode::kWouldBlock) {
    return 0;
  }
  operation->phase = Phase::kPosted;
  if (code != ErrorCode::kOk) {
    keeper_.OnBroken(*pair_, code);
  }
  return 1;
}

ErrorCode NicMover::PostWrite(const Operation& operation, uint64_t now_ns) {
  transport::RmaRequest request = {.peer = peer_on_nic_,
                                   .local = &nic_.scratch,
                                   .region = nic_.scratch_region.handle,
                                   .remote_address = other_->address,
                                   .key = other_->key,
                                   .bytes = sizeof(nic_.scratch),
                                   .context = ContextOf(operation)};
  if (operation.kind == Kind::kMove && bytes() > 0) {
    const Chunk chunk = ChunkAt(operation.chunk);
    request.local = chunk.local;
    request.region = resources_.message().region().handle;
    request.remote_address += chunk.offset;
    request.bytes = chunk.bytes;
  }
  return nic_.transport.Write(request, transport::Placement::kLocal, now_ns);
}

void NicMover::EndOperation(Operation* operation) {
  operation->phase = Phase::kDone;
  nic_.pool.End(job_, operation->place);
  if (operation->is_shared && operation->place == Place::kNic) {
    shared_->NoteOver(/*is_left=*/false);
  }
}

// A place at the other end that is not there any more: its request was freed, which its daemon may
// tell a moment later. A follower that has gone is nothing to this pair.
ErrorCode NicMover::MeaningOf(const Operation& operation, ErrorCode code) const {
  if (operation.kind == Kind::kFollow && NextOf(operation.follower) == nullptr) {
    return ErrorCode::kOk;
  }
  return operation.kind != Kind::kStore && code == ErrorCode::kInvalidBuffer
             ? ErrorCode::kInvalidRequest
             : code;
}

// Operations of one context end in order, or else are alike.
void NicMover::OnEnd(uint64_t context, ErrorCode code) {
  const auto found = std::ranges::find_if(operations_, [&](const Operation& operation) {
    return operation.phase != Phase::kDone && ContextOf(operation) == context &&
           (operation.place == Place::kNic || operation.phase == Phase::kPosted);
  });
  if (found == operations_.end()) {
    return;  // it was closed meanwhile
  }
  if (code == ErrorCode::kOk && found->kind == Kind::kMove && found->place == Place::kSoftware) {
    nic_.deferred.AddToCounter(resources_.moved(), 1);  // as the NIC would
  }
  const ErrorCode meaning = code == ErrorCode::kOk ? code : MeaningOf(*found, code);
  EndOperation(&*found);
  if (meaning != ErrorCode::kOk) {
    return keeper_.OnBroken(*pair_, meaning);
  }
  Retire();
  keeper_.Watch(*pair_);
}

// Takes out the rounds that are done, and arms further ones.
void NicMover::Retire() {
  while (!operations_.empty()) {
    const uint64_t round = operations_.front().round;
    const auto end = std::ranges::find_if(
        operations_, [round](const Operation& operation) { return operation.round != round; });
    if (std::any_of(operations_.begin(), end,
                    [](const Operation& o) { return o.phase != Phase::kDone; })) {
      break;
    }
    operations_.erase(operations_.begin(), end);
    rounds_done_ = round;
  }
  ArmWanted();
}

// ---- Ends ---------------------------------------------------------------------------------------

// Pairs that are made anew should not go the same way again before the NIC is known to be well.
void NicMover::OnFailed() {
  if (pair_->error == ErrorCode::kNodeUnreachable || pair_->error == ErrorCode::kTimeout) {
    nic_.whole.Doubt(peer_, nic_.index);
  }
  if (!resources_.is_pinning()) {
    Close();
  }
  keeper_.Watch(*pair_);
}

// An increment of the NIC under way may undo what the CPU adds: then it is added again, as long as
// there may be one.
void NicMover::HoldFailure(uint64_t now_ns) {
  pair_->done.Fail(pair_->error);
  if (hold_until_ns_ == 0) {
    hold_until_ns_ = now_ns + nic_.timeout_ns;
    keeper_.SetDeadline(*pair_, hold_until_ns_, pair_->error);
  }
  has_held_ = now_ns >= hold_until_ns_;
}

// Nothing is armed any more. Operations that the NIC has begun may still read the message of a send
// (ReleaseMemory says so), and add to the done word.
void NicMover::Close() {
  if (is_closed_) {
    return;
  }
  is_closed_ = true;
  for (const Operation& operation : operations_) {
    if (operation.phase == Phase::kDone) {
      continue;
    }
    nic_.pool.End(job_, operation.place);
    if (operation.is_shared && operation.place == Place::kNic) {
      shared_->NoteOver(/*is_left=*/true);
    }
  }
  operations_.clear();
  shared_.reset();
  resources_.Close();
}

// While its target is being pinned, its counters stay: the registrar binds them. The done word goes
// at once, whatever the NIC still holds of the message: an increment that fires late then hits
// nothing.
void NicMover::Leave() {
  if (resources_.is_pinning()) {
    resources_.CancelPinning();
  } else {
    Close();
  }
  resources_.Leave();
  nic_.Leave(job_, bytes());
  pair_ = nullptr;
}

bool NicMover::TryEnd() {
  if (resources_.is_pinning()) {
    return false;
  }
  Close();
  return true;
}

}  // namespace ferry::daemon
