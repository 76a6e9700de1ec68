// The C API (ferry.h) over client/api: messages and their requests. It only checks arguments and
// turns codes into sentences.
#include <string>
#include <utility>

#include "client/api/measured_calls.h"
#include "client/c_api/last_error.h"
#include "client/c_api/running.h"
#include "client/rank/client.h"
#include "include/ferry/ferry.h"
#include "shm/vain_looks.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::CallScope;
using ferry::client::CheckRank;
using ferry::client::CheckRunning;
using ferry::client::Completion;
using ferry::client::connection;
using ferry::client::Fail;
using ferry::client::IsRunning;
using ferry::client::Message;
using ferry::client::Report;
using ferry::shm::CallName;

Status CheckBuffer(const void* buffer, size_t size_bytes) {
  if (buffer == nullptr && size_bytes != 0) {
    return {ErrorCode::kInvalidBuffer,
            "the buffer is null but " + std::to_string(size_bytes) + " bytes are to be moved"};
  }
  return {};
}

Status CheckTag(int tag, bool any_allowed) {
  if ((tag >= 0 && tag <= FERRY_TAG_MAX) || (any_allowed && tag == FERRY_ANY_TAG)) {
    return {};
  }
  return {ErrorCode::kInvalidTag, "tag " + std::to_string(tag) + " is not between 0 and " +
                                      std::to_string(FERRY_TAG_MAX) +
                                      (any_allowed ? ", nor FERRY_ANY_TAG" : "")};
}

// Returns true if the arguments are those of nearly every call, so that no detailed check is
// needed.
inline bool IsPlainMessage(const void* buffer, int peer, int tag) {
  return IsRunning() && buffer != nullptr &&
         static_cast<uint32_t>(peer) < connection.client->size() &&
         static_cast<uint32_t>(tag) <= FERRY_TAG_MAX;
}

Status CheckMessage(const void* buffer, size_t size_bytes, int peer, int tag, bool receive) {
  FERRY_RETURN_IF_ERROR(CheckRunning());
  FERRY_RETURN_IF_ERROR(CheckBuffer(buffer, size_bytes));
  FERRY_RETURN_IF_ERROR(CheckRank(peer, receive));
  return CheckTag(tag, receive);
}

int CheckInDetail(const Message& message, bool receive) {
  const Status status =
      CheckMessage(message.buffer, message.size_bytes, message.peer, message.tag, receive);
  return status.ok() ? FERRY_SUCCESS : Fail(status);
}

// FERRY_SUCCESS, or what the call is to return.
inline int Check(const Message& message, bool receive) {
  return IsPlainMessage(message.buffer, message.peer, message.tag)
             ? FERRY_SUCCESS
             : CheckInDetail(message, receive);
}

Status CheckRequest(const ferry_request* request) {
  if (IsRunning() && request != nullptr && connection.client->IsValid(*request) &&
      !connection.client->queues().any()) [[likely]] {
    return {};
  }
  FERRY_RETURN_IF_ERROR(CheckRunning());
  if (request == nullptr) {
    return {ErrorCode::kInvalidArgument, "the address of the request is null"};
  }
  if (*request != FERRY_REQUEST_NULL && !connection.client->IsValid(*request)) {
    return {ErrorCode::kInvalidRequest, "the request is not active: completed and freed before?"};
  }
  if (connection.client->IsEnqueued(*request)) {
    return {ErrorCode::kInvalidRequest,
            "the request belongs to a queue: call ferry_queue_wait first"};
  }
  return {};
}

// Through which the rank's messages go: the connection itself, or what measures it.
inline ferry::client::Messaging& Messages() { return *connection.client->messages; }
inline bool IsMeasured() {
  return connection.client->messages != static_cast<ferry::client::Messaging*>(connection.client);
}

// Only while IsMeasured.
inline ferry::client::MeasuredCalls& Measured() {
  return static_cast<ferry::client::MeasuredCalls&>(Messages());
}

// A call for a message, or for requests (then `message` is null), for those who look at the rank
// while it waits (client/api/calls.h).
struct MessageCall : ferry::client::CallNote {
  MessageCall(CallName function, const Message* message)
      : CallNote(&DescribeIt), function(function), message(message) {}

  const CallName function;
  const Message* const message;

 private:
  static void DescribeIt(const CallNote& note, ferry::shm::CallDescription* description) {
    const auto& call = static_cast<const MessageCall&>(note);
    description->name = call.function;
    if (call.message == nullptr) {
      return;
    }
    const bool is_any = call.message->peer == ferry::client::kAny;
    description->peer = is_any ? ferry::shm::kCallAnyRank : call.message->peer;
    description->peer_in_group = description->peer;
    const bool is_any_tag = call.message->tag == ferry::client::kAny;
    description->flags |= is_any_tag ? ferry::shm::kCallAnyTag : ferry::shm::kCallHasTag;
    description->tag = call.message->tag;
    if (call.function != CallName::kFerryProbe) {
      description->flags |= ferry::shm::kCallHasBytes;
      description->bytes = call.message->size_bytes;
    }
  }
};

