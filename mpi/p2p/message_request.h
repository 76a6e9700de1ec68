// Sends and receives that do not block, persistent or not.
//
// Requests come from a pool and keep their handles, so that starting one costs little more than its
// message. Calling thread: see request.h; Take: any.
#pragma once

#include <cstdint>

#include "client/api/front_end.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/payload.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

class MessageRequest final : public Request, public Matchable {
 public:
  // Takes a request that names nothing yet.
  static Ref<MessageRequest> Take();

  // Starts a message with the peer, tag, context and mode of `message`, and the payload's buffer.
  Failure Begin(Comm& comm, bool is_send, Payload payload, client::Message message);
  // Makes this the request of a message that libferry has started, without a payload to keep.
  void Adopt(Comm& comm, bool is_send, const client::Message& message,
             client::RequestHandle started);
  // Makes a complete request for a receive whose message was there, and returns its handle. Null:
  // no memory for another one.
  static MPI_Request PublishReceived(Comm& comm, const client::Completion& completion);
  // Makes this a receive from MPI_PROC_NULL, which is complete.
  void BeginNull(Comm& comm);
  // Returns true if the operation is over and its status is empty, as for an eager send.
  bool is_over() const { return handle_ == client::kCompletedSend; }
  // Makes this a persistent request. `null`: to or from MPI_PROC_NULL, complete at each start.
  Failure Make(Comm& comm, Payload payload, client::Message message, bool is_send, bool null);

  bool IsDone() override;
  void Await() override;
  Failure End(MPI_Status* status) override;
  bool EndWell(MPI_Request* handle, MPI_Status* status) override;
  void Look(MPI_Status* status) override;
  bool is_persistent() const override { return is_persistent_; }
  bool is_active() const override { return is_active_; }
  bool is_enqueued() const override;
  Matchable* matchable() override { return is_persistent_ ? this : nullptr; }
  Failure Start() override;
  Failure Cancel() override;
  void GiveUp() override;
  int32_t awaited_peer() const override { return message_.peer; }
  void DescribeWait(shm::CallDescription* description) const override;
  Comm* comm() const override { return comm_.get(); }
  MPI_Request Publish() override;
  void Unpublish(MPI_Request handle) override;

  // These three are for persistent requests. With MPI_PROC_NULL there is nothing to match, and
  // nothing to start.
  Failure AddOffered(std::vector<client::RequestHandle>* requests) override;
  Failure IsMatched(bool* matched) override;
  Failure FindEnqueued(client::RequestHandle* handle) override;

 protected:
  void Destroy() override;

 private:
  MessageRequest() = default;
  static MessageRequest* TakeFree();
  void Collect();
  // Returns true if this is a persistent request whose match was refused.
  bool is_refused() const { return persistent_ == 0 && !is_null_; }
  // Call it only when is_collected_ is true.
  void FillIn(MPI_Status* status) const;

  bool is_send_ = false;
  bool is_persistent_ = false;
  bool is_active_ = false;
  bool is_null_ = false;       // MPI_PROC_NULL
  bool is_collected_ = false;  // completion_ holds how the operation ended
  Ref<Comm> comm_;
  Payload payload_;
  client::Message message_;
  client::RequestHandle handle_ = 0;
  client::RequestHandle persistent_ = 0;  // of libferry; 0: with MPI_PROC_NULL, or refused
  client::Completion completion_;
  MPI_Request published_ = nullptr;
  MessageRequest* next_free_ = nullptr;
};

}  // namespace ferry::mpi
