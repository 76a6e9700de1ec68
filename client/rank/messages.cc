// Client: messages, and how threads wait for them. See client.h.
#include <algorithm>

#include "client/api/measured_calls.h"
#include "client/api/quick_clock.h"
#include "client/rank/client.h"
#include "common/clock.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// The longest sleep while waiting for something that may come without a wake-up: room in a lane is
// announced, but not by a peer that was killed.
constexpr uint64_t kUnannouncedSleepNs = 1'000'000;
// A waiting sender takes its receiver for late after so many idle polls (pauses, then yields), and
// again after as many more.
constexpr uint32_t kPollsToLate = 128;
// A rank with direct links yields after so many turns in vain.
constexpr uint32_t kTurnsPerYield = 16;
// Transfers of this size or more by a direct link are worth a thread that carries them on.
constexpr uint64_t kOverlapMinBytes = 65536;

// After so many looks a wait is shown (Calls::NoteWait), or once other ranks take the core; before
// that it is not worth its price, also between nodes.
constexpr uint32_t kLooksToShow = 128;

bool IsLongWait(uint32_t looks) {
  return looks >= kLooksToShow || (looks != 0 && shm::IsCrowded());
}

// Reads the clock for a call of a measured rank that has not done so yet.
void ReadClock(Calls* calls) {
  if (calls->watcher() == nullptr) [[likely]] {
    return;
  }
  if (CallNote* const note = calls->current(); note != nullptr && note->entered_ns == kNotReadYet) {
    note->entered_ns = QuickMonotonicNs();
  }
}

// Returns true if a rank that has found nothing in so many looks takes the next one without a
// pause: a turn of the links takes longer than a pause, and looks into the kernel.
bool TurnsOn(bool has_links, uint32_t looks) {
  return has_links && !shm::IsCrowded() && looks % kTurnsPerYield != 0;
}

}  // namespace

// ---- Progress -----------------------------------------------------------------------------------

// Does the work that only the rank's own threads do for a request: copies landed data, helps to
// copy transfers. True: it is complete (or inactive), or the rank is poisoned.
bool Client::Advance(uint32_t request) {
  RequestLayout& slot = requests_->Slot(request);
  // Pairs with the engine's stores of the state: acquires the words that belong to it.
  switch (static_cast<RequestState>(shm::LoadAcquire(slot.state))) {
    case RequestState::kComplete:
      return true;
    case RequestState::kInactive:
      return !Receiver::IsHeld(slot) || (!receiver_->IsHeldUp(request) && Advance(request));
    case RequestState::kLanded:
      requests_->CopyLanded(request);
      return true;
    case RequestState::kTransferring:
      if (Requests::IsMoved(slot)) {
        return true;
      }
      requests_->Copy(request);
      // Without a daemon the death of the other rank is not reported, so its chunks may never come.
      return Requests::HasState(slot, RequestState::kComplete) || poison() != ErrorCode::kOk;
    case RequestState::kMatched:
      return matching_->Advance(request);
    default:
      return poison() != ErrorCode::kOk;
  }
}

// Runs one round of the engine, if no other thread is running it. True: it found something to do.
bool Client::PollOnce() {
  shm::StoreRelaxed(has_looked_, 1U);
  sender_->EndWindow();
  receiver_->PostHeld();
  if (!progress_->TryEnter()) {
    return false;
  }
  engine::Effects effects;
  const uint32_t handled = progress_->Step(effects);
  progress_->Exit();
  if (handled != 0) {
    requests_->NoteTransfers(effects);
  }
  progress_->Perform(effects);
  return handled != 0;
}

// Polls until done() is true: pauses, then yields, then sleeps until another process publishes.
// `done` may advance requests; it must become true once the rank is poisoned, and at `end_ns`.
// While nothing comes it calls late(true) now and then, and late(false) before it sleeps: what they
// do about receivers that are late may make it worth looking again.
template <typename Done, typename Late>
void Client::WaitUntil(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns, Late&& late) {
  // A receiver that has much to copy is seen in the library first: senders leave it the copies
  // then.
  if (!requests_->HasCopies() && done()) {
    return;
  }
  EnterLibrary();
  WaitInside(done, policy, end_ns, late);
  LeaveLibrary();
}

