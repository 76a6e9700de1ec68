// The messages of a measured rank: passes them on to the rank's own, and notes what becomes of
// each.
//
// Front ends get it in the place of the rank's own (FrontEnd::messages), so that messages of ranks
// that are not measured cost nothing more. Outside all calls the fast paths say no, so that a call
// of MPI comes here by SendIn or ReceiveIn, or into its scope first (calls.h), and is counted
// there.
//
// Calling thread: as Messaging.
#pragma once

#include <cstdint>
#include <memory>

#include "client/api/calls.h"
#include "client/api/measured_calls.h"
#include "client/api/messaging.h"
#include "client/profile/event_log.h"
#include "client/profile/profile.h"
#include "client/profile/short_calls.h"

namespace ferry::client {

class MeasuredMessages final : public MeasuredCalls {
 public:
  // All outlive it; `profile` or `events` may be null. `request_limit`: handles have slots below
  // it. `shared`: as that of Calls.
  MeasuredMessages(Messaging* own, Calls* calls, Profile* profile, EventLog* events,
                   uint64_t request_limit, const bool* shared);

  ErrorCode StartSend(const Message& message, RequestHandle* handle) override;
  ErrorCode StartReceive(const Message& message, RequestHandle* handle) override;
  bool SendNow(const Message& message) override;
  bool ReceiveNow(const Message& message, Completion* completion) override;
  ErrorCode Send(const Message& message, Completion* completion) override;
  ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                         RequestHandle* handle) override;
  ErrorCode MakePersistent(const Message& message, bool is_send, RequestHandle* handle) override;
  ErrorCode Start(RequestHandle handle) override;
  ErrorCode FreePersistent(RequestHandle handle) override { return own_.FreePersistent(handle); }
  bool Cancel(RequestHandle handle) override { return own_.Cancel(handle); }
  ErrorCode Probe(const Message& pattern, bool block, Completion* found) override;
  ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) override;
  bool Test(RequestHandle handle, Completion* completion) override;
  void Wait(RequestHandle handle, Completion* completion) override;
  bool IsComplete(RequestHandle handle) override;
  bool SendNowIn(Caller caller, const Message& message) override;
  ErrorCode SendIn(Caller caller, CallNote* note, const Message& message,
                   Completion* completion) override;
  ErrorCode ReceiveIn(Caller caller, CallNote* note, const Message& message,
                      Completion* completion) override;

  // Counts what is still an estimate to be made (ShortCalls::AddRest).
  void NoteEnd() { short_calls_.AddRest(); }
  // A request of this class that has completed elsewhere.
  void NoteEnd(RequestHandle handle, const Completion& completion) {
    NoteEnd(handle, completion, Now());
  }

 private:
  // A request under way, by its slot.
  struct Request {
    uint64_t bytes;
    int32_t peer;
    int32_t tag;
    uint32_t context;
    uint32_t order;  // of a receive (EventLog::BeginReceive)
    bool is_send;
    bool is_known;
    bool is_persistent;
  };

  Request* At(RequestHandle handle);
  void Keep(RequestHandle handle, const Message& message, bool is_send, bool is_persistent);
  void NoteSent(const Message& message, uint64_t begin_ns, uint64_t waited_ns);
  void NoteReceived(const Completion& completion, uint32_t context, uint32_t order,
                    uint64_t begin_ns, uint64_t waited_ns);
  void NoteEnd(RequestHandle handle, const Completion& completion, uint64_t begin_ns);
  // When the thread's call of this class begins, for events.
  uint64_t Now() const { return events_ != nullptr ? EventLog::Now() : 0; }
  uint32_t BeginReceive() { return events_ != nullptr ? events_->BeginReceive() : 0; }
  void NotePoll();
  uint64_t WaitedNs();

  // Returns true if a call that begins now may be a short one: those of several threads at a time,
  // and those in other calls, are told in full.
  bool MayBeShort() const { return !shared_ && calls_.current() == nullptr; }
  ErrorCode SendInFull(CallNote* note, const Message& message, Completion* completion);
  ErrorCode ReceiveInFull(CallNote* note, const Message& message, Completion* completion);
  bool SendTimed(ShortCall* call, const Message& message);
  ErrorCode ReceiveTimed(ShortCall* call, CallNote* note, const Message& message,
                         Completion* completion);
  void EndReceiveInFull(CallNote* note, const Message& message, uint32_t order, ErrorCode error,
                        const Completion& completion);
  void CountTimed(ShortCall* call, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns);

  Messaging& own_;
  Calls& calls_;
  Profile* const profile_;
  EventLog* const events_;
  const uint64_t request_limit_;
  const bool& shared_;
  ShortCalls short_calls_;
  // Zeroed pages that are touched at first use. A slot is one request's at a time, whose thread
  // alone touches it.
  const std::unique_ptr<Request[], void (*)(void*)> requests_;
};

}  // namespace ferry::client
