#include "client/profile/measured_messages.h"

#include <algorithm>
#include <cstdlib>

#include "common/clock.h"

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

MeasuredMessages::MeasuredMessages(Messaging* own, Calls* calls, Profile* profile,
                                   uint64_t request_limit)
    : own_(*own),
      calls_(*calls),
      profile_(*profile),
      request_limit_(request_limit),
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
    *request = {message.size_bytes, message.peer, is_send, true, is_persistent};
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

void MeasuredMessages::NoteEnd(RequestHandle handle, const Completion& completion) {
  Request* const request = At(handle);
  if (request == nullptr || !request->is_known) {
    return;
  }
  const uint64_t waited_ns = WaitedNs();
  if (completion.error == ErrorCode::kOk && !request->is_send) {
    profile_.NoteReceived(completion.source, completion.size_bytes, waited_ns);
  } else if (request->is_send && waited_ns != 0) {
    profile_.NoteLateReceive(request->peer, waited_ns);
  }
  request->is_known = false;
}

// Inside a call a look that finds nothing is part of its wait.
void MeasuredMessages::NotePoll() {
  if (calls_.current() == nullptr) {
    profile_.NotePoll();
  }
}

// ---- Messages -----------------------------------------------------------------------------------

ErrorCode MeasuredMessages::StartSend(const Message& message, RequestHandle* handle) {
  const ErrorCode error = own_.StartSend(message, handle);
  if (error == ErrorCode::kOk) {
    profile_.NoteSent(message.peer, message.size_bytes, 0);
    Keep(*handle, message, true, false);
  }
  return error;
}

ErrorCode MeasuredMessages::StartReceive(const Message& message, RequestHandle* handle) {
  const ErrorCode error = own_.StartReceive(message, handle);
  if (error == ErrorCode::kOk) {
    Keep(*handle, message, false, false);
  }
  return error;
}

bool MeasuredMessages::SendNow(const Message& message) {
  if (calls_.current() == nullptr || !own_.SendNow(message)) {
    return false;
  }
  profile_.NoteSent(message.peer, message.size_bytes, 0);
  return true;
}

bool MeasuredMessages::ReceiveNow(const Message& message, Completion* completion) {
  if (!own_.ReceiveNow(message, completion)) {
    return false;
  }
  profile_.NoteReceived(completion->source, completion->size_bytes, WaitedNs());
  return true;
}

ErrorCode MeasuredMessages::Send(const Message& message, Completion* completion) {
  const ErrorCode error = own_.Send(message, completion);
  if (error == ErrorCode::kOk) {
    profile_.NoteSent(message.peer, message.size_bytes, WaitedNs());
  }
  return error;
}

ErrorCode MeasuredMessages::ReceiveUntil(const Message& message, uint64_t end_ns,
                                         Completion* completion, RequestHandle* handle) {
  const ErrorCode error = own_.ReceiveUntil(message, end_ns, completion, handle);
  if (error == ErrorCode::kOk) {
    const uint64_t waited_ns = WaitedNs();
    if (completion->error == ErrorCode::kOk) {
      profile_.NoteReceived(completion->source, completion->size_bytes, waited_ns);
    }
  } else if (error == ErrorCode::kWouldBlock && handle != nullptr) {
    Keep(*handle, message, false, false);
  }
  return error;
}

ErrorCode MeasuredMessages::MakePersistent(const Message& message, bool is_send,
                                           RequestHandle* handle) {
  const ErrorCode error = own_.MakePersistent(message, is_send, handle);
  if (error == ErrorCode::kOk) {
    Keep(*handle, message, is_send, true);
  }
  return error;
}

ErrorCode MeasuredMessages::Start(RequestHandle handle) {
  const ErrorCode error = own_.Start(handle);
  Request* const request = At(handle);
  if (error == ErrorCode::kOk && request != nullptr && request->is_persistent) {
    request->is_known = true;
    if (request->is_send) {
      profile_.NoteSent(request->peer, request->bytes, 0);
    }
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
  if (!own_.Test(handle, completion)) {
    NotePoll();
    return false;
  }
  NoteEnd(handle, *completion);
  return true;
}

void MeasuredMessages::Wait(RequestHandle handle, Completion* completion) {
  own_.Wait(handle, completion);
  NoteEnd(handle, *completion);
}

bool MeasuredMessages::IsComplete(RequestHandle handle) {
  const bool is_complete = own_.IsComplete(handle);
  if (!is_complete) {
    NotePoll();
  }
  return is_complete;
}

}  // namespace ferry::client
