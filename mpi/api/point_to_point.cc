// Messages: sends and receives of all modes, blocking, nonblocking and persistent, and the buffers
// of buffered sends (MPI 5.0, sections 3.2 to 3.9).
#include <cstring>
#include <utility>

#include "client/api/measured_calls.h"
#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/api/short_packed.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/message_request.h"
#include "mpi/p2p/send_buffer.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// The four ways to send (MPI 5.0, section 3.4). A ready send is like a standard one, except for
// persistent requests that are matched (mpix.h). For others nothing is saved by knowing that the
// receive is there: Ferry finds out by itself.
enum class SendMode : uint8_t { kStandard, kBuffered, kSynchronous, kReady };

client::Caller CallerOf(const MessageArguments& arguments, const Envelope& envelope) {
  return {reinterpret_cast<uintptr_t>(arguments.call), envelope.comm->number()};
}

// Sends the envelope's message, and waits. Inlined: it is what MPI_Send does.
[[gnu::always_inline]] inline int AwaitSend(const MessageArguments& arguments, Envelope& envelope) {
  if (front_end->messages->SendNow(envelope.message)) [[likely]] {
    return MPI_SUCCESS;
  }
  if (client::SendNowInCall(*front_end->calls, front_end->messages, CallerOf(arguments, envelope),
                            envelope.message)) {
    return MPI_SUCCESS;
  }
  MessageNote note(arguments, envelope);
  client::Completion completion;
  ErrorCode error =
      client::SendInCall(front_end->calls, front_end->messages, CallerOf(arguments, envelope),
                         &note, envelope.message, &completion);
  if (error == ErrorCode::kOk) [[likely]] {
    error = completion.error;
  }
  return error == ErrorCode::kOk ? MPI_SUCCESS
                                 : Fail(arguments.call, envelope.comm, FailureOf(error));
}

int SendDense(const MessageArguments& arguments, Envelope& envelope) {
  SetDense(arguments, &envelope);
  return AwaitSend(arguments, envelope);
}

// Not inlined: other sends need no such stack.
[[gnu::noinline]] int SendShortPacked(const MessageArguments& arguments, Envelope& envelope) {
  ShortPacked packed(arguments, &envelope);
  const Failure failure = packed.Pack();
  return failure.ok() ? AwaitSend(arguments, envelope)
                      : Fail(arguments.call, envelope.comm, failure);
}

// Starts a request for a message and gives it to `use`, a function of Ref<MessageRequest>.
template <typename Use>
int WithRequest(const MessageArguments& arguments, const Envelope& envelope, bool is_send,
                Use&& use) {
  Ref<MessageRequest> request = MessageRequest::Take();
  const Failure failure =
      request->Begin(*envelope.comm, is_send, PayloadOf(arguments, envelope), envelope.message);
  return failure.ok() ? use(std::move(request)) : Fail(arguments.call, envelope.comm, failure);
}

// Starts a receive, which from MPI_PROC_NULL is complete at once, and gives it to `use`.
template <typename Use>
int StartReceive(const MessageArguments& arguments, const Envelope& envelope, Use&& use) {
  if (envelope.is_null) [[unlikely]] {
    Ref<MessageRequest> null = MessageRequest::Take();
    null->BeginNull(*envelope.comm);
    return use(std::move(null));
  }
  return WithRequest(arguments, envelope, false, use);
}

int AwaitRequest(const char* call, MessageRequest& request, MPI_Status* status) {
  request.Await();
  const Failure failure = request.End(status);
  return Conclude(call, request, failure);
}

int FailMemory(const char* call, Comm* comm, MPI_Request* handle) {
  *handle = MPI_REQUEST_NULL;
  return Fail(call, comm, MPI_ERR_NO_MEM, "no memory for another request");
}

// The program's handle; a request that is over needs none of its own.
int PublishRequest(const char* call, Ref<MessageRequest> request, MPI_Request* handle) {
  if (request->is_over()) {
    (void)request->End(MPI_STATUS_IGNORE);
    *handle = completed_request;
    return MPI_SUCCESS;
  }
  *handle = request->Publish();
  if (*handle == nullptr) {
    return FailMemory(call, request->comm(), handle);
  }
  (void)request.Leave();
  return MPI_SUCCESS;
}