ferry::client::Caller CallerOf(CallName function) {
  return {static_cast<uint64_t>(function), UINT32_MAX};
}

Message ToMessage(const void* buffer, size_t size_bytes, int peer, int tag) {
  return {const_cast<void*>(buffer), size_bytes, peer, tag, ferry::client::kUserContext};
}

void Fill(ferry_status* status, const Completion& completion) {
  if (status == nullptr) {
    return;
  }
  const bool cancelled = completion.error == ErrorCode::kCancelled;
  status->source = completion.source;
  status->tag = completion.tag;
  status->error = cancelled ? FERRY_SUCCESS : static_cast<int>(completion.error);
  status->cancelled = cancelled ? 1 : 0;
  status->size_bytes = completion.size_bytes;
}

// Ends a completed request as the caller sees it.
int Finish(ferry_request* request, ferry_status* status, const Completion& completion) {
  Fill(status, completion);
  if (!connection.client->IsValid(*request) || *request == ferry::client::kCompletedSend) {
    *request = FERRY_REQUEST_NULL;
  }
  return completion.error == ErrorCode::kCancelled ? FERRY_SUCCESS : Report(completion.error);
}

// Waits for a request that was checked.
int WaitFor(ferry_request* request, ferry_status* status) {
  Completion completion;
  if (*request != FERRY_REQUEST_NULL) {
    Messages().Wait(*request, &completion);
  }
  return Finish(request, status, completion);
}

// Checks the arguments, then calls `start(message, request)`.
template <typename Start>
int Begin(const Message& message, bool receive, ferry_request* request, Start&& start) {
  if (const int error = Check(message, receive); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  if (request == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address of the request is null");
  }
  return Report(start(message, request));
}

int MakePersistent(const Message& message, bool is_send, ferry_request* request) {
  return Begin(message, !is_send, request, [&](const Message& checked, ferry_request* made) {
    return Messages().MakePersistent(checked, is_send, made);
  });
}

}  // namespace

