#include "client/profile/measured_messages.h"

#include <algorithm>
#include <cstdlib>

#include "client/api/quick_clock.h"
#include "common/clock.h"
#include "shm/layout/lane_layout.h"

namespace ferry::client {
namespace {

// The last end of a message in the calling thread's call: what it waits for then is the next one.
struct LastEnd {
  uint64_t entered_ns = 0;
  uint64_t ended_ns = 0;
};

LastEnd& LastEndOfThread() {
  constinit thread_local LastEnd last;
  return last;
}

}  // namespace

MeasuredMessages::MeasuredMessages(Messaging* own, Calls* calls, Profile* profile, EventLog* events,
                                   uint64_t request_limit, const bool* shared)
    : own_(*own),
      calls_(*calls),
      profile_(profile),
      events_(events),
      request_limit_(request_limit),
      shared_(*shared),
      short_calls_(profile),
      requests_(static_cast<Request*>(std::calloc(request_limit, sizeof(Request))), &std::free) {}

// ---- Requests -----------------------------------------------------------------------------------

MeasuredMessages::Request* MeasuredMessages::At(RequestHandle handle) {
  const uint64_t slot = handle & UINT32_MAX;
  return handle != 0 && handle != kCompletedSend && slot < request_limit_ && requests_ != nullptr
             ? &requests_[slot]
             : nullptr;
}

void MeasuredMessages::Keep(RequestHandle handle, const Message& message, bool is_send,
                            bool is_persistent) {
  if (Request* const request = At(handle); request != nullptr) {
    *request = {.bytes = message.size_bytes,
                .peer = message.peer,
                .tag = message.tag,
                .context = message.context,
                .order = is_send || is_persistent ? 0 : BeginReceive(),
                .is_send = is_send,
                .is_known = !is_persistent,  // until it is started
                .is_persistent = is_persistent};
  }
}

// How long the calling thread's call has waited since its last message ended; 0: it has not.
uint64_t MeasuredMessages::WaitedNs() {
  const CallNote* const note = calls_.current();
  if (note == nullptr || note->begin_ns == 0) {
    return 0;
  }
  LastEnd& last = LastEndOfThread();
  if (last.entered_ns != note->entered_ns) {
    last = {note->entered_ns, 0};
  }
  const uint64_t now_ns = MonotonicNs();
  const uint64_t since_ns = std::max(note->begin_ns, last.ended_ns);
  last.ended_ns = now_ns;
  return now_ns - since_ns;
}

void MeasuredMessages::NoteSent(const Message& message, uint64_t begin_ns, uint64_t waited_ns) {
  if (profile_ != nullptr) {
    profile_->NoteSent(message.peer, message.size_bytes, waited_ns);
  }
  if (events_ != nullptr) {
    events_->NoteSent(message, begin_ns);
  }
}

void MeasuredMessages::NoteReceived(const Completion& completion, uint32_t context, uint32_t order,
                                    uint64_t begin_ns, uint64_t waited_ns) {
  if (profile_ != nullptr && completion.error == ErrorCode::kOk) {
    profile_->NoteReceived(completion.source, completion.size_bytes, waited_ns);
  }
  if (events_ != nullptr) {
    events_->NoteReceived(completion, context, order, begin_ns);
  }
}

void MeasuredMessages::NoteEnd(RequestHandle handle, const Completion& completion,
                               uint64_t begin_ns) {
  Request* const request = At(handle);
  if (request == nullptr || !request->is_known) {
    return;
  }
  const uint64_t waited_ns = WaitedNs();
  if (!request->is_send) {
    NoteReceived(completion, request->context, request->order, begin_ns, waited_ns);
  } else if (profile_ != nullptr && waited_ns != 0) {
    profile_->NoteLateReceive(request->peer, waited_ns);
  }
  if (request->is_send && events_ != nullptr && completion.error == ErrorCode::kCancelled) {
    events_->NoteSendCancelled(request->peer, request->tag, request->context);
  }
  request->is_known = false;
}

// Inside a call a look that finds nothing is part of its wait.
void MeasuredMessages::NotePoll() {
  if (profile_ != nullptr && calls_.current() == nullptr) {
    profile_->NotePoll();
  }
}

// ---- Messages -----------------------------------------------------------------------------------

ErrorCode MeasuredMessages::StartSend(const Message& message, RequestHandle* handle) {
  const uint64_t begin_ns = Now();
  const ErrorCode error = own_.StartSend(message, handle);
  if (error == ErrorCode::kOk) {
    NoteSent(message, begin_ns, 0);
    Keep(*handle, message, true, false);
  }
  return error;
}

ErrorCode MeasuredMessages::StartReceive(const Message& message, RequestHandle* handle) {
  const uint64_t begin_ns = Now();
  const ErrorCode error = own_.StartReceive(message, handle);
  if (error == ErrorCode::kOk) {
    Keep(*handle, message, false, false);
    if (const Request* const request = At(*handle); request != nullptr && events_ != nullptr) {
      events_->NotePosted(message, request->order, begin_ns);
    }
  }
  return error;
}

bool MeasuredMessages::SendNow(const Message& message) {
  if (calls_.current() == nullptr) {
    return false;
  }
  const uint64_t begin_ns = Now();
  const bool is_sent = own_.SendNow(message);
  if (is_sent) {
    NoteSent(message, begin_ns, 0);
  }
  return is_sent;
}

bool MeasuredMessages::ReceiveNow(const Message& message, Completion* completion) {
  const uint64_t begin_ns = Now();
  if (!own_.ReceiveNow(message, completion)) {
    return false;
  }
  NoteReceived(*completion, message.context, BeginReceive(), begin_ns, WaitedNs());
  return true;
}

ErrorCode MeasuredMessages::Send(const Message& message, Completion* completion) {
  const uint64_t begin_ns = Now();
  const ErrorCode error = own_.Send(message, completion);
  if (error == ErrorCode::kOk) {
    NoteSent(message, begin_ns, WaitedNs());
  }
  return error;
}

// The receive is posted, if it is, before others of its thread.
ErrorCode MeasuredMessages::ReceiveUntil(const Message& message, uint64_t end_ns,
                                         Completion* completion, RequestHandle* handle) {
  const uint64_t begin_ns = Now();
  const uint32_t order = BeginReceive();
  const ErrorCode error = own_.ReceiveUntil(message, end_ns, completion, handle);
  if (error == ErrorCode::kOk) {
    NoteReceived(*completion, message.context, order, begin_ns, WaitedNs());
  } else if (error == ErrorCode::kWouldBlock && handle != nullptr) {
    Keep(*handle, message, false, false);
    if (Request* const request = At(*handle); request != nullptr) {
      request->order = order;
    }
  }
  return error;
}

// ---- Calls of one message -----------------------------------------------------------------------

ErrorCode MeasuredMessages::SendInFull(CallNote* note, const Message& message,
                                       Completion* completion) {
  const CallScope scope(&calls_, note);
  return Send(message, completion);
}

ErrorCode MeasuredMessages::ReceiveInFull(CallNote* note, const Message& message,
                                          Completion* completion) {
  const CallScope scope(&calls_, note);
  return Receive(message, completion);
}

// The other rank waits for all that is done before a message leaves, and after one has come. So as
// much as can be is done after the one and before the other.
bool MeasuredMessages::SendNowIn(Caller caller, const Message& message) {
  if (!MayBeShort()) [[unlikely]] {
    return false;
  }
  ShortCall* const call = short_calls_.FindKnown(caller, message.peer);
  if (call == nullptr || call->time.IsDue() || !own_.SendNow(message)) [[unlikely]] {
    return false;
  }
  call->time.Skip();
  profile_->Count(call->counted, message.size_bytes);
  profile_->CountSent(message.peer, message.size_bytes);
  return true;
}

ErrorCode MeasuredMessages::SendIn(Caller caller, CallNote* note, const Message& message,
                                   Completion* completion) {
  if (MayBeShort()) {
    ShortCall& call = short_calls_.Find(caller, message.peer, *note);
    if (call.time.IsDue() && SendTimed(&call, message)) {
      return ErrorCode::kOk;
    }
  }
  return SendInFull(note, message, completion);
}

ErrorCode MeasuredMessages::ReceiveIn(Caller caller, CallNote* note, const Message& message,
                                      Completion* completion) {
  if (!MayBeShort() || message.size_bytes > shm::kCellBytes) [[unlikely]] {
    return ReceiveInFull(note, message, completion);
  }
  ShortCall& call = short_calls_.Find(caller, message.peer, *note);
  if (call.time.IsDue()) [[unlikely]] {
    return ReceiveTimed(&call, note, message, completion);
  }
  call.time.Skip();
  profile_->Count(call.counted, message.size_bytes);
  note->entered_ns = kNotReadYet;
  CallNote*& current = calls_.current();
  current = note;
  const ErrorCode error = own_.ReceiveUntil(message, UINT64_MAX, completion, nullptr);
  if (note->entered_ns != kNotReadYet || note->begin_ns != 0 || error != ErrorCode::kOk ||
      completion->error != ErrorCode::kOk) [[unlikely]] {
    call.time.TakeBackSkip();
    profile_->TakeBack(call.counted, message.size_bytes);
    const uint64_t read_ns =
        note->entered_ns != kNotReadYet ? note->entered_ns - call.looks_ns : QuickMonotonicNs();
    note->entered_ns = note->begin_ns != 0 ? std::min(read_ns, note->begin_ns) : read_ns;
    EndReceiveInFull(note, message, 0, error, *completion);
    return error;
  }
  current = nullptr;
  profile_->CountReceived(completion->source, completion->size_bytes);
  return ErrorCode::kOk;
}

// Receives in a call that reads the clock where it begins.
ErrorCode MeasuredMessages::ReceiveTimed(ShortCall* call, CallNote* note, const Message& message,
                                         Completion* completion) {
  const uint64_t begin_ns = QuickMonotonicNs();
  const uint32_t order = BeginReceive();
  note->entered_ns = events_ != nullptr ? begin_ns : kNotReadYet;
  calls_.current() = note;
  const ErrorCode error = own_.ReceiveUntil(message, UINT64_MAX, completion, nullptr);
  const bool has_looked = events_ == nullptr && note->entered_ns != kNotReadYet;
  if (has_looked) {
    ShortCalls::AddLooks(call, note->entered_ns - std::min(note->entered_ns, begin_ns));
  }
  note->entered_ns = begin_ns;
  if (has_looked || note->begin_ns != 0 || error != ErrorCode::kOk ||
      completion->error != ErrorCode::kOk) {
    EndReceiveInFull(note, message, order, error, *completion);
    return error;
  }
  const uint64_t end_ns = QuickMonotonicNs();
  calls_.current() = nullptr;
  CountTimed(call, message.size_bytes, begin_ns, end_ns);
  if (profile_ != nullptr) {
    profile_->CountReceived(completion->source, completion->size_bytes);
  }
  if (events_ != nullptr) {
    events_->NoteReceiveCall(*call, message, *completion, order, begin_ns, end_ns);
  }
  return error;
}

// A receive that has waited, or has failed, since the note's entered_ns.
void MeasuredMessages::EndReceiveInFull(CallNote* note, const Message& message, uint32_t order,
                                        ErrorCode error, const Completion& completion) {
  if (error == ErrorCode::kOk) {
    NoteReceived(completion, message.context, order, note->entered_ns, WaitedNs());
  }
  calls_.current() = nullptr;
  calls_.Leave(note, nullptr);
}

void MeasuredMessages::CountTimed(ShortCall* call, uint64_t bytes, uint64_t begin_ns,
                                  uint64_t end_ns) {
  if (profile_ != nullptr) {
    const uint64_t time_ns = std::max(end_ns, begin_ns) - begin_ns;
    profile_->Count(call->counted, bytes);
    profile_->AddTimeOfOne(call->counted, time_ns, end_ns);
    if (events_ == nullptr) {
      short_calls_.AddMeasured(call, time_ns);
    }
  }
}

// False: the message cannot leave at once, and nothing happened.
bool MeasuredMessages::SendTimed(ShortCall* call, const Message& message) {
  const uint64_t begin_ns = QuickMonotonicNs();
  if (!own_.SendNow(message)) {
    return false;
  }
  const uint64_t end_ns = QuickMonotonicNs();
  CountTimed(call, message.size_bytes, begin_ns, end_ns);
  if (profile_ != nullptr) {
    profile_->CountSent(message.peer, message.size_bytes);
  }
  if (events_ != nullptr) {
    events_->NoteSendCall(*call, message, begin_ns, end_ns);
  }
  return true;
}

// ---- Persistent requests, probes ----------------------------------------------------------------

ErrorCode MeasuredMessages::MakePersistent(const Message& message, bool is_send,
                                           RequestHandle* handle) {
  const ErrorCode error = own_.MakePersistent(message, is_send, handle);
  if (error == ErrorCode::kOk) {
    Keep(*handle, message, is_send, true);
  }
  return error;
}

ErrorCode MeasuredMessages::Start(RequestHandle handle) {
  const uint64_t begin_ns = Now();
  const ErrorCode error = own_.Start(handle);
  Request* const request = At(handle);
  if (error != ErrorCode::kOk || request == nullptr || !request->is_persistent) {
    return error;
  }
  request->is_known = true;
  const Message message{nullptr, request->bytes, request->peer, request->tag, request->context};
  if (request->is_send) {
    NoteSent(message, begin_ns, 0);
  } else if (events_ != nullptr) {
    request->order = BeginReceive();
    events_->NotePosted(message, request->order, begin_ns);
  }
  return error;
}

ErrorCode MeasuredMessages::Probe(const Message& pattern, bool block, Completion* found) {
  const ErrorCode error = own_.Probe(pattern, block, found);
  if (error == ErrorCode::kWouldBlock) {
    NotePoll();
  }
  return error;
}

ErrorCode MeasuredMessages::ProbeMatched(const Message& pattern, bool block,
                                         MatchedReceive* receive) {
  const ErrorCode error = own_.ProbeMatched(pattern, block, receive);
  if (error == ErrorCode::kOk) {
    Keep(receive->handle, pattern, false, false);
  } else if (error == ErrorCode::kWouldBlock) {
    NotePoll();
  }
  return error;
}

// ---- Completion ---------------------------------------------------------------------------------

bool MeasuredMessages::Test(RequestHandle handle, Completion* completion) {
  const uint64_t begin_ns = Now();
  if (!own_.Test(handle, completion)) {
    NotePoll();
    return false;
  }
  NoteEnd(handle, *completion, begin_ns);
  return true;
}

void MeasuredMessages::Wait(RequestHandle handle, Completion* completion) {
  const uint64_t begin_ns = Now();
  own_.Wait(handle, completion);
  NoteEnd(handle, *completion, begin_ns);
}

bool MeasuredMessages::IsComplete(RequestHandle handle) {
  const bool is_complete = own_.IsComplete(handle);
  if (!is_complete) {
    NotePoll();
  }
  return is_complete;
}

}  // namespace ferry::client