int PublishStarted(const MessageArguments& arguments, const Envelope& envelope, bool is_send,
                   client::RequestHandle started, MPI_Request* handle) {
  Ref<MessageRequest> request = MessageRequest::Take();
  request->Adopt(*envelope.comm, is_send, envelope.message, started);
  return PublishRequest(arguments.call, std::move(request), handle);
}

int StartDense(const MessageArguments& arguments, const Envelope& envelope, bool is_send,
               client::RequestHandle* started) {
  const ErrorCode error = is_send ? front_end->messages->StartSend(envelope.message, started)
                                  : front_end->messages->StartReceive(envelope.message, started);
  return error == ErrorCode::kOk ? MPI_SUCCESS
                                 : Fail(arguments.call, envelope.comm, FailureOf(error));
}

// Most sends are over at once, and need no request of their own.
int BeginDense(const MessageArguments& arguments, Envelope& envelope, MPI_Request* handle) {
  SetDense(arguments, &envelope);
  if (front_end->messages->SendNow(envelope.message)) [[likely]] {
    return MPI_SUCCESS;
  }
  client::RequestHandle started = 0;
  FERRY_RETURN_ERROR(StartDense(arguments, envelope, true, &started));
  if (started == client::kCompletedSend) [[likely]] {
    return MPI_SUCCESS;
  }
  return PublishStarted(arguments, envelope, true, started, handle);
}

int FailAddress(const MessageArguments& arguments) {
  return Fail(arguments.call, comms.Find(arguments.comm), MPI_ERR_ARG,
              "the address for the request is null");
}

inline int CheckAddress(const MessageArguments& arguments, const MPI_Request* request) {
  return request != nullptr ? MPI_SUCCESS : FailAddress(arguments);
}

// A small message may be there already: then the request only keeps its status.
int ReceiveDense(const MessageArguments& arguments, Envelope& envelope, MPI_Request* handle) {
  SetDense(arguments, &envelope);
  client::Completion completion;
  if (front_end->messages->ReceiveNow(envelope.message, &completion)) {
    *handle = MessageRequest::PublishReceived(*envelope.comm, completion);
    return *handle != nullptr ? MPI_SUCCESS : FailMemory(arguments.call, envelope.comm, handle);
  }
  client::RequestHandle started = 0;
  FERRY_RETURN_ERROR(StartDense(arguments, envelope, false, &started));
  return PublishStarted(arguments, envelope, false, started, handle);
}

int FinishBuffered(const MessageArguments& arguments, const Envelope& envelope) {
  return Conclude(arguments.call, envelope.comm,
                  BufferedSend(*envelope.comm, PayloadOf(arguments, envelope), envelope.message));
}

int BlockingSend(const MessageArguments& arguments, SendMode mode) {
  Threads::BeginCall();
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(arguments, true, &envelope));
  if (envelope.is_null) [[unlikely]] {
    return MPI_SUCCESS;
  }
  envelope.message.synchronous = mode == SendMode::kSynchronous;
  if (mode == SendMode::kBuffered) {
    return FinishBuffered(arguments, envelope);
  }
  if (envelope.type->IsDense(arguments.count)) [[likely]] {
    return SendDense(arguments, envelope);
  }
  if (ShortPacked::Fits(arguments, envelope)) {
    return SendShortPacked(arguments, envelope);
  }
  return WithRequest(arguments, envelope, true, [&](const Ref<MessageRequest>& request) {
    MessageNote note(arguments, envelope);
    const client::CallScope scope(front_end->calls, &note);
    return AwaitRequest(arguments.call, *request, MPI_STATUS_IGNORE);
  });
}

// Receives the envelope's message, and waits. Inlined: it is what MPI_Recv does.
[[gnu::always_inline]] inline ErrorCode AwaitMessage(const MessageArguments& arguments,
                                                     const Envelope& envelope, MPI_Status* status,
                                                     client::Completion* completion) {
  MessageNote note(arguments, envelope);
  const ErrorCode error =
      client::ReceiveInCall(front_end->calls, front_end->messages, CallerOf(arguments, envelope),
                            &note, envelope.message, completion);
  if (error != ErrorCode::kOk) [[unlikely]] {
    return error;
  }
  SetStatus(status, envelope.comm->RankOf(completion->source), completion->tag,
            static_cast<int64_t>(completion->size_bytes));
  return completion->error;
}

