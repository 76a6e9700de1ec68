#include "daemon/triggered/nic_channel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shm/counter.h"

namespace ferry::daemon {

using transport::DeferredTrigger;
using transport::NicCounter;
using Place = DeferredPool::Place;

namespace {

Status Wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "NicChannel::Open: " + what};
}

Status Check(const NicResources& resources, const NicChannelSpec& spec) {
  if (spec.name == 0 || spec.name > kMostNicChannelName) {
    return Wrong("name is " + std::to_string(spec.name) + "; it must be 1 to " +
                 std::to_string(kMostNicChannelName));
  }
  if (spec.done == nullptr || (spec.memory == nullptr && spec.bytes > 0)) {
    return Wrong("done or memory is null");
  }
  if (spec.ahead == 0 || spec.timeout_ns == 0) {
    return Wrong("ahead and timeout_ns must be 1 or more");
  }
  if (resources.deferred.max_write_bytes() < std::min(spec.bytes, kNicPartBytes)) {
    return Wrong("the NIC writes " + std::to_string(resources.deferred.max_write_bytes()) +
                 " bytes at a time, of a message of " + std::to_string(spec.bytes));
  }
  return Status();
}

}  // namespace

// ---- Setting up

StatusOr<std::unique_ptr<NicChannel>> NicChannel::Open(const NicResources& resources,
                                                       const NicChannelSpec& spec) {
  FERRY_RETURN_IF_ERROR(Check(resources, spec));
  std::unique_ptr<NicChannel> channel(new NicChannel(resources, spec));
  FERRY_RETURN_IF_ERROR(channel->OpenCounters());
  return channel;
}

NicChannel::NicChannel(const NicResources& resources, const NicChannelSpec& spec)
    : resources_(resources), spec_(spec) {}

NicChannel::~NicChannel() { Close(); }

Status NicChannel::OpenCounters() {
  FERRY_RETURN_IF_ERROR(OpenCounter(&moved_));
  FERRY_RETURN_IF_ERROR(OpenCounter(&stored_));
  if (!spec_.is_send && !spec_.is_ready) {
    FERRY_RETURN_IF_ERROR(OpenCounter(&cleared_));
  }
  return spec_.is_ready && !spec_.gpu_rings ? Status() : OpenOwnTrigger();
}

Status NicChannel::OpenCounter(std::optional<NicCounter>* counter) {
  StatusOr<NicCounter> opened = resources_.deferred.OpenCounter(/*write_back=*/nullptr);
  FERRY_RETURN_IF_ERROR(opened.status());
  *counter = *opened;
  return Status();
}

Status NicChannel::OpenOwnTrigger() {
  FERRY_RETURN_IF_ERROR(OpenCounter(&trigger_));
  if (rung_ != 0) {
    resources_.deferred.AddToCounter(*trigger_, rung_);
    trigger_rung_ = rung_;
  }
  return Status();
}

StatusOr<std::unique_ptr<transport::Registration>> NicChannel::PrepareTarget() {
  if (spec_.is_send || spec_.bytes == 0) {
    return resources_.deferred.PrepareTarget(&word_, sizeof(word_),
                                             spec_.is_send ? *trigger_ : *moved_);
  }
  return resources_.deferred.PrepareTarget(spec_.memory, spec_.bytes, *moved_);
}

Status NicChannel::AdoptTarget(std::unique_ptr<transport::Registration> registration) {
  StatusOr<transport::MemoryRegion> region =
      resources_.transport.AdoptMemory(std::move(registration));
  FERRY_RETURN_IF_ERROR(region.status());
  target_region_ = region->handle;
  target_ = {region->remote_base, region->key};
  has_adopted_ = true;
  return Status();
}

void NicChannel::Connect(NicPlace other) {
  other_ = other;
  is_connected_ = true;
  ArmWanted();
}

// ---- Which operations there are

uint32_t NicChannel::parts() const {
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, (spec_.bytes + kNicPartBytes - 1) / kNicPartBytes));
}

NicChannel::Part NicChannel::PartAt(uint32_t index) const {
  const uint64_t offset = index * kNicPartBytes;
  return {spec_.memory + offset, offset, std::min(spec_.bytes - offset, kNicPartBytes)};
}

uint64_t NicChannel::ContextOf(Kind kind) const {
  return kNicContext | spec_.name << 8 | static_cast<uint64_t>(kind);
}

