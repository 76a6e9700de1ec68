// Messages of a rank, as front ends start and complete them (front_end.h): communicator contexts,
// synchronous sends and matched probes included.
//
// Calling thread: any that the thread level allows; after NodePeers::SetThreads(true), any.
// Functions that block say so.
#pragma once

#include <cstdint>

#include "client/api/message.h"
#include "common/error_code.h"

namespace ferry::client {

class Messaging {
 public:
  // kInvalidBuffer: the buffer runs past the end of device memory, or is an offloaded one of which
  // some bytes were never synchronised (looked at when a persistent send starts). kLimitExceeded
  // when all request slots are in use; the rank's poison when it has one. A handle of 0 is not
  // returned with kOk; kCompletedSend may be.
  virtual ErrorCode StartSend(const Message& message, RequestHandle* handle) = 0;
  virtual ErrorCode StartReceive(const Message& message, RequestHandle* handle) = 0;
  // The fast path for small messages, without a request: a send that can leave at once, or a
  // receive whose message has arrived from this node. False: nothing happened; use the ordinary
  // call, which also reports what is wrong with the message.
  virtual bool SendNow(const Message& message) = 0;
  virtual bool ReceiveNow(const Message& message, Completion* completion) = 0;
  // Block. The return value tells whether the message started; `completion->error`, how it ended.
  virtual ErrorCode Send(const Message& message, Completion* completion) = 0;
  ErrorCode Receive(const Message& message, Completion* completion) {
    return ReceiveUntil(message, UINT64_MAX, completion, nullptr);
  }
  // Like Receive, but only until `end_ns` (MonotonicNs). Soon after that it returns kWouldBlock,
  // and the receive continues as *handle.
  virtual ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                                 RequestHandle* handle) = 0;
  // Makes a persistent request without starting it.
  virtual ErrorCode MakePersistent(const Message& message, bool is_send, RequestHandle* handle) = 0;
  virtual ErrorCode Start(RequestHandle handle) = 0;
  virtual ErrorCode FreePersistent(RequestHandle handle) = 0;
  // Asks for cancellation. The request must still be completed; it ends with kCancelled or as
  // usual.
  virtual bool Cancel(RequestHandle handle) = 0;
  // Looks for an unexpected message; kWouldBlock when there is none and `block` is false.
  virtual ErrorCode Probe(const Message& pattern, bool block, Completion* found) = 0;
  // Like Probe, but also takes the message out of the queue, so that no other receive or probe
  // matches it, and receives it into memory of its size. The caller waits for `receive->handle`,
  // then frees `receive->buffer` with std::free, also after an error. The buffer is null before the
  // call, and for an empty message.
  struct MatchedReceive {
    RequestHandle handle = 0;
    void* buffer = nullptr;
    Completion envelope;
  };
  virtual ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) = 0;
  // Tries to complete the request, once. True: it is complete, `completion` is filled and the
  // handle is no longer valid (unless persistent). A persistent request that was not started counts
  // as complete.
  virtual bool Test(RequestHandle handle, Completion* completion) = 0;
  virtual void Wait(RequestHandle handle, Completion* completion) = 0;  // blocks
  // Like Test, but makes no progress: reports what is known by now.
  bool TestNow(RequestHandle handle, Completion* completion) {
    return IsComplete(handle) && Test(handle, completion);
  }
  // Returns true if the request is known to be complete, or the rank is poisoned. Copies the data
  // that the calling thread has to copy, but makes no other progress: for use in WaitFor's `done`.
  virtual bool IsComplete(RequestHandle handle) = 0;

 protected:
  ~Messaging() = default;
};

}  // namespace ferry::client