[[gnu::always_inline]] inline int ReceiveIntoDense(const MessageArguments& arguments,
                                                   Envelope& envelope, MPI_Status* status) {
  SetDense(arguments, &envelope);
  client::Completion completion;
  const ErrorCode error = AwaitMessage(arguments, envelope, status, &completion);
  return error == ErrorCode::kOk ? MPI_SUCCESS
                                 : Fail(arguments.call, envelope.comm, FailureOf(error));
}

// Not inlined: other receives need no such stack. Of a message that is too long the part that has
// come is unpacked.
[[gnu::noinline]] int ReceiveShortPacked(const MessageArguments& arguments, Envelope& envelope,
                                         MPI_Status* status) {
  const ShortPacked packed(arguments, &envelope);
  client::Completion completion;
  const ErrorCode error = AwaitMessage(arguments, envelope, status, &completion);
  const Failure unpacked = packed.Unpack(completion.size_bytes);
  return error == ErrorCode::kOk ? Conclude(arguments.call, envelope.comm, unpacked)
                                 : Fail(arguments.call, envelope.comm, FailureOf(error));
}

int BlockingReceive(const MessageArguments& arguments, MPI_Status* status) {
  Threads::BeginCall();
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(arguments, false, &envelope));
  if (envelope.is_null) [[unlikely]] {
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  }
  if (!envelope.type->IsDense(arguments.count)) [[unlikely]] {
    if (ShortPacked::Fits(arguments, envelope)) {
      return ReceiveShortPacked(arguments, envelope, status);
    }
    return WithRequest(arguments, envelope, false, [&](const Ref<MessageRequest>& request) {
      MessageNote note(arguments, envelope);
      const client::CallScope scope(front_end->calls, &note);
      return AwaitRequest(arguments.call, *request, status);
    });
  }
  return ReceiveIntoDense(arguments, envelope, status);
}

int BeginSend(const MessageArguments& arguments, SendMode mode, MPI_Request* request) {
  Threads::BeginCall();
  Envelope envelope;
  FERRY_RETURN_ERROR(CheckAddress(arguments, request));
  FERRY_RETURN_ERROR(Resolve(arguments, true, &envelope));
  *request = completed_request;
  if (envelope.is_null) [[unlikely]] {
    return MPI_SUCCESS;
  }
  if (mode == SendMode::kBuffered) {
    return FinishBuffered(arguments, envelope);
  }
  envelope.message.synchronous = mode == SendMode::kSynchronous;
  if (envelope.type->IsDense(arguments.count)) [[likely]] {
    return BeginDense(arguments, envelope, request);
  }
  if (!envelope.message.synchronous && ShortPacked::Fits(arguments, envelope) &&
      SendShortNow(arguments, &envelope)) {
    return MPI_SUCCESS;
  }
  return WithRequest(arguments, envelope, true, [&](Ref<MessageRequest> begun) {
    return PublishRequest(arguments.call, std::move(begun), request);
  });
}

int BeginReceive(const MessageArguments& arguments, MPI_Request* request) {
  Threads::BeginCall();
  Envelope envelope;
  FERRY_RETURN_ERROR(CheckAddress(arguments, request));
  FERRY_RETURN_ERROR(Resolve(arguments, false, &envelope));
  if (!envelope.is_null && envelope.type->IsDense(arguments.count)) [[likely]] {
    return ReceiveDense(arguments, envelope, request);
  }
  return StartReceive(arguments, envelope, [&](Ref<MessageRequest> begun) {
    return PublishRequest(arguments.call, std::move(begun), request);
  });
}