StatusOr<DeferredTrigger> NicChannel::TriggerOf(const Operation& operation) {
  if (operation.kind == Kind::kStore) {
    return DeferredTrigger{*moved_, operation.round * parts()};
  }
  if (operation.is_shared) {
    StatusOr<NicCounter> counter = shared_->Counter();
    FERRY_RETURN_IF_ERROR(counter.status());
    return DeferredTrigger{*counter, operation.round - doorbell_.base};
  }
  if (!trigger_) {
    FERRY_RETURN_IF_ERROR(OpenOwnTrigger());
  }
  const bool is_cleared = operation.kind == Kind::kMove && !spec_.is_ready;
  return DeferredTrigger{*trigger_, operation.round * (is_cleared ? 2 : 1)};
}

NicCounter NicChannel::DoneCounterOf(Kind kind) const {
  switch (kind) {
    case Kind::kMove:
      return *moved_;
    case Kind::kClear:
      return *cleared_;
    case Kind::kStore:
      return *stored_;
  }
  return {};
}

bool NicChannel::IsReached(const Operation& operation) {
  if (operation.kind == Kind::kMove && may_share()) {
    return rung_ >= operation.round;  // nothing but starts fires it
  }
  const StatusOr<DeferredTrigger> trigger = TriggerOf(operation);
  return trigger.ok() && resources_.deferred.ReadCounter(trigger->counter) >= trigger->threshold;
}

// ---- Arming

void NicChannel::Want(uint64_t round) {
  wanted_ = std::max(wanted_, round);
  ArmWanted();
}

void NicChannel::Share(std::shared_ptr<SharedTrigger> trigger, const SharedDoorbell& doorbell) {
  if (may_share() && !is_closed_) {
    shared_ = std::move(trigger);
    doorbell_ = doorbell;
  }
}

void NicChannel::ArmWanted() {
  while (is_connected_ && !is_closed_ && armed_ < wanted_ && armed_ - rounds_done_ < spec_.ahead) {
    // A NIC keeps the order of what waits for one counter only.
    if (armed_ > rounds_done_ && IsShared(armed_ + 1) != IsShared(armed_)) {
      break;
    }
    const uint64_t round = ++armed_;
    if (spec_.is_send) {
      for (uint32_t part = 0; part < parts(); ++part) {
        Arm(Kind::kMove, part, round);
      }
    } else if (!spec_.is_ready) {
      Arm(Kind::kClear, 0, round);
    }
    Arm(Kind::kStore, 0, round);
  }
}

void NicChannel::Arm(Kind kind, uint32_t part, uint64_t round) {
  if (is_closed_) {
    return;  // what was armed before has failed
  }
  Operation operation{.kind = kind,
                      .part = part,
                      .round = round,
                      .is_shared = kind == Kind::kMove && IsShared(round)};
  operation.place = resources_.pool.Begin(spec_.job);
  ErrorCode code = ErrorCode::kOk;
  if (operation.place == Place::kNic) {
    code = ArmOnNic(operation);
    if (code != ErrorCode::kOk) {
      resources_.pool.Refused(spec_.job);
      operation.place = Place::kSoftware;
    } else if (operation.is_shared) {
      shared_->NoteArmed();
    }
  }
  operations_.push_back(operation);
  if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock &&
      code != ErrorCode::kLimitExceeded) {
    Fail(code);
  }
}

ErrorCode NicChannel::ArmOnNic(const Operation& operation) {
  const Kind kind = operation.kind;
  const StatusOr<DeferredTrigger> trigger = TriggerOf(operation);
  if (!trigger.ok()) {
    return ErrorCode::kWouldBlock;  // no counter is left
  }
  if (kind == Kind::kMove && spec_.bytes > 0) {
    const Part part = PartAt(operation.part);
    return resources_.deferred.ArmWrite({.trigger = *trigger,
                                         .done = DoneCounterOf(kind),
                                         .peer = spec_.peer,
                                         .local = part.local,
                                         .region = spec_.region,
                                         .bytes = part.bytes,
                                         .remote_address = other_.address + part.offset,
                                         .key = other_.key,
                                         .context = ContextOf(kind)});
  }
  const bool stores = kind == Kind::kStore;
  const NicPlace& place = stores ? spec_.done_place : other_;
  return resources_.deferred.ArmIncrement({.trigger = *trigger,
                                           .done = DoneCounterOf(kind),
                                           .peer = stores ? resources_.self : spec_.peer,
                                           .remote_address = place.address,
                                           .key = place.key,
                                           .context = ContextOf(kind)});
}

