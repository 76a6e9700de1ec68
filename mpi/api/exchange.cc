// Calls that send and receive at once (MPI 5.0, section 3.10).
#include <cstdlib>
#include <memory>
#include <utility>

#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/api/short_packed.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

using Bytes = std::unique_ptr<void, decltype(&std::free)>;
Bytes NoCopy() { return {nullptr, &std::free}; }

// A send and a receive under one handle.
class Exchange : public Request {
 public:
  Exchange(Ref<Request> send, Ref<Request> receive, Bytes copy)
      : send_(std::move(send)), receive_(std::move(receive)), copy_(std::move(copy)) {}

  bool IsDone() override { return (!send_ || send_->IsDone()) && receive_->IsDone(); }
  Failure End(MPI_Status* status) override {
    Failure sent = send_ ? send_->End(MPI_STATUS_IGNORE) : Failure();
    Failure received = receive_->End(status);
    return sent.ok() ? received : sent;
  }
  void Look(MPI_Status* status) override { receive_->Look(status); }
  Comm* comm() const override { return receive_->comm(); }
  void DescribeWait(shm::CallDescription* description) const override {
    receive_->DescribeWait(description);
  }

 private:
  const Ref<Request> send_;  // null: to MPI_PROC_NULL
  const Ref<Request> receive_;
  const Bytes copy_;  // what is sent, if the receive may write over it
};

// Starts the receive first, so that the send may find it posted.
int Begin(const MessageArguments& send, const MessageArguments& receive, Bytes copy,
          Ref<Request>* exchange) {
  Ref<Request> sending;
  Ref<Request> receiving;
  FERRY_RETURN_ERROR(BeginReceive(receive, &receiving));
  if (const int error = BeginSend(send, &sending); error != MPI_SUCCESS) {
    (void)receiving->Cancel();
    receiving->Await();
    (void)receiving->End(MPI_STATUS_IGNORE);
    return error;
  }
  *exchange = MakeRef<Exchange>(std::move(sending), std::move(receiving), std::move(copy));
  return MPI_SUCCESS;
}

// True if a call that waits needs no request for the data.
bool NeedsNoRequest(const MessageArguments& arguments, const Envelope& envelope) {
  return !envelope.is_null &&
         (envelope.type->IsDense(arguments.count) || ShortPacked::Fits(arguments, envelope));
}

bool SendAtOnce(const MessageArguments& send, Envelope* out) {
  if (!out->type->IsDense(send.count)) {
    return SendShortNow(send, out);
  }
  SetDense(send, out);
  return front_end->messages->SendNow(out->message);
}

// A short message goes before the receive is posted: both then need no request. False: this send
// needs one, and nothing has been done. Otherwise the call is over, and `*result` what it returns.
bool RunAtOnce(const MessageArguments& send, const MessageArguments& receive, MPI_Status* status,
               int* result) {
  Threads::BeginCall();
  Envelope out;
  Envelope in;
  *result = Resolve(receive, false, &in);
  if (*result == MPI_SUCCESS) {
    *result = Resolve(send, true, &out);
  }
  if (*result != MPI_SUCCESS) {
    return true;
  }
  if (!NeedsNoRequest(receive, in) || !NeedsNoRequest(send, out) || !SendAtOnce(send, &out)) {
    return false;
  }
  *result = ReceiveNoRequest(receive, in, status);
  return true;
}

int Run(const MessageArguments& send, const MessageArguments& receive, Bytes copy,
        MPI_Status* status) {
  int result = MPI_SUCCESS;
  if (RunAtOnce(send, receive, status, &result)) {
    return result;
  }
  Ref<Request> exchange;
  FERRY_RETURN_ERROR(Begin(send, receive, std::move(copy), &exchange));
  {
    CompletionNote note(receive.call, exchange.get());
    const client::CallScope scope(front_end->calls, &note);
    exchange->Await();
  }
  const Failure failure = exchange->End(status);
  return Conclude(receive.call, *exchange, failure);
}

int Publish(const MessageArguments& send, const MessageArguments& receive, Bytes copy,
            MPI_Request* request) {
  if (request == nullptr) {
    return Fail(send.call, comms.Find(send.comm), MPI_ERR_ARG,
                "the address for the request is null");
  }
  Ref<Request> exchange;
  FERRY_RETURN_ERROR(Begin(send, receive, std::move(copy), &exchange));
  *request = exchange.Leave()->Publish();
  return MPI_SUCCESS;
}

// A packed copy of what a replacing call sends, and how it is sent.
int CopyForSend(const MessageArguments& original, Bytes* copy, MessageArguments* send) {
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(original, true, &envelope));
  *send = original;
  const Payload payload = PayloadOf(original, envelope);
  if (payload.size_bytes() == 0) {
    return MPI_SUCCESS;
  }
  copy->reset(std::malloc(static_cast<size_t>(payload.size_bytes())));
  if (*copy == nullptr) {
    return Fail(original.call, envelope.comm, MPI_ERR_NO_MEM,
                "no memory for a copy of the message");
  }
  if (Failure failure = payload.CopyOut(copy->get()); !failure.ok()) {
    return Fail(original.call, envelope.comm, failure);
  }
  send->buffer = copy->get();
  send->count = payload.size_bytes();
  send->datatype = MPI_BYTE;
  return MPI_SUCCESS;
}

// Copies the data to send first, since the receive overwrites them. `exchange` is Run or Publish.
template <typename Result>
int Replace(const MessageArguments& original, const MessageArguments& receive,
            int (*exchange)(const MessageArguments&, const MessageArguments&, Bytes, Result*),
            Result* result) {
  Bytes copy = NoCopy();
  MessageArguments send;
  FERRY_RETURN_ERROR(CopyForSend(original, &copy, &send));
  return exchange(send, receive, std::move(copy), result);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_EXCHANGE                                                                \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
      void *recvbuf, Count recvcount, MPI_Datatype recvtype, int source, int recvtag, \
      MPI_Comm comm
#define FERRY_EXCHANGED                                                  \
  {FERRY_MPI_NAME, sendbuf, sendcount, sendtype, dest, sendtag, comm}, { \
    FERRY_MPI_NAME, recvbuf, recvcount, recvtype, source, recvtag, comm  \
  }
#define FERRY_REPLACE                                                                  \
  void *buffer, Count count, MPI_Datatype datatype, int dest, int sendtag, int source, \
      int recvtag, MPI_Comm comm
#define FERRY_REPLACED                                              \
  {FERRY_MPI_NAME, buffer, count, datatype, dest, sendtag, comm}, { \
    FERRY_MPI_NAME, buffer, count, datatype, source, recvtag, comm  \
  }

FERRY_MPI_TWINS(MPI_Sendrecv, (FERRY_EXCHANGE, MPI_Status* status),
                Run(FERRY_EXCHANGED, NoCopy(), status));
FERRY_MPI_TWINS(MPI_Isendrecv, (FERRY_EXCHANGE, MPI_Request* request),
                Publish(FERRY_EXCHANGED, NoCopy(), request));
FERRY_MPI_TWINS(MPI_Sendrecv_replace, (FERRY_REPLACE, MPI_Status* status),
                Replace(FERRY_REPLACED, Run, status));
FERRY_MPI_TWINS(MPI_Isendrecv_replace, (FERRY_REPLACE, MPI_Request* request),
                Replace(FERRY_REPLACED, Publish, request));

}  // namespace ferry::mpi