// WaitUntil for a thread that has entered the library already. To enter twice would be wrong: it
// would count as awake when it sleeps.
template <typename Done, typename Late>
void Client::WaitInside(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns, Late&& late) {
  engine::RankEngine& engine = progress_->engine();
  shm::Wake& wake = progress_->wake();
  if (receiver_->has_held() && receiver_->AwaitHeld(done, policy)) {
    return;
  }
  shm::Waiter waiter(policy);
  uint32_t idle_polls = 0;
  uint64_t ended = requests_->ended();
  const bool has_links = UsesLinks();
  while (!done()) {
    if (PollOnce() || requests_->HelpBackground()) {
      waiter.Reset();
      continue;
    }
    if (requests_->ended() != ended) [[unlikely]] {
      ended = requests_->ended();  // others move one message after the other: no time to sleep
      waiter.Reset();
      continue;
    }
    if (IsLongWait(idle_polls)) {
      calls_->NoteWait();
    }
    if (++idle_polls % kPollsToLate == 0 && late(true)) {
      waiter.Reset();
      continue;
    }
    if (TurnsOn(has_links, idle_polls) || !waiter.Idle()) {
      continue;
    }
    if (late(false)) {
      waiter.Reset();
      continue;
    }
    HearOfDeaths();
    calls_->NoteWait();
    const engine::LaneSet forgotten = engine.ForgetLanes();
    const uint32_t sequence = wake.PrepareToSleep();
    if (engine.HasWork(forgotten) || progress_->has_copies_elsewhere() || done()) {
      wake.CancelSleep();
      waiter.Reset();
      continue;
    }
    // Streams write without waking anybody.
    uint64_t sleep_ns = engine.WaitsForRoom() || matching_->any_started() ? kUnannouncedSleepNs : 0;
    if (end_ns != UINT64_MAX) {
      const uint64_t left_ns = end_ns - std::min(end_ns - 1, MonotonicNs());
      sleep_ns = sleep_ns == 0 ? left_ns : std::min(sleep_ns, left_ns);
    }
    if (UsesLinks()) {
      links_->CallThread();
    }
    wake.Sleep(sequence, sleep_ns);
  }
}

template <typename Done>
void Client::WaitUntil(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns) {
  WaitUntil(done, policy, end_ns, [this](bool patient) { return sender_->MoveLate(patient); });
}

// Called at the end of a blocking call: hands the work that it leaves behind to the progress
// worker.
void Client::LeaveLibrary() {
  shm::Wake& wake = progress_->wake();
  HearOfDeaths();
  wake.Leave();
  const bool has_arrivals = wake.TakeUrgent() && progress_->engine().HasArrivals();
  if (has_arrivals || requests_->LeaveBehind()) {
    progress_->AskToAttendSelf();
  }
  if (UsesLinks()) [[unlikely]] {
    const bool is_any_open = shm::LoadRelaxed(has_long_) != 0 && pool_->in_use() != 0;
    shm::StoreRelaxed(has_long_, is_any_open ? 1U : 0U);
    // Another thread may sleep, and have left the turns to this one.
    const bool is_any_asleep = shm::Load(wake.layout()->sleepers, std::memory_order_seq_cst) != 0;
    if (is_any_asleep || (is_any_open && absence_.Begin(MonotonicNs()))) {
      links_->CallThread();
    } else if (is_any_open || links_->HasWork()) {
      links_->Arm();
    }
  }
}

void Client::EnterLibrary() {
  if (absence_.has_begun() || absence_of_puts_.has_begun()) [[unlikely]] {
    EndAbsence(&absence_);
    EndAbsence(&absence_of_puts_);
  }
  progress_->wake().Enter();
}

void Client::EndAbsence(Absence* absence) {
  if (absence->has_begun()) [[unlikely]] {
    absence->End(MonotonicNs());
  }
}

// After a message was started that the caller may not wait for: the link thread carries on what
// takes long. For a short one, or one of many, to wake it would cost more than it brings.
void Client::ArmLinks(const Message& started, Absence* absence) {
  if (!UsesLinks() || !progress_->MayBeRemote(started.peer)) {
    return;
  }
  const bool is_long = started.size_bytes >= kOverlapMinBytes;
  if (is_long) {
    shm::StoreRelaxed(has_long_, 1U);
  }
  if (is_long && absence->Begin(MonotonicNs())) {
    links_->CallThread();
  } else if (is_long || links_->HasWork()) {
    links_->Arm();
  }
}