int MakePersistent(const MessageArguments& arguments, bool is_send, SendMode mode,
                   MPI_Request* request) {
  Envelope envelope;
  FERRY_RETURN_ERROR(CheckAddress(arguments, request));
  FERRY_RETURN_ERROR(Resolve(arguments, is_send, &envelope));
  envelope.message.synchronous = mode == SendMode::kSynchronous;
  envelope.message.ready = mode == SendMode::kReady;
  Ref<MessageRequest> made = MessageRequest::Take();
  const Failure failure = made->Make(*envelope.comm, PayloadOf(arguments, envelope),
                                     envelope.message, is_send, envelope.is_null);
  return failure.ok() ? PublishRequest(arguments.call, std::move(made), request)
                      : Fail(arguments.call, envelope.comm, failure);
}

int MakeSend(const MessageArguments& arguments, SendMode mode, MPI_Request* request) {
  if (mode != SendMode::kBuffered) {
    return MakePersistent(arguments, true, mode, request);
  }
  Envelope envelope;
  FERRY_RETURN_ERROR(CheckAddress(arguments, request));
  FERRY_RETURN_ERROR(Resolve(arguments, true, &envelope));
  *request = MakeBufferedSend(*envelope.comm, arguments.buffer, arguments.count, *envelope.type,
                              envelope.message, envelope.is_null)
                 .Leave()
                 ->Publish();
  return MPI_SUCCESS;
}

int MakeReceive(const MessageArguments& arguments, MPI_Request* request) {
  return MakePersistent(arguments, false, SendMode::kStandard, request);
}

}  // namespace

// Not inlined: see SendShortPacked.
[[gnu::noinline]] bool SendShortNow(const MessageArguments& send, Envelope* out) {
  ShortPacked packed(send, out);
  return packed.Pack().ok() && front_end->messages->SendNow(out->message);
}

int ReceiveNoRequest(const MessageArguments& arguments, Envelope& envelope, MPI_Status* status) {
  return envelope.type->IsDense(arguments.count) ? ReceiveIntoDense(arguments, envelope, status)
                                                 : ReceiveShortPacked(arguments, envelope, status);
}

int BeginSend(const MessageArguments& arguments, Ref<Request>* request) {
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(arguments, true, &envelope));
  if (envelope.is_null) {
    return MPI_SUCCESS;
  }
  return WithRequest(arguments, envelope, true, [&](Ref<MessageRequest> begun) {
    *request = std::move(begun);
    return MPI_SUCCESS;
  });
}

int BeginReceive(const MessageArguments& arguments, Ref<Request>* request) {
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(arguments, false, &envelope));
  return StartReceive(arguments, envelope, [&](Ref<MessageRequest> begun) {
    *request = std::move(begun);
    return MPI_SUCCESS;
  });
}

#define FERRY_SEND \
  const void *buffer, Count count, MPI_Datatype datatype, int destination, int tag, MPI_Comm comm
#define FERRY_SENT \
  { FERRY_MPI_NAME, buffer, count, datatype, destination, tag, comm }
#define FERRY_RECEIVE \
  void *buffer, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm
#define FERRY_RECEIVED \
  { FERRY_MPI_NAME, buffer, count, datatype, source, tag, comm }

// ---- Blocking -----------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Send, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kStandard));
FERRY_MPI_TWINS(MPI_Bsend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kBuffered));
FERRY_MPI_TWINS(MPI_Rsend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kStandard));
FERRY_MPI_TWINS(MPI_Ssend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kSynchronous));
FERRY_MPI_TWINS(MPI_Recv, (FERRY_RECEIVE, MPI_Status* status),
                BlockingReceive(FERRY_RECEIVED, status));

// ---- Nonblocking --------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Isend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(MPI_Ibsend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kBuffered, request));
FERRY_MPI_TWINS(MPI_Irsend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(MPI_Issend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kSynchronous, request));
FERRY_MPI_TWINS(MPI_Irecv, (FERRY_RECEIVE, MPI_Request* request),
                BeginReceive(FERRY_RECEIVED, request));

// ---- Persistent ---------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Send_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(MPI_Bsend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kBuffered, request));
FERRY_MPI_TWINS(MPI_Rsend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(MPI_Ssend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kSynchronous, request));
FERRY_MPI_TWINS(MPI_Recv_init, (FERRY_RECEIVE, MPI_Request* request),
                MakeReceive(FERRY_RECEIVED, request));

