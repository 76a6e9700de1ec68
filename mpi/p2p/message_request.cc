#include "mpi/p2p/message_request.h"

#include <mutex>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/comm/call_notes.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// Requests that are not in use. Their memory is never given back to the system.
struct Pool {
  std::mutex mutex;
  MessageRequest* first = nullptr;
};
Pool& pool = *new Pool();

// Held while the pool is used, if threads may meet there.
class PoolLock {
 public:
  PoolLock() : is_locked_(Threads::AreAllowed()) {
    if (is_locked_) [[unlikely]] {
      pool.mutex.lock();
    }
  }
  ~PoolLock() {
    if (is_locked_) [[unlikely]] {
      pool.mutex.unlock();
    }
  }
  PoolLock(const PoolLock&) = delete;
  PoolLock& operator=(const PoolLock&) = delete;

 private:
  const bool is_locked_;
};

Failure FailGaps() {
  return {MPI_ERR_TYPE, "its data has gaps, which a stream cannot pack: pack it by a kernel"};
}
Failure FailRefused() {
  return {MPI_ERR_TYPE, "its match has failed, so free it and make it anew: " + FailGaps().text};
}

}  // namespace

inline MessageRequest* MessageRequest::TakeFree() {
  {
    const PoolLock lock;
    MessageRequest* const request = pool.first;
    if (request != nullptr) [[likely]] {
      pool.first = request->next_free_;
      return request;
    }
  }
  return new MessageRequest();
}

Ref<MessageRequest> MessageRequest::Take() { return Ref<MessageRequest>::Adopt(TakeFree()); }

void MessageRequest::Destroy() {
  if (persistent_ != 0) {
    (void)front_end->messages->FreePersistent(persistent_);
    persistent_ = 0;
  }
  if (!payload_.is_dense()) [[unlikely]] {
    payload_ = Payload();
  }
  comm_ = nullptr;
  handle_ = 0;
  is_persistent_ = is_active_ = is_null_ = is_collected_ = false;
  Renew();
  const PoolLock lock;
  next_free_ = pool.first;
  pool.first = this;
}

MPI_Request MessageRequest::Publish() {
  if (published_ == nullptr) {
    published_ = requests.Add(this);
  } else {
    requests.Set(published_, this);
  }
  return published_;
}

void MessageRequest::Unpublish(MPI_Request handle) {
  requests.Set(handle, nullptr);
  Release();
}

Failure MessageRequest::Begin(Comm& comm, bool is_send, Payload payload, client::Message message) {
  is_send_ = is_send;
  comm_ = Ref<Comm>::Share(&comm);
  payload_ = std::move(payload);
  message_ = message;
  FERRY_RETURN_FAILURE(is_send_ ? payload_.Pack() : payload_.MakeRoom());
  message_.buffer = payload_.data();
  message_.size_bytes = static_cast<uint64_t>(payload_.size_bytes());
  const ErrorCode error = is_send_ ? front_end->messages->StartSend(message_, &handle_)
                                   : front_end->messages->StartReceive(message_, &handle_);
  if (error != ErrorCode::kOk) [[unlikely]] {
    return FailureOf(error);
  }
  is_active_ = true;
  is_collected_ = false;
  return {};
}

void MessageRequest::Adopt(Comm& comm, bool is_send, const client::Message& message,
                           client::RequestHandle started) {
  is_send_ = is_send;
  comm_ = Ref<Comm>::Share(&comm);
  message_.peer = message.peer;
  message_.tag = message.tag;
  message_.size_bytes = message.size_bytes;
  handle_ = started;
  is_active_ = true;
}

MPI_Request MessageRequest::PublishReceived(Comm& comm, const client::Completion& completion) {
  Ref<MessageRequest> request = Ref<MessageRequest>::Adopt(TakeFree());
  request->is_send_ = false;
  request->comm_ = Ref<Comm>::Share(&comm);
  request->completion_ = completion;
  request->is_active_ = request->is_collected_ = true;
  const MPI_Request handle = request->MessageRequest::Publish();
  if (handle != nullptr) [[likely]] {
    (void)request.Leave();
  }
  return handle;
}

void MessageRequest::BeginNull(Comm& comm) {
  comm_ = Ref<Comm>::Share(&comm);
  is_null_ = is_active_ = is_collected_ = true;
}

Failure MessageRequest::Make(Comm& comm, Payload payload, client::Message message, bool is_send,
                             bool null) {
  is_send_ = is_send;
  is_persistent_ = true;
  is_null_ = null;
  comm_ = Ref<Comm>::Share(&comm);
  payload_ = std::move(payload);
  message_ = message;
  if (null) {
    return {};
  }
  // Makes the room now, so that libferry's request can name it.
  FERRY_RETURN_FAILURE(payload_.MakeRoom());
  message_.buffer = payload_.data();
  message_.size_bytes = static_cast<uint64_t>(payload_.size_bytes());
  return FailureOf(front_end->messages->MakePersistent(message_, is_send, &persistent_));
}

