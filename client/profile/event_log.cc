#include "client/profile/event_log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "client/api/quick_clock.h"
#include "common/clock.h"

namespace ferry::client {
namespace {

using shm::TraceEvent;
using shm::TraceKind;

// Messages of further peers, contexts and tags get no numbers, so no arrows.
constexpr uint32_t kStreams = 1 << 16;
constexpr uint32_t kMostSteps = 32;
// States of a Stream.
constexpr uint32_t kCounted = 1;
constexpr uint32_t kUncounted = 2;

uint32_t ThreadId() {
  constinit thread_local uint32_t id = 0;
  if (id == 0) [[unlikely]] {
    id = static_cast<uint32_t>(gettid());
  }
  return id;
}

uint8_t FlagIf(bool is_set, uint8_t flag) { return is_set ? flag : uint8_t{0}; }

TraceEvent EventOf(TraceKind kind, uint32_t thread, uint64_t begin_ns, uint64_t end_ns) {
  TraceEvent event;
  event.kind = kind;
  event.begin_ns = begin_ns;
  event.end_ns = std::max(begin_ns, end_ns);
  event.thread = thread;
  return event;
}

TraceEvent EventOf(TraceKind kind, uint64_t begin_ns, uint64_t end_ns) {
  return EventOf(kind, ThreadId(), begin_ns, end_ns);
}

}  // namespace

EventLog::EventLog(std::span<std::byte> part, std::function<bool(int32_t)> by_link,
                   const bool* shared)
    : ring_(part, MonotonicNs()),
      by_link_(std::move(by_link)),
      shared_(*shared),
      streams_(static_cast<Stream*>(std::calloc(kStreams, sizeof(Stream))), &std::free) {}

uint64_t EventLog::Now() { return QuickMonotonicNs(); }

// ---- Calls --------------------------------------------------------------------------------------

// If the call ends, its end has all of it.
void EventLog::WaitBegan(CallNote* note) {
  shm::CallDescription description;
  note->describe(*note, &description);
  if (description.name == shm::CallName::kNone || note->entered_ns == 0) {
    return;
  }
  TraceEvent event = EventOf(TraceKind::kWait, note->entered_ns, note->begin_ns);
  event.name = description.name;
  Add(event);
}

void EventLog::End(CallNote* note, bool) {
  shm::CallDescription description;
  note->describe(*note, &description);
  if (description.name == shm::CallName::kNone || note->entered_ns == 0) {
    return;
  }
  TraceEvent event = EventOf(TraceKind::kCall, note->entered_ns, QuickMonotonicNs());
  event.name = description.name;
  const auto has = [&](shm::CallFlag flag) { return (description.flags & flag) != 0; };
  const bool has_number = note->has_number || has(shm::kCallHasNumber);
  event.flags = static_cast<uint8_t>(FlagIf(has(shm::kCallHasTag), shm::kTraceHasTag) |
                                     FlagIf(has(shm::kCallHasBytes), shm::kTraceHasBytes) |
                                     FlagIf(has(shm::kCallHasGroup), shm::kTraceHasGroup) |
                                     FlagIf(has_number, shm::kTraceHasNumber));
  event.group = description.group;
  event.peer = description.peer;
  event.tag = description.tag;
  event.bytes = description.bytes;
  event.number = static_cast<uint32_t>(note->has_number ? note->number : description.number);
  Add(event);
}

// ---- Messages -----------------------------------------------------------------------------------

// The lock is the caller's. Null: there is no place.
EventLog::Stream* EventLog::Find(int32_t peer, uint32_t context, int32_t tag, bool is_send) {
  if (streams_ == nullptr) {
    return nullptr;
  }
  uint64_t hash = (uint64_t{static_cast<uint32_t>(peer)} << 32 | static_cast<uint32_t>(tag)) *
                  0x9e37'79b9'7f4a'7c15;
  hash = (hash ^ hash >> 32 ^ (uint64_t{context} << 1 | (is_send ? 1 : 0))) * 0xd6e8'feb8'6659'fd93;
  auto at = static_cast<uint32_t>(hash >> 40);
  for (uint32_t step = 0; step < kMostSteps; ++step, ++at) {
    Stream& stream = streams_[at % kStreams];
    if (stream.state == 0) {
      stream = {kCounted, peer, context, tag, is_send ? 1U : 0U, 0};
      return &stream;
    }
    if (stream.peer == peer && stream.context == context && stream.tag == tag &&
        stream.is_send == (is_send ? 1U : 0U)) {
      return &stream;
    }
  }
  return nullptr;
}

// 0: it is not counted. Numbers skip 0 when they begin anew, at both ends.
uint32_t EventLog::CountMessage(int32_t peer, uint32_t context, int32_t tag, bool is_send) {
  const SharedLock lock(&lock_, shared_);
  Stream*& stream = last_[is_send ? 1 : 0];  // programs send and receive many alike
  if (stream == nullptr || stream->peer != peer || stream->context != context ||
      stream->tag != tag) {
    stream = Find(peer, context, tag, is_send);
  }
  if (stream == nullptr || stream->state != kCounted) {
    return 0;
  }
  if (++stream->count == 0) {
    stream->count = 1;
  }
  return stream->count;
}

void EventLog::AddSend(const Message& message, uint32_t thread, uint64_t begin_ns,
                       uint64_t end_ns) {
  TraceEvent event = EventOf(TraceKind::kSend, thread, begin_ns, end_ns);
  event.flags = static_cast<uint8_t>(
      shm::kTraceHasTag | shm::kTraceHasBytes | shm::kTraceHasGroup |
      FlagIf(by_link_ != nullptr && by_link_(message.peer), shm::kTraceByLink));
  event.group = message.context;
  event.peer = message.peer;
  event.tag = message.tag;
  event.bytes = message.size_bytes;
  event.number = CountMessage(message.peer, message.context, message.tag, true);
  Add(event);
}

void EventLog::NoteSent(const Message& message, uint64_t begin_ns) {
  AddSend(message, ThreadId(), begin_ns, QuickMonotonicNs());
}

void EventLog::NoteSendCancelled(int32_t peer, int32_t tag, uint32_t context) {
  const SharedLock lock(&lock_, shared_);
  if (Stream* const stream = Find(peer, context, tag, true); stream != nullptr) {
    stream->state = kUncounted;
  }
}

void EventLog::NotePosted(const Message& pattern, uint32_t order, uint64_t begin_ns) {
  TraceEvent event = EventOf(TraceKind::kPost, begin_ns, QuickMonotonicNs());
  event.flags = static_cast<uint8_t>(FlagIf(pattern.tag != kAny, shm::kTraceHasTag) |
                                     shm::kTraceHasBytes | shm::kTraceHasGroup);
  event.group = pattern.context;
  event.peer = pattern.peer == kAny ? shm::kCallAnyRank : pattern.peer;
  event.tag = pattern.tag;
  event.bytes = pattern.size_bytes;
  event.order = order;
  Add(event);
}

// Only what took a message counts: one that was too long did, one that was cancelled did not.
void EventLog::AddReceive(const Completion& completion, uint32_t context, uint32_t order,
                          uint32_t thread, uint64_t begin_ns, uint64_t end_ns) {
  const bool is_whole = completion.error == ErrorCode::kOk;
  if (!is_whole && completion.error != ErrorCode::kTruncated) {
    return;
  }
  TraceEvent event = EventOf(TraceKind::kReceive, thread, begin_ns, end_ns);
  event.flags = static_cast<uint8_t>(shm::kTraceHasTag | shm::kTraceHasBytes | shm::kTraceHasGroup |
                                     FlagIf(!is_whole, shm::kTraceFailed));
  event.group = context;
  event.peer = completion.source;
  event.tag = completion.tag;
  event.bytes = completion.size_bytes;
  event.order = order;
  event.number = CountMessage(completion.source, context, completion.tag, false);
  Add(event);
}

void EventLog::NoteReceived(const Completion& completion, uint32_t context, uint32_t order,
                            uint64_t begin_ns) {
  AddReceive(completion, context, order, ThreadId(), begin_ns, QuickMonotonicNs());
}

// ---- Short calls --------------------------------------------------------------------------------

// Call and message have the same times: the call is added first, and so drawn around the message.
void EventLog::AddShortCall(const ShortCall& call, const Message& message, uint32_t thread,
                            uint64_t begin_ns, uint64_t end_ns) {
  if (call.name == shm::CallName::kNone) {
    return;
  }
  TraceEvent event = EventOf(TraceKind::kCall, thread, begin_ns, end_ns);
  const bool has_group = (call.flags & shm::kCallHasGroup) != 0;
  event.name = call.name;
  event.flags =
      static_cast<uint8_t>(shm::kTraceHasBytes | FlagIf(message.tag != kAny, shm::kTraceHasTag) |
                           FlagIf(has_group, shm::kTraceHasGroup));
  event.group = has_group ? call.group : 0;
  event.peer = message.peer == kAny ? shm::kCallAnyRank : message.peer;
  event.tag = message.tag;
  event.bytes = message.size_bytes;
  Add(event);
}

void EventLog::NoteSendCall(const ShortCall& call, const Message& message, uint64_t begin_ns,
                            uint64_t end_ns) {
  const uint32_t thread = ThreadId();
  AddShortCall(call, message, thread, begin_ns, end_ns);
  AddSend(message, thread, begin_ns, end_ns);
}

void EventLog::NoteReceiveCall(const ShortCall& call, const Message& message,
                               const Completion& completion, uint32_t order, uint64_t begin_ns,
                               uint64_t end_ns) {
  const uint32_t thread = ThreadId();
  AddShortCall(call, message, thread, begin_ns, end_ns);
  AddReceive(completion, message.context, order, thread, begin_ns, end_ns);
}

// ---- Streams ------------------------------------------------------------------------------------

namespace {

shm::TraceWork TraceWorkOf(gpu::StreamWork work) {
  switch (work) {
    case gpu::StreamWork::kNone:
      break;
    case gpu::StreamWork::kCopy:
      return shm::TraceWork::kCopy;
    case gpu::StreamWork::kReduction:
      return shm::TraceWork::kReduction;
    case gpu::StreamWork::kMove:
      return shm::TraceWork::kMove;
    case gpu::StreamWork::kMoveWait:
      return shm::TraceWork::kMoveWait;
    case gpu::StreamWork::kEventWait:
      return shm::TraceWork::kEventWait;
    case gpu::StreamWork::kValueWait:
      return shm::TraceWork::kValueWait;
    case gpu::StreamWork::kHostCall:
      return shm::TraceWork::kHostCall;
  }
  return shm::TraceWork::kNone;
}

}  // namespace

void EventLog::NoteDone(uint32_t stream, gpu::StreamWork work, uint64_t bytes, uint64_t begin_ns) {
  TraceEvent event = EventOf(TraceKind::kWork, begin_ns, MonotonicNs());
  event.group = stream;
  event.order = static_cast<uint32_t>(TraceWorkOf(work));
  event.bytes = bytes;
  event.flags = FlagIf(bytes != 0, shm::kTraceHasBytes);
  has_streams_.store(true, std::memory_order_relaxed);
  ring_.Add(event, true);
}

// ---- Queues -------------------------------------------------------------------------------------

void EventLog::NoteQueued(uint64_t queue, uint32_t position, uint64_t begin_ns) {
  TraceEvent event = EventOf(TraceKind::kQueued, begin_ns, QuickMonotonicNs());
  event.flags = shm::kTraceHasNumber;
  event.group = static_cast<uint32_t>(queue);
  event.number = position;
  Add(event);
}

void EventLog::NoteQueueWait(uint64_t queue, uint64_t begin_ns) {
  TraceEvent event = EventOf(TraceKind::kQueueWait, begin_ns, QuickMonotonicNs());
  event.group = static_cast<uint32_t>(queue);
  Add(event);
}

}  // namespace ferry::client
