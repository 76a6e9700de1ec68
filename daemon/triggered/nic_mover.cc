// NicMover: its life, the doorbell, and what becomes of operations. See nic_mover.h;
// nic_mover_operations.cc has what there is to be done, and how the NIC is told of it.
#include "daemon/triggered/nic_mover.h"

#include <algorithm>
#include <utility>

#include "shm/counter.h"

namespace ferry::daemon {

using transport::NicCounter;
using Place = DeferredPool::Place;

NicMover::NicMover(Pair& pair, PairKeeper& keeper, DeferredNic& nic, transport::PeerId peer,
                   DeferredPool::Job job, uint32_t weight)
    : pair_(&pair),
      keeper_(keeper),
      nic_(nic),
      peer_(peer),
      peer_on_nic_(nic.whole.PeerOn(peer, nic.index)),
      job_(job) {
  nic_.Join(job_, weight, bytes());
  shm::CounterLayout* const done = &pair.layout->done;
  Pin(&done_word_, {.base = reinterpret_cast<std::byte*>(done),
                    .bytes = sizeof(*done),
                    .access = transport::Access::kRemoteWrite,
                    .memory = pair.plan.end.region});
}

NicMover::~NicMover() { Close(); }

// ---- Pinning: the done word, the message of a send, then what the other end writes to -----------

// For this NIC, which may be one of several.
void NicMover::Pin(progress::PinnedMemory* memory, progress::PinRequest request) {
  request.nic = &nic_.transport;
  request.on_end = [this, memory] { OnPinned(*memory); };
  *memory = progress::PinnedMemory(nic_.registrar, std::move(request));
}

void NicMover::PinTarget() {
  const bool is_word = pair_->is_send() || bytes() == 0;
  progress::PinRequest request;
  request.bytes = is_word ? sizeof(*word_) : bytes();
  request.base = is_word ? reinterpret_cast<std::byte*>(word_.get()) : pair_->message();
  if (is_word) {
    request.memory = word_;
  } else {
    request.memory = pair_->memory();
  }
  request.pin = [&deferred = nic_.deferred, base = request.base, size_bytes = request.bytes,
                 counter = pair_->is_send() ? *trigger_ : *moved_,
                 device = is_word ? std::nullopt : pair_->device()] {
    return deferred.PrepareTarget(base, size_bytes, counter, device);
  };
  Pin(&target_, std::move(request));
}

void NicMover::OnPinned(const progress::PinnedMemory& memory) {
  if (pair_ == nullptr || pair_->error != ErrorCode::kOk) {
    return;  // TryEnd goes on
  }
  ErrorCode code = memory.code();
  if (code == ErrorCode::kOk && &memory == &done_word_ && pair_->is_send() && bytes() > 0) {
    return Pin(&message_, {.base = pair_->message(),
                           .bytes = bytes(),
                           .access = transport::Access::kLocal,
                           .memory = pair_->memory(),
                           .device = pair_->device()});
  }
  if (code == ErrorCode::kOk && &memory != &target_) {
    code = OpenCounters();
    if (code == ErrorCode::kOk && has_target()) {
      return PinTarget();
    }
  }
  if (code != ErrorCode::kOk) {
    return keeper_.OnNicRefused(*pair_);
  }
  is_open_ = true;
  OfferPage();
  keeper_.Watch(*pair_);
  NicPlace place;
  if (has_target()) {
    place = {target_.region().remote_base, target_.region().key};
  }
  keeper_.OnNicOpen(*pair_, place);
}

ErrorCode NicMover::OpenCounters() {
  if (nic_.deferred.max_write_bytes() < std::min(bytes(), kNicChunkBytes)) {
    return ErrorCode::kUnsupported;
  }
  const bool clears = !pair_->is_send() && !pair_->is_ready();
  const bool triggers = !pair_->is_ready() || (pair_->is_send() && nic_.gives_pages());
  for (auto* counter :
       {&moved_, &stored_, clears ? &cleared_ : nullptr, triggers ? &trigger_ : nullptr}) {
    if (counter == nullptr) {
      continue;
    }
    if (const Status status = OpenCounter(counter); !status.ok()) {
      return status.code();
    }
  }
  return ErrorCode::kOk;
}

Status NicMover::OpenCounter(std::optional<NicCounter>* counter) {
  StatusOr<NicCounter> opened = nic_.deferred.OpenCounter();
  FERRY_RETURN_IF_ERROR(opened.status());
  *counter = *opened;
  return Status();
}

// A ready send's, of its own.
Status NicMover::OpenTrigger() {
  FERRY_RETURN_IF_ERROR(OpenCounter(&trigger_));
  if (rung_ != 0) {
    nic_.deferred.AddToCounter(*trigger_, rung_);
    trigger_rung_ = rung_;
  }
  return Status();
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
  if (is_open_ && other_ && trigger_ && nic_.gives_pages()) {
    page_.Offer(pair_->layout, nic_.deferred.Doorbell(*trigger_), nic_.NextPage(), nic_.index);
  }
}

// ---- The doorbell -------------------------------------------------------------------------------

// Takes over what the rank has announced and started.
void NicMover::TakeStarts(uint64_t now_ns) {
  Starts& starts = pair_->starts;
  if (const ErrorCode code = starts.Refresh(is_idle()); code != ErrorCode::kOk) {
    return keeper_.OnBroken(*pair_, code);
  }
  page_.Refresh();
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
  if (ring_waits_ <= rung_ || ring_waits_ > nic_.deferred.ReadCounter(*moved_) / parts() + 1) {
    return;
  }
  if (is_regular_send() && !page_.Counts(ring_waits_)) {  // kBegin adds its shared starts
    uint64_t own = 0;
    for (uint64_t round = rung_ + 1; round <= ring_waits_; ++round) {
      own += IsShared(round) ? 0 : 1;
    }
    if (own != 0) {
      nic_.deferred.AddToCounter(*trigger_, own);
    }
    trigger_rung_ = ring_waits_;
  } else if (trigger_ && (!IsShared(ring_waits_) || nic_.gives_pages())) {
    if (page_.Counts(ring_waits_)) {
      trigger_rung_ = ring_waits_ - 1;
    }
    nic_.deferred.AddToCounter(*trigger_, ring_waits_ - trigger_rung_);
    trigger_rung_ = ring_waits_;
  }
  rung_ = ring_waits_;
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
      if (page_.Counts(operation.round)) {
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
      nic_.deferred.AddToCounter(*next->trigger_, 1);
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
                                   .bytes = sizeof(*word_),
                                   .context = ContextOf(operation)};
  if (operation.kind == Kind::kMove && bytes() > 0) {
    const Chunk chunk = ChunkAt(operation.chunk);
    request.local = chunk.local;
    request.region = message_.region().handle;
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
    nic_.deferred.AddToCounter(*moved_, 1);  // as the NIC would
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
  if (!target_.is_pinning()) {
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
  target_ = {};  // nothing of ours uses it: what others still write there fails
  CloseTrigger();
  for (const std::optional<NicCounter> counter : {begun_, moved_, cleared_, stored_}) {
    if (counter) {
      nic_.deferred.CloseCounter(*counter);
    }
  }
  message_ = {};
}

// A counter to which the rank may still store keeps its place in the NIC, so that no other counter
// gets it. Operations armed there may fire then: they read memory that ReleaseMemory does not let
// go of before, and write to places whose keys are gone.
void NicMover::CloseTrigger() {
  if (!trigger_) {
    return;
  }
  if (page_.TryTakeBack()) {
    nic_.deferred.CloseCounter(*trigger_);
  } else {
    nic_.parked.Park({*trigger_, pair_->plan.end.region, pair_->layout, page_.id(), pair_->rank});
  }
}

// While its target is being pinned, its counters stay: the registrar binds them. The done word goes
// at once, whatever the NIC still holds of the message: an increment that fires late then hits
// nothing.
void NicMover::Leave() {
  if (target_.is_pinning()) {
    target_.Cancel();
  } else {
    Close();
  }
  done_word_ = {};
  message_ = {};
  nic_.Leave(job_, bytes());
  pair_ = nullptr;
}

bool NicMover::TryEnd() {
  if (target_.is_pinning()) {
    return false;
  }
  Close();
  return true;
}

}  // namespace ferry::daemon