Failure MessageRequest::Start() {
  if (!is_persistent_ || is_active_) {
    return {MPI_ERR_REQUEST, is_persistent_ ? "the persistent request is active; complete it first"
                                            : "the request is not persistent"};
  }
  is_collected_ = is_null_;
  if (!is_null_) {
    FERRY_RETURN_FAILURE(is_send_ ? payload_.Pack() : Failure());
    if (const ErrorCode error = front_end->messages->Start(persistent_); error != ErrorCode::kOk) {
      return is_refused() ? FailRefused() : FailureOf(error);
    }
    handle_ = persistent_;
  }
  is_active_ = true;
  return {};
}

bool MessageRequest::is_enqueued() const {
  return persistent_ != 0 && front_end->queues->IsEnqueued(persistent_);
}

// Refuses a payload with gaps, which queues cannot move, here, where both sides can be told.
Failure MessageRequest::AddOffered(std::vector<client::RequestHandle>* offered) {
  if (is_null_) {
    return {};
  }
  if (!payload_.is_dense()) {
    if (!is_refused()) {
      RefuseMatch({std::exchange(persistent_, 0)});
    }
    return FailGaps();
  }
  offered->push_back(persistent_);
  return {};
}

Failure MessageRequest::IsMatched(bool* matched) {
  *matched = is_null_;
  return is_null_ || is_refused() ? Failure()
                                  : FailureOf(front_end->queues->IsMatched(persistent_, matched));
}

Failure MessageRequest::FindEnqueued(client::RequestHandle* handle) {
  if (!is_null_ && !payload_.is_dense()) {
    return FailGaps();
  }
  *handle = persistent_;
  return {};
}

void MessageRequest::DescribeWait(shm::CallDescription* description) const {
  description->inner = is_send_ ? shm::CallName::kMpiIsend : shm::CallName::kMpiIrecv;
  if (is_persistent_) {
    description->flags |= shm::kCallNonblocking;
  }
  DescribeComm(*comm_, description);
  DescribeWorldPeer(comm_.get(), message_.peer, description);
  DescribeTag(message_.tag, description);
  DescribeBytes(message_.size_bytes, description);
}

bool MessageRequest::IsDone() {
  return !is_active_ || is_collected_ || front_end->messages->IsComplete(handle_);
}

void MessageRequest::Await() {
  if (is_active_ && !is_collected_) {
    front_end->messages->Wait(handle_, &completion_);
    is_collected_ = true;
  }
}

// Call it once the request is complete.
void MessageRequest::Collect() {
  if (!is_collected_ && front_end->messages->Test(handle_, &completion_)) {
    is_collected_ = true;
  }
}

void MessageRequest::Look(MPI_Status* status) {
  if (!is_active_) {
    SetEmptyStatus(status);
    return;
  }
  if (is_null_) {
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return;
  }
  Collect();
  FillIn(status);
}

void MessageRequest::FillIn(MPI_Status* status) const {
  if (status == MPI_STATUS_IGNORE) {
    return;
  }
  const bool cancelled = completion_.error == ErrorCode::kCancelled;
  if (is_send_ || cancelled) {
    SetStatus(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, cancelled);
  } else {
    SetStatus(status, comm_->RankOf(completion_.source), completion_.tag,
              static_cast<int64_t>(completion_.size_bytes));
  }
}

bool MessageRequest::EndWell(MPI_Request* handle, MPI_Status* status) {
  if (is_persistent_ || is_null_ || !payload_.is_dense()) {
    return false;
  }
  if (!is_collected_) {
    if (!front_end->messages->TestNow(handle_, &completion_)) {
      return false;
    }
    is_collected_ = true;
  }
  if (completion_.error != ErrorCode::kOk) [[unlikely]] {
    return false;
  }
  FillIn(status);
  MessageRequest::Unpublish(*handle);
  *handle = MPI_REQUEST_NULL;
  return true;
}

Failure MessageRequest::End(MPI_Status* status) {
  Look(status);
  if (!is_active_ || is_null_) {
    is_active_ = false;
    return {};
  }
  is_active_ = false;
  handle_ = 0;
  Failure failure;
  if (completion_.error != ErrorCode::kOk) [[unlikely]] {
    failure = FailureOf(completion_.error);
  }
  if (!is_send_ && !payload_.is_dense() && completion_.size_bytes != 0) {
    Failure unpacked = payload_.Unpack(static_cast<int64_t>(completion_.size_bytes));
    if (failure.ok()) {
      failure = std::move(unpacked);
    }
  }
  return failure;
}

Failure MessageRequest::Cancel() {
  if (!is_active_) {
    return {MPI_ERR_REQUEST, "the persistent request is not active"};
  }
  if (!is_collected_) {
    (void)front_end->messages->Cancel(handle_);
  }
  return {};
}

// Afterwards a receive is over: it was cancelled, or its message was there first.
void MessageRequest::GiveUp() {
  if (is_active_ && !is_send_ && !is_collected_) {
    (void)front_end->messages->Cancel(handle_);
    Await();
  }
}

}  // namespace ferry::mpi