// Waits until what was sent from bounce buffers has arrived or its receivers are dead, or the time
// is over.
void Client::AwaitArrivals(uint64_t timeout_ns) {
  const uint64_t end_ns = MonotonicNs() + timeout_ns;
  WaitUntil(
      [&] {
        return sender_->HaveArrived() || poison() != ErrorCode::kOk || MonotonicNs() >= end_ns;
      },
      progress_->PolicyFor(shm::kAnySource), end_ns);
}

// ---- Sending and receiving ----------------------------------------------------------------------

ErrorCode Client::StartSend(const Message& message, RequestHandle* handle) {
  uint32_t request = 0;
  const ErrorCode error =
      sender_->SendNow(message) ? ErrorCode::kOk : sender_->Start(message, &request);
  if (error == ErrorCode::kOk) {
    *handle = request == 0 ? kCompletedSend : pool_->HandleOf(request);
    ArmLinks(message);
  }
  return error;
}

ErrorCode Client::SendByRequest(const Message& message, Completion* completion) {
  uint32_t request = 0;
  engine::LaneSet later;
  const ErrorCode error = sender_->Start(message, &request, &later);
  if (error == ErrorCode::kOk && request != 0) {
    const auto late = [&](bool patient) {
      progress_->AskToAttend(later);
      later.Clear();
      return sender_->MoveLate(request, patient);
    };
    WaitUntil([&] { return Advance(request); }, progress_->PolicyFor(message.peer), UINT64_MAX,
              late);
    sender_->NotePunctuality(request);
    requests_->Collect(request, completion);
  }
  return error;
}

ErrorCode Client::StartReceive(const Message& message, RequestHandle* handle) {
  uint32_t request = 0;
  sender_->EndWindow();
  const ErrorCode error = receiver_->Start(message, &request);
  if (error == ErrorCode::kOk) {
    *handle = pool_->HandleOf(request);
    ArmLinks(message);
  }
  return error;
}

ErrorCode Client::ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                               RequestHandle* handle) {
  sender_->EndWindow();
  receiver_->PostHeld();
  const ErrorCode error = requests_->CheckReceive(message);
  return error != ErrorCode::kOk || receiver_->AwaitAtOnce(message, completion)
             ? error
             : ReceiveByRequest(message, end_ns, completion, handle);
}

// The message is often only a moment away, so the receive is posted only if it did not come while
// we polled.
ErrorCode Client::ReceiveByRequest(const Message& message, uint64_t end_ns, Completion* completion,
                                   RequestHandle* handle) {
  uint32_t request = 0;
  ErrorCode error = receiver_->Take(message, &request);
  if (error != ErrorCode::kOk) {
    return error;
  }
  bool matched = false;
  ReadClock(&*calls_);
  EnterLibrary();
  const shm::WaitPolicy policy = progress_->PolicyFor(message.peer);
  shm::Waiter waiter(policy);
  const bool is_to_be_posted =
      receiver_->IsToBePosted(message) ||
      progress_->engine().receiver_first().MaySendRtr(requests_->Slot(request));
  const bool has_links = UsesLinks();
  uint32_t looks = 0;
  do {
    if (IsLongWait(looks)) {
      calls_->NoteWait();
    }
    matched = receiver_->TryMatch(request);
  } while (!matched && !is_to_be_posted && (TurnsOn(has_links, ++looks) || !waiter.Idle()));
  error = matched ? ErrorCode::kOk : requests_->Start(request);
  if (error == ErrorCode::kOk) {
    bool is_complete = true;
    const auto is_over = [&] {
      is_complete = Advance(request);
      return is_complete || CoarseMonotonicNs() >= end_ns;
    };
    const auto late = [this](bool patient) { return sender_->MoveLate(patient); };
    if (end_ns == UINT64_MAX) {
      WaitInside([&] { return Advance(request); }, policy, end_ns, late);
    } else {
      WaitInside(is_over, policy, end_ns, late);
    }
    if (is_complete) {
      requests_->Collect(request, completion);
    } else {
      *handle = pool_->HandleOf(request);
      error = ErrorCode::kWouldBlock;
    }
  } else {
    requests_->GiveUp(request);
  }
  LeaveLibrary();
  return error;
}