// ---- The doorbell

void NicChannel::RingTo(uint64_t round) {
  if (is_closed_ || round <= rung_) {
    return;
  }
  Want(round);
  ring_waits_ = std::max(ring_waits_, round);
  ring_waits_ns_ = 0;
  TakeRing(0);
}

// A start before the last round is done would undo the even-count rule. Some NICs' counters are
// read late, so one that seems too early waits for them.
void NicChannel::TakeRing(uint64_t now_ns) {
  if (ring_waits_ <= rung_ || is_closed_) {
    return;
  }
  const uint64_t moved = resources_.deferred.ReadCounter(*moved_) / parts();
  if (ring_waits_ > moved + 1) {
    if (ring_waits_ns_ == 0) {
      ring_waits_ns_ = now_ns;
    } else if (now_ns - ring_waits_ns_ >= spec_.timeout_ns) {
      Fail(ErrorCode::kInvalidRequest);
    }
    return;
  }
  if (!spec_.gpu_rings && trigger_ && !IsShared(ring_waits_)) {
    resources_.deferred.AddToCounter(*trigger_, ring_waits_ - trigger_rung_);
    trigger_rung_ = ring_waits_;
  }
  rung_ = ring_waits_;
}

transport::CounterDoorbell NicChannel::doorbell() {
  return trigger_ ? resources_.deferred.Doorbell(*trigger_) : transport::CounterDoorbell{};
}

bool NicChannel::is_active() const {
  if (error_ != ErrorCode::kOk) {
    return !has_held_;
  }
  return !is_closed_ && (ring_waits_ > rounds_done_ || (spec_.gpu_rings && armed_ > rounds_done_));
}

// ---- Running

uint32_t NicChannel::Poll(uint64_t now_ns) {
  if (error_ != ErrorCode::kOk && !has_held_) {
    HoldFailure(now_ns);
  }
  if (is_closed_) {
    return 0;
  }
  TakeRing(now_ns);
  next_deadline_ns_ = UINT64_MAX;
  uint32_t done = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    if (operation.phase == Phase::kDone || (operation.due_ns == 0 && !IsReached(operation))) {
      continue;
    }
    operation.due_ns = operation.due_ns == 0 ? std::max<uint64_t>(now_ns, 1) : operation.due_ns;
    if (operation.place == Place::kSoftware && operation.phase == Phase::kWaiting) {
      done += Perform(&operation, now_ns);
    }
    if (is_closed_) {
      return done;  // it failed, and with it all of them
    }
    if (operation.phase == Phase::kDone) {
      continue;
    }
    const uint64_t deadline_ns = operation.due_ns + spec_.timeout_ns;
    if (now_ns >= deadline_ns) {
      Fail(ErrorCode::kTimeout);
      return done;
    }
    next_deadline_ns_ = std::min(next_deadline_ns_, deadline_ns);
  }
  Retire();
  return done;
}

// Returns 1 if the operation is under way or over.
uint32_t NicChannel::Perform(Operation* operation, uint64_t now_ns) {
  if (operation->kind == Kind::kStore) {
    shm::Counter(spec_.done).Add(1);
    EndOperation(operation);
    return 1;
  }
  const ErrorCode code = PostWrite(*operation, now_ns);
  if (code == ErrorCode::kWouldBlock) {
    return 0;
  }
  operation->phase = Phase::kPosted;
  if (code != ErrorCode::kOk) {
    Fail(code);
  }
  return 1;
}

ErrorCode NicChannel::PostWrite(const Operation& operation, uint64_t now_ns) {
  transport::RmaRequest request = {.peer = spec_.peer,
                                   .local = const_cast<void*>(resources_.scratch),
                                   .region = resources_.scratch_region,
                                   .remote_address = other_.address,
                                   .key = other_.key,
                                   .bytes = sizeof(word_),
                                   .context = ContextOf(operation.kind)};
  if (operation.kind == Kind::kMove && spec_.bytes > 0) {
    const Part part = PartAt(operation.part);
    request.local = part.local;
    request.region = spec_.region;
    request.remote_address += part.offset;
    request.bytes = part.bytes;
  }
  return resources_.transport.Write(request, transport::Placement::kLocal, now_ns);
}

