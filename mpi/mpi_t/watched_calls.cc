#include "mpi/mpi_t/watched_calls.h"

#include <cstdint>
#include <memory>
#include <span>

#include "client/api/front_end.h"
#include "client/api/measured_calls.h"
#include "common/clock.h"
#include "mpi/base/connection.h"
#include "mpi/comm/context_ids.h"
#include "mpi/mpi_t/events.h"

namespace ferry::mpi {
namespace {

using client::Completion;
using client::Message;
using client::RequestHandle;

// In calls that start or end messages of the program, nothing is held.
bool IsFree(uint32_t context) {
  return context % kContextsPerCommunicator == static_cast<uint32_t>(Traffic::kPointToPoint) &&
         context >= kContextsPerCommunicator;
}

void DeliverAt(bool is_free) { EventHub::Instance().Deliver(LevelOf(is_free)); }

// A wait of the program's, while it exists. Ferry's own threads are in no call, and are passed
// over.
class WaitVisit {
 public:
  WaitVisit() {
    const client::CallNote* const note = front_end->calls->current();
    if (note == nullptr) {
      return;
    }
    note->describe(*note, &call_);
    begin_ns_ = MonotonicNs();
    EventHub::Instance().WaitBegun(call_);
    DeliverAt(false);
  }
  ~WaitVisit() {
    if (begin_ns_ != 0) {
      EventHub::Instance().WaitEnded(call_, MonotonicNs() - begin_ns_);
      DeliverAt(false);
    }
  }
  WaitVisit(const WaitVisit&) = delete;
  WaitVisit& operator=(const WaitVisit&) = delete;

 private:
  shm::CallDescription call_;
  uint64_t begin_ns_ = 0;
};

// ---- Messages -----------------------------------------------------------------------------------

// In a measured rank, too, each call is told in full.
class WatchedMessages final : public client::MeasuredCalls {
 public:
  client::Messaging* inner = nullptr;

  ErrorCode StartSend(const Message& message, RequestHandle* handle) override {
    const ErrorCode error = inner->StartSend(message, handle);
    DeliverAt(IsFree(message.context));
    return error;
  }
  ErrorCode StartReceive(const Message& message, RequestHandle* handle) override {
    const ErrorCode error = inner->StartReceive(message, handle);
    DeliverAt(IsFree(message.context));
    return error;
  }
  bool SendNow(const Message& message) override {
    const bool is_sent = inner->SendNow(message);
    DeliverAt(IsFree(message.context));
    return is_sent;
  }
  bool ReceiveNow(const Message& message, Completion* completion) override {
    return inner->ReceiveNow(message, completion);  // nothing is received in this way
  }
  ErrorCode Send(const Message& message, Completion* completion) override {
    ErrorCode error = ErrorCode::kOk;
    if (inner->SendNow(message)) {
      *completion = {};
    } else {
      const WaitVisit visit;
      error = inner->Send(message, completion);
    }
    DeliverAt(IsFree(message.context));
    return error;
  }
  ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                         RequestHandle* handle) override {
    RequestHandle started = 0;
    ErrorCode error = inner->StartReceive(message, &started);
    if (error == ErrorCode::kOk && !inner->Test(started, completion)) {
      const WaitVisit visit;
      if (end_ns == UINT64_MAX) {
        inner->Wait(started, completion);
      } else {
        AwaitUntil(started, message.peer, end_ns);
        if (!inner->Test(started, completion)) {
          *handle = started;
          error = ErrorCode::kWouldBlock;
        }
      }
    }
    DeliverAt(IsFree(message.context));
    return error;
  }
  ErrorCode MakePersistent(const Message& message, bool is_send, RequestHandle* handle) override {
    return inner->MakePersistent(message, is_send, handle);
  }
  ErrorCode Start(RequestHandle handle) override { return inner->Start(handle); }
  ErrorCode FreePersistent(RequestHandle handle) override { return inner->FreePersistent(handle); }
  bool Cancel(RequestHandle handle) override { return inner->Cancel(handle); }
  ErrorCode Probe(const Message& pattern, bool block, Completion* found) override {
    ErrorCode error = inner->Probe(pattern, false, found);
    if (block && error == ErrorCode::kWouldBlock) {
      const WaitVisit visit;
      error = inner->Probe(pattern, true, found);
    }
    DeliverAt(IsFree(pattern.context));
    return error;
  }
  ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) override {
    ErrorCode error = inner->ProbeMatched(pattern, false, receive);
    if (block && error == ErrorCode::kWouldBlock) {
      const WaitVisit visit;
      error = inner->ProbeMatched(pattern, true, receive);
    }
    DeliverAt(IsFree(pattern.context));
    return error;
  }
  bool Test(RequestHandle handle, Completion* completion) override {
    const bool is_complete = inner->Test(handle, completion);
    DeliverAt(false);
    return is_complete;
  }
  void Wait(RequestHandle handle, Completion* completion) override {
    if (!inner->Test(handle, completion)) {
      const WaitVisit visit;
      inner->Wait(handle, completion);
    }
    DeliverAt(false);
  }
  bool IsComplete(RequestHandle handle) override { return inner->IsComplete(handle); }
  bool SendNowIn(client::Caller, const Message&) override { return false; }
  ErrorCode SendIn(client::Caller, client::CallNote* note, const Message& message,
                   Completion* completion) override {
    const client::CallScope scope(front_end->calls, note);
    return Send(message, completion);
  }
  ErrorCode ReceiveIn(client::Caller, client::CallNote* note, const Message& message,
                      Completion* completion) override {
    const client::CallScope scope(front_end->calls, note);
    return Receive(message, completion);
  }