extern "C" {

int ferry_isend(const void* buffer, size_t size_bytes, int destination, int tag,
                ferry_request* request) {
  return Begin(ToMessage(buffer, size_bytes, destination, tag), false, request,
               [](const Message& message, ferry_request* started) {
                 *started = FERRY_REQUEST_NULL;
                 return Messages().StartSend(message, started);
               });
}

int ferry_irecv(void* buffer, size_t size_bytes, int source, int tag, ferry_request* request) {
  return Begin(ToMessage(buffer, size_bytes, source, tag), true, request,
               [](const Message& message, ferry_request* started) {
                 *started = FERRY_REQUEST_NULL;
                 return Messages().StartReceive(message, started);
               });
}

int ferry_send(const void* buffer, size_t size_bytes, int destination, int tag) {
  const Message message = ToMessage(buffer, size_bytes, destination, tag);
  if (const int error = Check(message, false); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  const bool is_sent = IsMeasured() ? Measured().SendNowIn(CallerOf(CallName::kFerrySend), message)
                                    : connection.client->SendNow(message);
  if (is_sent) [[likely]] {
    return FERRY_SUCCESS;
  }
  MessageCall call(CallName::kFerrySend, &message);
  Completion completion;
  const ErrorCode error =
      ferry::client::SendInCall(connection.client->calls, connection.client->messages,
                                CallerOf(CallName::kFerrySend), &call, message, &completion);
  return Report(error != ErrorCode::kOk ? error : completion.error);
}

int ferry_recv(void* buffer, size_t size_bytes, int source, int tag, ferry_status* status) {
  const Message message = ToMessage(buffer, size_bytes, source, tag);
  if (const int error = Check(message, true); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  MessageCall call(CallName::kFerryRecv, &message);
  Completion completion;
  const ErrorCode error =
      ferry::client::ReceiveInCall(connection.client->calls, connection.client->messages,
                                   CallerOf(CallName::kFerryRecv), &call, message, &completion);
  Fill(status, completion);
  return Report(error != ErrorCode::kOk ? error : completion.error);
}

int ferry_send_init(const void* buffer, size_t size_bytes, int destination, int tag,
                    ferry_request* request) {
  return MakePersistent(ToMessage(buffer, size_bytes, destination, tag), true, request);
}

int ferry_rsend_init(const void* buffer, size_t size_bytes, int destination, int tag,
                     ferry_request* request) {
  Message message = ToMessage(buffer, size_bytes, destination, tag);
  message.ready = true;
  return MakePersistent(message, true, request);
}

int ferry_recv_init(void* buffer, size_t size_bytes, int source, int tag, ferry_request* request) {
  return MakePersistent(ToMessage(buffer, size_bytes, source, tag), false, request);
}

int ferry_start(ferry_request request) {
  if (Status status = CheckRequest(&request); !status.ok()) {
    return Fail(status);
  }
  const ErrorCode error = Messages().Start(request);
  return error == ErrorCode::kInvalidRequest
             ? Fail(error, "only a persistent request that is not active can be started")
             : Report(error);
}

int ferry_request_free(ferry_request* request) {
  if (Status status = CheckRequest(request); !status.ok()) {
    return Fail(status);
  }
  if (*request == FERRY_REQUEST_NULL) {
    return FERRY_SUCCESS;
  }
  if (Messages().FreePersistent(*request) != ErrorCode::kOk) {
    return Fail(ErrorCode::kInvalidRequest,
                "only a persistent request that is not active can be freed; wait for it first");
  }
  *request = FERRY_REQUEST_NULL;
  return FERRY_SUCCESS;
}

int ferry_test(ferry_request* request, int* done, ferry_status* status) {
  if (Status check = CheckRequest(request); !check.ok()) {
    return Fail(check);
  }
  if (done == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address for the flag is null");
  }
  Completion completion;
  *done = *request == FERRY_REQUEST_NULL || Messages().Test(*request, &completion) ? 1 : 0;
  if (*done == 0) {
    ferry::shm::NoteVainLook();
    return FERRY_SUCCESS;
  }
  return Finish(request, status, completion);
}

int ferry_wait(ferry_request* request, ferry_status* status) {
  if (Status check = CheckRequest(request); !check.ok()) {
    return Fail(check);
  }
  MessageCall call(CallName::kFerryWait, nullptr);
  const CallScope scope(connection.client->calls, &call);
  return WaitFor(request, status);
}

int ferry_waitall(size_t count, ferry_request* requests, ferry_status* statuses) {
  if (count != 0 && requests == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the array of requests is null");
  }
  for (size_t i = 0; i < count; ++i) {
    if (Status check = CheckRequest(&requests[i]); !check.ok()) {
      return Fail(check);
    }
  }
  if (count == 0) {
    return FERRY_SUCCESS;  // there need be no connection
  }
  MessageCall call(CallName::kFerryWaitall, nullptr);
  const CallScope scope(connection.client->calls, &call);
  if (count > 1) {  // together: shared work is done once
    connection.client->AwaitAll({requests, count});
  }
  int result = FERRY_SUCCESS;
  std::string sentence;
  for (size_t i = 0; i < count; ++i) {
    const int error = WaitFor(&requests[i], statuses == nullptr ? nullptr : &statuses[i]);
    if (error != FERRY_SUCCESS && result == FERRY_SUCCESS) {
      result = error;
      sentence = ferry_last_error();
    }
  }
  if (result != FERRY_SUCCESS) {
    ferry::client::RestoreLastError(std::move(sentence));
  }
  return result;
}

int ferry_waitany(size_t count, ferry_request* requests, int* index, ferry_status* status) {
  if (index == nullptr || (count != 0 && requests == nullptr)) {
    return Fail(ErrorCode::kInvalidArgument, "the array of requests or the index is null");
  }
  for (size_t i = 0; i < count; ++i) {
    if (Status check = CheckRequest(&requests[i]); !check.ok()) {
      return Fail(check);
    }
  }
  Completion completion;
  if (Status check = CheckRunning(); !check.ok()) {
    return Fail(check);
  }
  MessageCall call(CallName::kFerryWaitany, nullptr);
  const CallScope scope(connection.client->calls, &call);
  *index = connection.client->WaitAny({requests, count}, &completion);
  return *index < 0 ? FERRY_SUCCESS : Finish(&requests[*index], status, completion);
}

int ferry_iprobe(int source, int tag, int* found, ferry_status* status) {
  if (Status check = CheckMessage(nullptr, 0, source, tag, true); !check.ok()) {
    return Fail(check);
  }
  if (found == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address for the flag is null");
  }
  Completion completion;
  const ErrorCode error = Messages().Probe(ToMessage(nullptr, 0, source, tag), false, &completion);
  *found = error == ErrorCode::kOk ? 1 : 0;
  if (*found != 0) {
    Fill(status, completion);
  } else {
    ferry::shm::NoteVainLook();
  }
  return error == ErrorCode::kWouldBlock ? FERRY_SUCCESS : Report(error);
}

int ferry_probe(int source, int tag, ferry_status* status) {
  if (Status check = CheckMessage(nullptr, 0, source, tag, true); !check.ok()) {
    return Fail(check);
  }
  const Message pattern = ToMessage(nullptr, 0, source, tag);
  MessageCall call(CallName::kFerryProbe, &pattern);
  const CallScope scope(connection.client->calls, &call);
  Completion completion;
  const ErrorCode error = Messages().Probe(pattern, true, &completion);
  Fill(status, completion);
  return Report(error);
}

int ferry_cancel(ferry_request request) {
  if (Status status = CheckRequest(&request); !status.ok()) {
    return Fail(status);
  }
  (void)Messages().Cancel(request);
  return FERRY_SUCCESS;
}

}  // extern "C"