void NicChannel::EndOperation(Operation* operation) {
  operation->phase = Phase::kDone;
  resources_.pool.End(spec_.job, operation->place);
  if (operation->is_shared && operation->place == Place::kNic) {
    shared_->NoteOver(/*is_left=*/false);
  }
}

// Operations of one kind end in order, or else are alike.
NicChannel::Operation* NicChannel::FindFirst(uint64_t context, Place place) {
  const auto found = std::find_if(operations_.begin(), operations_.end(), [&](const Operation& o) {
    return ContextOf(o.kind) == context && o.place == place && o.phase != Phase::kDone &&
           (place == Place::kNic || o.phase == Phase::kPosted);
  });
  return found == operations_.end() ? nullptr : &*found;
}

// A place at the other end that is not there any more: its request was freed, which its daemon may
// tell a moment later.
ErrorCode NicChannel::MeaningOf(Kind kind, ErrorCode code) {
  return kind != Kind::kStore && code == ErrorCode::kInvalidBuffer ? ErrorCode::kInvalidRequest
                                                                   : code;
}

void NicChannel::OnDeferredEnd(uint64_t context, ErrorCode code) {
  Operation* operation = FindFirst(context, Place::kNic);
  if (operation == nullptr) {
    return;  // of a channel that is closed
  }
  const Kind kind = operation->kind;
  EndOperation(operation);
  if (code != ErrorCode::kOk) {
    Fail(MeaningOf(kind, code));
  }
  Retire();
}

void NicChannel::OnWriteEnd(uint64_t context, ErrorCode code) {
  Operation* operation = FindFirst(context, Place::kSoftware);
  if (operation == nullptr) {
    return;
  }
  if (code == ErrorCode::kOk && operation->kind == Kind::kMove) {
    resources_.deferred.AddToCounter(*moved_, 1);  // as the NIC would
  }
  const Kind kind = operation->kind;
  EndOperation(operation);
  if (code != ErrorCode::kOk) {
    Fail(MeaningOf(kind, code));
  }
  Retire();
}

// Takes out the rounds that are done, and arms further ones.
void NicChannel::Retire() {
  while (!operations_.empty()) {
    const uint64_t round = operations_.front().round;
    const auto end = std::find_if(operations_.begin(), operations_.end(),
                                  [round](const Operation& o) { return o.round != round; });
    if (std::any_of(operations_.begin(), end,
                    [](const Operation& o) { return o.phase != Phase::kDone; })) {
      break;
    }
    operations_.erase(operations_.begin(), end);
    rounds_done_ = round;
  }
  ArmWanted();
}

// ---- Ends

void NicChannel::Fail(ErrorCode error) {
  if (error_ != ErrorCode::kOk || is_closed_) {
    return;
  }
  error_ = error;
  Close();
  shm::Counter(spec_.done).Fail(error);
}

// An increment of the NIC under way may undo what the CPU adds: then it is added again, as long as
// there may be one.
void NicChannel::HoldFailure(uint64_t now_ns) {
  shm::Counter(spec_.done).Fail(error_);
  if (next_deadline_ns_ == UINT64_MAX) {
    next_deadline_ns_ = now_ns + spec_.timeout_ns;
  } else if (now_ns >= next_deadline_ns_) {
    next_deadline_ns_ = UINT64_MAX;
    has_held_ = true;
  }
}

void NicChannel::Close() {
  if (is_closed_) {
    return;
  }
  is_closed_ = true;
  next_deadline_ns_ = UINT64_MAX;
  for (const Operation& operation : operations_) {
    if (operation.phase == Phase::kDone) {
      continue;
    }
    resources_.pool.End(spec_.job, operation.place);
    if (operation.is_shared && operation.place == Place::kNic) {
      shared_->NoteOver(/*is_left=*/true);
    }
  }
  operations_.clear();
  shared_.reset();
  if (has_adopted_) {
    // Nothing of ours uses it, so it goes at once: what others still write there fails.
    (void)resources_.transport.ReleaseMemory(target_region_);
  }
  for (const std::optional<NicCounter> counter : {trigger_, moved_, cleared_, stored_}) {
    if (counter) {
      resources_.deferred.CloseCounter(*counter);
    }
  }
}

}  // namespace ferry::daemon
