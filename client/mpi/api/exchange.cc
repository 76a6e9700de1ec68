// Calls that send and receive at once (MPI 5.0, section 3.10).
#include "client/mpi/api/exchange.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "client/mpi/api/function.h"
#include "client/mpi/api/send_mode.h"
#include "client/mpi/request/status.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {
namespace {

using Bytes = std::unique_ptr<void, decltype(&std::free)>;

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
  if (const int error = BeginReceive(receive, &receiving); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = BeginSend(send, &sending); error != MPI_SUCCESS) {
    (void)receiving->Cancel();
    receiving->Await();
    (void)receiving->End(MPI_STATUS_IGNORE);
    return error;
  }
  *exchange = MakeRef<Exchange>(std::move(sending), std::move(receiving), std::move(copy));
  return MPI_SUCCESS;
}

int Run(const MessageArguments& send, const MessageArguments& receive, Bytes copy,
        MPI_Status* status) {
  Ref<Request> exchange;
  if (const int error = Begin(send, receive, std::move(copy), &exchange); error != MPI_SUCCESS) {
    return error;
  }
  exchange->Await();
  const Failure failure = exchange->End(status);
  return failure.ok() ? MPI_SUCCESS : Fail(receive.call, exchange->comm(), failure);
}

int Publish(const MessageArguments& send, const MessageArguments& receive, Bytes copy,
            MPI_Request* request) {
  if (request == nullptr) {
    return Fail(send.call, comms.Find(send.comm), MPI_ERR_ARG,
                "the address for the request is null");
  }
  Ref<Request> exchange;
  if (const int error = Begin(send, receive, std::move(copy), &exchange); error != MPI_SUCCESS) {
    return error;
  }
  *request = exchange.Leave()->Publish();
  return MPI_SUCCESS;
}

// A packed copy of what a replacing call sends, and how it is sent.
int CopyForSend(const MessageArguments& original, Bytes* copy, MessageArguments* send) {
  Envelope envelope;
  if (const int error = Resolve(original, true, &envelope); error != MPI_SUCCESS) {
    return error;
  }
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

}  // namespace

int Sendrecv(const MessageArguments& send, const MessageArguments& receive, MPI_Status* status) {
  return Run(send, receive, Bytes(nullptr, &std::free), status);
}

int Isendrecv(const MessageArguments& send, const MessageArguments& receive, MPI_Request* request) {
  return Publish(send, receive, Bytes(nullptr, &std::free), request);
}

int SendrecvReplace(const MessageArguments& original, const MessageArguments& receive,
                    MPI_Status* status) {
  Bytes copy(nullptr, &std::free);
  MessageArguments send;
  const int error = CopyForSend(original, &copy, &send);
  return error != MPI_SUCCESS ? error : Run(send, receive, std::move(copy), status);
}

int IsendrecvReplace(const MessageArguments& original, const MessageArguments& receive,
                     MPI_Request* request) {
  Bytes copy(nullptr, &std::free);
  MessageArguments send;
  const int error = CopyForSend(original, &copy, &send);
  return error != MPI_SUCCESS ? error : Publish(send, receive, std::move(copy), request);
}

}  // namespace ferry::mpi

FERRY_MPI_CALL(int, Sendrecv,
               (const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                MPI_Comm comm, MPI_Status* status)) {
  return ferry::mpi::Sendrecv({"MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, comm},
                              {"MPI_Sendrecv", recvbuf, recvcount, recvtype, source, recvtag, comm},
                              status);
}

FERRY_MPI_CALL(int, Sendrecv_c,
               (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source,
                int recvtag, MPI_Comm comm, MPI_Status* status)) {
  return ferry::mpi::Sendrecv(
      {"MPI_Sendrecv_c", sendbuf, sendcount, sendtype, dest, sendtag, comm},
      {"MPI_Sendrecv_c", recvbuf, recvcount, recvtype, source, recvtag, comm}, status);
}

FERRY_MPI_CALL(int, Isendrecv,
               (const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::Isendrecv(
      {"MPI_Isendrecv", sendbuf, sendcount, sendtype, dest, sendtag, comm},
      {"MPI_Isendrecv", recvbuf, recvcount, recvtype, source, recvtag, comm}, request);
}

FERRY_MPI_CALL(int, Isendrecv_c,
               (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source,
                int recvtag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::Isendrecv(
      {"MPI_Isendrecv_c", sendbuf, sendcount, sendtype, dest, sendtag, comm},
      {"MPI_Isendrecv_c", recvbuf, recvcount, recvtype, source, recvtag, comm}, request);
}

FERRY_MPI_CALL(int, Sendrecv_replace,
               (void* buffer, int count, MPI_Datatype datatype, int dest, int sendtag, int source,
                int recvtag, MPI_Comm comm, MPI_Status* status)) {
  return ferry::mpi::SendrecvReplace(
      {"MPI_Sendrecv_replace", buffer, count, datatype, dest, sendtag, comm},
      {"MPI_Sendrecv_replace", buffer, count, datatype, source, recvtag, comm}, status);
}

FERRY_MPI_CALL(int, Sendrecv_replace_c,
               (void* buffer, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                int source, int recvtag, MPI_Comm comm, MPI_Status* status)) {
  return ferry::mpi::SendrecvReplace(
      {"MPI_Sendrecv_replace_c", buffer, count, datatype, dest, sendtag, comm},
      {"MPI_Sendrecv_replace_c", buffer, count, datatype, source, recvtag, comm}, status);
}

FERRY_MPI_CALL(int, Isendrecv_replace,
               (void* buffer, int count, MPI_Datatype datatype, int dest, int sendtag, int source,
                int recvtag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::IsendrecvReplace(
      {"MPI_Isendrecv_replace", buffer, count, datatype, dest, sendtag, comm},
      {"MPI_Isendrecv_replace", buffer, count, datatype, source, recvtag, comm}, request);
}

FERRY_MPI_CALL(int, Isendrecv_replace_c,
               (void* buffer, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                int source, int recvtag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::IsendrecvReplace(
      {"MPI_Isendrecv_replace_c", buffer, count, datatype, dest, sendtag, comm},
      {"MPI_Isendrecv_replace_c", buffer, count, datatype, source, recvtag, comm}, request);
}
