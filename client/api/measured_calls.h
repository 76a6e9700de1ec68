// Calls of a measured rank that send or receive one message and wait for its end, which are the
// most frequent ones: what measures the rank hears of the call and of its message together, and
// most of such calls need no reading of the clock (client/profile/short_calls.h).
//
// A front end sends and receives in calls by SendInCall and ReceiveInCall, whether the rank is
// measured or not.
//
// Calling thread: as Messaging. The functions block.
#pragma once

#include <cstdint>

#include "client/api/calls.h"
#include "client/api/message.h"
#include "client/api/messaging.h"

namespace ferry::client {

// Calls that count together have this in common, and the peer of their messages.
struct Caller {
  uint64_t function;  // the address of its name, a literal, or a small number
  uint32_t group;     // the communicator's number; UINT32_MAX: it has none
};

// CallNote::entered_ns of a call that has not read the clock yet. It does so once it has looked in
// vain for about a microsecond, when that costs it nothing.
inline constexpr uint64_t kNotReadYet = 1;

// A rank's messages (FrontEnd::messages) where the rank is measured, and where they are other ones
// than the connection itself.
class MeasuredCalls : public Messaging {
 public:
  // Sends in a call of which there is no note yet, if the message can leave at once. False: nothing
  // happened; SendIn.
  virtual bool SendNowIn(Caller caller, const Message& message) = 0;
  // As Send and Receive, in the call `note` that begins and ends with them. The thread is in no
  // call that `note` describes already. Calls of one caller and one peer have one CallDescription,
  // but for tag and bytes; these are the message's.
  virtual ErrorCode SendIn(Caller caller, CallNote* note, const Message& message,
                           Completion* completion) = 0;
  virtual ErrorCode ReceiveIn(Caller caller, CallNote* note, const Message& message,
                              Completion* completion) = 0;

 protected:
  ~MeasuredCalls() = default;
};

// use() in the call `note`, which no watcher hears of: as in a CallScope, without a look at that.
template <typename Use>
ErrorCode InUnwatchedCall(Calls* calls, CallNote* note, Use&& use) {
  CallNote*& place = calls->current();
  CallNote* const outer = place;
  place = note;
  const ErrorCode error = use();
  place = outer;
  calls->Leave(note, outer);
  return error;
}

// The rank's watcher (Calls::SetWatcher) and its MeasuredCalls are there together, from its joining
// to its end. `messages`: FrontEnd::messages, here and below.
inline bool SendNowInCall(const Calls& calls, Messaging* messages, Caller caller,
                          const Message& message) {
  return calls.watcher() != nullptr &&
         static_cast<MeasuredCalls&>(*messages).SendNowIn(caller, message);
}

inline ErrorCode SendInCall(Calls* calls, Messaging* messages, Caller caller, CallNote* note,
                            const Message& message, Completion* completion) {
  if (calls->watcher() != nullptr) [[unlikely]] {
    return static_cast<MeasuredCalls&>(*messages).SendIn(caller, note, message, completion);
  }
  return InUnwatchedCall(calls, note, [&] { return messages->Send(message, completion); });
}

inline ErrorCode ReceiveInCall(Calls* calls, Messaging* messages, Caller caller, CallNote* note,
                               const Message& message, Completion* completion) {
  if (calls->watcher() != nullptr) [[unlikely]] {
    return static_cast<MeasuredCalls&>(*messages).ReceiveIn(caller, note, message, completion);
  }
  return InUnwatchedCall(calls, note, [&] { return messages->Receive(message, completion); });
}

}  // namespace ferry::client