// ---- Buffers for buffered sends -----------------------------------------------------------------

namespace {

int Attach(Call& call, BufferOwner owner, void* buffer, int64_t size) {
  call.NeedRunning();
  return call.Then([&] { return AttachBuffer(owner, buffer, size); });
}

template <typename Size>
int Detach(Call& call, BufferOwner owner, void* address, Size* size) {
  call.NeedRunning();
  call.NeedPlace(address, "the address for a result is null");
  call.NeedPlace(size, "the address for a result is null");
  void* buffer = nullptr;
  int64_t bytes = 0;
  (void)call.Then([&] { return DetachBuffer(owner, &buffer, &bytes); });
  return call.Then([&] {
    std::memcpy(address, &buffer, sizeof(buffer));
    *size = static_cast<Size>(bytes);
  });
}

int Flush(Call& call, BufferOwner owner) {
  call.NeedRunning();
  return call.Then([&] { return FlushBuffer(owner); });
}

int Iflush(Call& call, BufferOwner owner, MPI_Request* request) {
  call.NeedRunning();
  call.NeedPlace(request, "the address for the request is null");
  return call.Then([&] { *request = BeginFlush(owner).Leave()->Publish(); });
}

// use(call, owner, arguments...) for the process' buffer, or for that of a communicator or session.
template <typename Use, typename... Arguments>
int OfProcess(Call call, Use&& use, Arguments... arguments) {
  return use(call, nullptr, arguments...);
}
template <typename Handle, typename Use, typename... Arguments>
int Of(Call call, Handle handle, Use&& use, Arguments... arguments) {
  const auto* const owner = call.Find(handle);
  return call.ok() ? use(call, owner, arguments...) : call.result();
}

}  // namespace

FERRY_MPI_TWINS(MPI_Buffer_attach, (void* buffer, Count size),
                OfProcess(FERRY_MPI_NAME, Attach, buffer, size));
FERRY_MPI_TWINS(MPI_Buffer_detach, (void* address, Count* size),
                OfProcess(FERRY_MPI_NAME, Detach<Count>, address, size));
FERRY_MPI_CALL(int, MPI_Buffer_flush, (void)) { return OfProcess(FERRY_MPI_NAME, Flush); }
FERRY_MPI_CALL(int, MPI_Buffer_iflush, (MPI_Request * request)) {
  return OfProcess(FERRY_MPI_NAME, Iflush, request);
}

FERRY_MPI_TWINS(MPI_Comm_attach_buffer, (MPI_Comm comm, void* buffer, Count size),
                Of(FERRY_MPI_NAME, comm, Attach, buffer, size));
FERRY_MPI_TWINS(MPI_Comm_detach_buffer, (MPI_Comm comm, void* address, Count* size),
                Of(FERRY_MPI_NAME, comm, Detach<Count>, address, size));
FERRY_MPI_CALL(int, MPI_Comm_flush_buffer, (MPI_Comm comm)) {
  return Of(FERRY_MPI_NAME, comm, Flush);
}
FERRY_MPI_CALL(int, MPI_Comm_iflush_buffer, (MPI_Comm comm, MPI_Request* request)) {
  return Of(FERRY_MPI_NAME, comm, Iflush, request);
}

FERRY_MPI_TWINS(MPI_Session_attach_buffer, (MPI_Session session, void* buffer, Count size),
                Of(FERRY_MPI_NAME, session, Attach, buffer, size));
FERRY_MPI_TWINS(MPI_Session_detach_buffer, (MPI_Session session, void* address, Count* size),
                Of(FERRY_MPI_NAME, session, Detach<Count>, address, size));
FERRY_MPI_CALL(int, MPI_Session_flush_buffer, (MPI_Session session)) {
  return Of(FERRY_MPI_NAME, session, Flush);
}
FERRY_MPI_CALL(int, MPI_Session_iflush_buffer, (MPI_Session session, MPI_Request* request)) {
  return Of(FERRY_MPI_NAME, session, Iflush, request);
}

}  // namespace ferry::mpi
