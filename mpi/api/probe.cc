// Probes, and receives of what a matched probe found (MPI 5.0, section 3.8).
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/init/fail.h"
#include "mpi/init/process.h"
#include "mpi/p2p/message_request.h"
#include "mpi/p2p/status.h"
#include "shm/vain_looks.h"

namespace ferry::mpi {

// A message that a matched probe took out of the queue. libferry receives it at once into memory of
// its own, from where MPI_Mrecv takes it.
class MatchedMessage : public Object {
 public:
  MatchedMessage(Comm& comm, const client::Messaging::MatchedReceive& receive)
      : comm(Ref<Comm>::Share(&comm)), receive(receive) {}
  ~MatchedMessage() override { std::free(receive.buffer); }

  const Ref<Comm> comm;
  client::Messaging::MatchedReceive receive;
};

namespace {

void SetEnvelope(MPI_Status* status, const Comm& comm, const client::Completion& found) {
  SetStatus(status, comm.RankOf(found.source), found.tag, static_cast<int64_t>(found.size_bytes));
}

// `flag` null: blocks.
int ProbeFor(const char* call, int source, int tag, MPI_Comm handle, int* flag,
             MPI_Status* status) {
  Envelope envelope;
  FERRY_RETURN_ERROR(ResolveProbe(call, source, tag, handle, &envelope));
  if (flag != nullptr) {
    *flag = envelope.is_null ? 1 : 0;
  }
  if (envelope.is_null) {
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  }
  const MessageArguments pattern{call, nullptr, 0, MPI_DATATYPE_NULL, source, tag, handle};
  MessageNote note(pattern, envelope);
  const client::CallScope scope(front_end->calls, &note);
  client::Completion found;
  const ErrorCode error = front_end->messages->Probe(envelope.message, flag == nullptr, &found);
  if (error == ErrorCode::kWouldBlock) {
    shm::NoteVainLook();
    return MPI_SUCCESS;
  }
  if (error != ErrorCode::kOk) {
    return Fail(call, envelope.comm, FailureOf(error));
  }
  if (flag != nullptr) {
    *flag = 1;
  }
  SetEnvelope(status, *envelope.comm, found);
  return MPI_SUCCESS;
}

int ProbeMatched(const char* call, int source, int tag, MPI_Comm handle, int* flag,
                 MPI_Message* message, MPI_Status* status) {
  Envelope envelope;
  FERRY_RETURN_ERROR(ResolveProbe(call, source, tag, handle, &envelope));
  if (message == nullptr) {
    return Fail(call, envelope.comm, MPI_ERR_ARG, "the address for the message is null");
  }
  *message = MPI_MESSAGE_NULL;
  if (flag != nullptr) {
    *flag = envelope.is_null ? 1 : 0;
  }
  if (envelope.is_null) {
    *message = MPI_MESSAGE_NO_PROC;
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  }
  const MessageArguments pattern{call, nullptr, 0, MPI_DATATYPE_NULL, source, tag, handle};
  MessageNote note(pattern, envelope);
  const client::CallScope scope(front_end->calls, &note);
  client::Messaging::MatchedReceive receive;
  const ErrorCode error =
      front_end->messages->ProbeMatched(envelope.message, flag == nullptr, &receive);
  if (error != ErrorCode::kOk) {
    std::free(receive.buffer);
    if (error == ErrorCode::kWouldBlock) {
      shm::NoteVainLook();
      return MPI_SUCCESS;
    }
    return Fail(call, envelope.comm, FailureOf(error));
  }
  if (flag != nullptr) {
    *flag = 1;
  }
  SetEnvelope(status, *envelope.comm, receive.envelope);
  *message = matched_messages.Add(new MatchedMessage(*envelope.comm, receive));
  return MPI_SUCCESS;
}

// Brings what the probe took to where the program wants it.
class MatchedReceiveRequest : public Request {
 public:
  MatchedReceiveRequest(Ref<MatchedMessage> message, Payload payload)
      : message_(std::move(message)), payload_(std::move(payload)) {}

  bool IsDone() override { return front_end->messages->IsComplete(message_->receive.handle); }
  Failure End(MPI_Status* status) override {
    client::Completion completion;
    (void)front_end->messages->Test(message_->receive.handle, &completion);
    Look(status);
    if (completion.error != ErrorCode::kOk) {
      return FailureOf(completion.error);
    }
    const auto bytes = static_cast<int64_t>(message_->receive.envelope.size_bytes);
    FERRY_RETURN_FAILURE(payload_.CopyIn(message_->receive.buffer, Taken()));
    return bytes <= payload_.size_bytes() ? Failure() : FailureOf(ErrorCode::kTruncated);
  }
  void Look(MPI_Status* status) override {
    client::Completion envelope = message_->receive.envelope;
    envelope.size_bytes = static_cast<uint64_t>(Taken());
    SetEnvelope(status, *message_->comm, envelope);
  }
  Failure Cancel() override { return {}; }  // it was matched: too late
  Comm* comm() const override { return message_->comm.get(); }