 private:
  void AwaitUntil(RequestHandle handle, int32_t peer, uint64_t end_ns);
};

// ---- Waits --------------------------------------------------------------------------------------

class WatchedPeers final : public client::NodePeers {
 public:
  client::NodePeers* inner = nullptr;

  void SetThreads(bool allowed) override { inner->SetThreads(allowed); }
  bool Poll() override { return inner->Poll(); }
  void WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) override {
    if (!done(argument)) {
      const WaitVisit visit;
      inner->WaitFor(done, argument, peer, end_ns);
    }
    DeliverAt(false);
  }
  void WakeThreads() override { inner->WakeThreads(); }
  uint32_t Expose(void* base, uint64_t size_bytes, shm::ElementLock* lock) override {
    return inner->Expose(base, size_bytes, lock);
  }
  void Unexpose(uint32_t segment) override { inner->Unexpose(segment); }
  ErrorCode CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                         uint64_t size_bytes) override {
    return inner->CopyFromPeer(rank, from, to, size_bytes);
  }
  ErrorCode CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                       uint64_t size_bytes) override {
    return inner->CopyToPeer(rank, to, from, size_bytes);
  }
  ErrorCode CopyEach(uint32_t rank, client::CopyDirection direction,
                     std::span<const ProcessCopy> copies) override {
    return inner->CopyEach(rank, direction, copies);
  }
  bool IsPrivateMemoryReachable(uint32_t rank) const override {
    return inner->IsPrivateMemoryReachable(rank);
  }
  StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank, const shm::Location& where,
                                               uint64_t size_bytes, bool* is_by_stream) override {
    return inner->MapPeer(rank, where, size_bytes, is_by_stream);
  }
  ErrorCode PeerState(uint32_t rank) const override { return inner->PeerState(rank); }
  void WakePeer(uint32_t rank) override { inner->WakePeer(rank); }
  void Rest(uint64_t longest_ns) override { inner->Rest(longest_ns); }
  Status Explain(ErrorCode error) const override { return inner->Explain(error); }
};

// Never destroyed: other threads may be in them.
WatchedMessages& watched_messages = *new WatchedMessages();
WatchedPeers& watched_peers = *new WatchedPeers();

void WatchedMessages::AwaitUntil(RequestHandle handle, int32_t peer, uint64_t end_ns) {
  struct Awaited {
    client::Messaging* messages;
    RequestHandle handle;
  } awaited{inner, handle};
  watched_peers.inner->WaitFor(
      [](void* argument) {
        const Awaited& awaited = *static_cast<Awaited*>(argument);
        return awaited.messages->IsComplete(awaited.handle);
      },
      &awaited, peer, end_ns);
}

}  // namespace

void WatchCalls() {
  watched_messages.inner = front_end->messages;
  watched_peers.inner = front_end->peers;
  front_end->messages = &watched_messages;
  front_end->peers = &watched_peers;
}

void UnwatchCalls() {
  if (front_end == nullptr) {  // its interfaces went with it
    return;
  }
  front_end->messages = watched_messages.inner;
  front_end->peers = watched_peers.inner;
}

}  // namespace ferry::mpi