bool Client::Cancel(RequestHandle handle) {
  receiver_->PostHeld();
  const uint32_t request = pool_->Resolve(handle);
  return request != 0 && progress_->UnderLease([&](engine::Effects& effects) {
    return progress_->engine().Cancel(request, effects) ? ErrorCode::kOk : ErrorCode::kWouldBlock;
  }) == ErrorCode::kOk;
}

// ---- Persistent requests ------------------------------------------------------------------------

ErrorCode Client::MakePersistent(const Message& message, bool is_send, RequestHandle* handle) {
  Message bound = message;
  uint32_t request = 0;
  ErrorCode error = is_send ? requests_->CheckSend(&bound) : requests_->CheckReceive(bound);
  if (error == ErrorCode::kOk) {
    error = requests_->Take(bound, is_send ? RequestKind::kSend : RequestKind::kReceive, &request);
  }
  if (error == ErrorCode::kOk) {
    requests_->Slot(request).flags |=
        shm::kRequestPersistent | (message.ready ? shm::kRequestReady : 0);
    matching_->NoteMade(request, message.in_place);
    *handle = pool_->HandleOf(request);
  }
  return error;
}

// The slot of a persistent request that is not active, or 0.
uint32_t Client::ResolvePersistent(RequestHandle handle) const {
  const uint32_t request = pool_->Resolve(handle);
  const RequestLayout& slot = requests_->Slot(request);
  return (slot.flags & shm::kRequestPersistent) != 0 &&
                 Requests::HasState(slot, RequestState::kInactive)
             ? request
             : 0;
}

ErrorCode Client::Start(RequestHandle handle) {
  const uint32_t request = ResolvePersistent(handle);
  if (request == 0) {
    return ErrorCode::kInvalidRequest;
  }
  RequestLayout& slot = requests_->Slot(request);
  const bool is_send = IsSend(slot);
  if (const ErrorCode error = requests_->CheckAgain(request); error != ErrorCode::kOk)
      [[unlikely]] {
    return error;
  }
  if (poison() != ErrorCode::kOk) {
    return poison();
  }
  if ((slot.flags & shm::kRequestPaired) != 0) {
    return matching_->Start(request);
  }
  if (!pool_->Renew(request)) {
    return ErrorCode::kInvalidRequest;
  }
  if (!is_send) {
    sender_->EndWindow();
  }
  receiver_->PostHeld();
  const ErrorCode error = is_send ? sender_->Restart(request) : requests_->Start(request);
  ArmLinks({nullptr, slot.size_bytes, slot.peer});
  return error;
}

ErrorCode Client::FreePersistent(RequestHandle handle) {
  const uint32_t request = ResolvePersistent(handle);
  if (request == 0 || IsEnqueued(handle)) {
    return ErrorCode::kInvalidRequest;
  }
  matching_->Release(request);
  requests_->Slot(request).flags &= ~shm::kRequestPersistent;
  requests_->GiveUp(request);
  return ErrorCode::kOk;
}

Status Client::BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) {
  receiver_->PostHeld();
  const Status status = matching_->Begin(requests, match);
  return status.ok() || !status.message().empty() ? status : Explain(status.code());
}

bool Client::AdvanceProgram(RequestHandle program, ErrorCode* error) {
  const bool is_over = queues().AdvanceByRank(program, error);
  if (is_over) {
    (void)FailureWords::Tell(*error);
  }
  return is_over;
}

// ---- Completion ---------------------------------------------------------------------------------

bool Client::TestNow(RequestHandle handle, Completion* completion) {
  const uint32_t request = pool_->Resolve(handle);
  if (request == 0) {
    *completion = {};
    return true;
  }
  if (!Advance(request)) {
    return false;
  }
  requests_->Collect(request, completion);
  return true;
}

bool Client::Test(RequestHandle handle, Completion* completion) {
  if (TestNow(handle, completion)) {
    return true;
  }
  (void)PollOnce();
  return TestNow(handle, completion);
}

void Client::Wait(RequestHandle handle, Completion* completion) {
  const uint32_t request = pool_->Resolve(handle);
  if (request == 0) {
    *completion = {};
    return;
  }
  WaitUntil([&] { return Advance(request); }, progress_->PolicyFor(requests_->Slot(request).peer));
  requests_->Collect(request, completion);
}