 private:
  int64_t Taken() const {
    return std::min(static_cast<int64_t>(message_->receive.envelope.size_bytes),
                    payload_.size_bytes());
  }

  const Ref<MatchedMessage> message_;
  const Payload payload_;
};

struct MatchedArguments {
  const char* call;
  void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  MPI_Message* message;
};

// Receives MPI_MESSAGE_NO_PROC: there is nothing to receive, but the arguments must be right.
int DropNothing(const MatchedArguments& arguments) {
  FERRY_RETURN_ERROR(CheckRunning(arguments.call));
  Envelope envelope;
  const int error = ResolveData({arguments.call, arguments.buffer, arguments.count,
                                 arguments.datatype, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF},
                                Process::self(), &envelope);
  if (error == MPI_SUCCESS) {
    *arguments.message = MPI_MESSAGE_NULL;
  }
  return error;
}

// *request stays null for MPI_MESSAGE_NO_PROC.
int BeginMatched(const MatchedArguments& arguments, Ref<Request>* request) {
  if (arguments.message == nullptr) {
    return Fail(arguments.call, nullptr, MPI_ERR_ARG, "the address of the message is null");
  }
  if (*arguments.message == MPI_MESSAGE_NO_PROC) {
    return DropNothing(arguments);
  }
  MatchedMessage* const found = matched_messages.Find(*arguments.message);
  if (found == nullptr) {
    return FailHandle(arguments.call, nullptr, MPI_ERR_REQUEST, "MPI_Message", *arguments.message);
  }
  Envelope envelope;
  const MessageArguments data{arguments.call,       arguments.buffer, arguments.count,
                              arguments.datatype,   MPI_ANY_SOURCE,   MPI_ANY_TAG,
                              found->comm->handle()};
  FERRY_RETURN_ERROR(ResolveData(data, *found->comm, &envelope));
  *request = MakeRef<MatchedReceiveRequest>(
      Ref<MatchedMessage>::Adopt(matched_messages.Remove(*arguments.message)),
      PayloadOf(data, envelope));
  *arguments.message = MPI_MESSAGE_NULL;
  return MPI_SUCCESS;
}

int ReceiveMatched(const MatchedArguments& arguments, MPI_Status* status) {
  Ref<Request> request;
  FERRY_RETURN_ERROR(BeginMatched(arguments, &request));
  if (!request) {
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  }
  {
    CommNote note(arguments.call, request->comm());
    const client::CallScope scope(front_end->calls, &note);
    request->Await();
  }
  const Failure failure = request->End(status);
  return Conclude(arguments.call, *request, failure);
}

int BeginReceiveMatched(const MatchedArguments& arguments, MPI_Request* handle) {
  if (handle == nullptr) {
    return Fail(arguments.call, nullptr, MPI_ERR_ARG, "the address for the request is null");
  }
  Ref<Request> request;
  FERRY_RETURN_ERROR(BeginMatched(arguments, &request));
  if (!request) {
    Ref<MessageRequest> null = MessageRequest::Take();
    null->BeginNull(Process::self());
    request = std::move(null);
  }
  *handle = request.Leave()->Publish();
  return MPI_SUCCESS;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status)) {
  return ProbeFor(FERRY_MPI_NAME, source, tag, comm, nullptr, status);
}

FERRY_MPI_CALL(int, MPI_Iprobe,
               (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status)) {
  return flag == nullptr
             ? Fail(FERRY_MPI_NAME, nullptr, MPI_ERR_ARG, "the address for the flag is null")
             : ProbeFor(FERRY_MPI_NAME, source, tag, comm, flag, status);
}

FERRY_MPI_CALL(int, MPI_Mprobe,
               (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status)) {
  return ProbeMatched(FERRY_MPI_NAME, source, tag, comm, nullptr, message, status);
}

FERRY_MPI_CALL(int, MPI_Improbe,
               (int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                MPI_Status* status)) {
  return flag == nullptr
             ? Fail(FERRY_MPI_NAME, nullptr, MPI_ERR_ARG, "the address for the flag is null")
             : ProbeMatched(FERRY_MPI_NAME, source, tag, comm, flag, message, status);
}

FERRY_MPI_TWINS(MPI_Mrecv,
                (void* buffer, Count count, MPI_Datatype datatype, MPI_Message* message,
                 MPI_Status* status),
                ReceiveMatched({FERRY_MPI_NAME, buffer, count, datatype, message}, status));

FERRY_MPI_TWINS(MPI_Imrecv,
                (void* buffer, Count count, MPI_Datatype datatype, MPI_Message* message,
                 MPI_Request* request),
                BeginReceiveMatched({FERRY_MPI_NAME, buffer, count, datatype, message}, request));

}  // namespace ferry::mpi