void Client::AwaitAll(std::span<const RequestHandle> handles) {
  size_t next = 0;  // all before it are complete
  uint32_t request = 0;
  const auto all_done = [&] {
    for (; next < handles.size(); ++next) {
      request = pool_->Resolve(handles[next]);
      if (request != 0 && !Advance(request)) {
        return false;
      }
    }
    return true;
  };
  if (requests_->HasCopies() || !all_done()) {
    const int32_t peer = request != 0 ? requests_->Slot(request).peer : shm::kAnySource;
    WaitUntil(all_done, progress_->PolicyFor(peer));
  }
}

int Client::WaitAny(std::span<const RequestHandle> handles, Completion* completion) {
  int found = -1;
  const auto any_done = [&] {
    bool any = false;
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] == 0) {
        continue;
      }
      any = true;
      const uint32_t request = pool_->Resolve(handles[i]);
      if (request == 0 || Advance(request)) {
        found = static_cast<int>(i);
        return true;
      }
    }
    return !any;
  };
  WaitUntil(any_done, progress_->PolicyFor(shm::kAnySource));
  if (found >= 0) {
    const uint32_t request = pool_->Resolve(handles[static_cast<size_t>(found)]);
    if (request == 0) {
      *completion = {};
    } else {
      requests_->Collect(request, completion);
      if (measure_ != nullptr) {
        measure_->NoteMessageEnd(handles[static_cast<size_t>(found)], *completion);
      }
    }
  }
  return found;
}

bool Client::IsComplete(RequestHandle handle) {
  const uint32_t request = pool_->Resolve(handle);
  return request == 0 || Advance(request);
}

bool Client::Poll() {
  // A thread that polls while it waits carries on its operations by itself.
  EndAbsence(&absence_of_puts_);
  const bool found = PollOnce();
  return requests_->HelpBackground() || found;
}

void Client::WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) {
  const auto is_over = [&] { return done(argument) || poison() != ErrorCode::kOk; };
  if (end_ns == UINT64_MAX) {
    WaitUntil(is_over, progress_->PolicyFor(peer));
    return;
  }
  // The coarse clock is at most a tick of the kernel late; sleeps end at end_ns itself.
  WaitUntil([&] { return is_over() || CoarseMonotonicNs() >= end_ns; }, progress_->PolicyFor(peer),
            end_ns);
}

// Takes the steps of WaitUntil once. Returns at once if a change came after the caller's last look,
// since this thread did not see that change at the end of its rest before.
void Client::Rest(uint64_t longest_ns) {
  thread_local uint32_t changes_seen = 0;
  engine::RankEngine& engine = progress_->engine();
  shm::Wake& wake = progress_->wake();
  const auto has_changed = [&] { return wake.changes() != changes_seen; };
  if (!Poll() && !has_changed() && longest_ns != 0) {  // for a sleep, 0 would be for ever
    calls_->NoteWait();
    wake.Enter();
    wake.BeginRest();
    const engine::LaneSet forgotten = engine.ForgetLanes();
    const uint32_t sequence = wake.PrepareToSleep();
    if (engine.HasWork(forgotten) || progress_->has_copies_elsewhere() || has_changed() ||
        poison() != ErrorCode::kOk) {
      wake.CancelSleep();
    } else {
      const bool unannounced = engine.WaitsForRoom() || matching_->any_started();
      if (UsesLinks()) {
        links_->CallThread();
      }
      wake.Sleep(sequence, unannounced ? std::min(longest_ns, kUnannouncedSleepNs) : longest_ns);
    }
    wake.EndRest();
    LeaveLibrary();
  }
  changes_seen = wake.changes();
}

// ---- Probe --------------------------------------------------------------------------------------

ErrorCode Client::Probe(const Message& pattern, bool block, Completion* found) {
  receiver_->PostHeld();
  ErrorCode result = ErrorCode::kWouldBlock;
  const auto look = [&] {
    engine::ProbeResult probe;
    result = progress_->UnderLease([&](engine::Effects&) {
      return progress_->engine().receives().Probe({pattern.context, pattern.peer, pattern.tag},
                                                  &probe);
    });
    if (result == ErrorCode::kOk) {
      *found = {probe.source, probe.tag, ErrorCode::kOk, probe.size_bytes};
    }
    return result != ErrorCode::kWouldBlock || poison() != ErrorCode::kOk;
  };
  if (block) {
    WaitUntil(look, progress_->PolicyFor(pattern.peer));
  } else {
    (void)PollOnce();
    (void)look();
  }
  return poison() != ErrorCode::kOk ? poison() : result;
}

}  // namespace ferry::client
