// Matched persistent requests and queues (ferry/mpi/mpix.h): Ferry's own, beside the standard.
#include <mpix.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/status.h"
#include "mpi/partitioned/queued_calls.h"

namespace ferry::mpi {
namespace {

// The request of MPIX_Imatch and MPIX_Imatchall.
class MatchRequest final : public Request {
 public:
  // `handle` 0: there was nothing to match.
  explicit MatchRequest(client::RequestHandle handle, Comm* comm)
      : handle_(handle), comm_(Ref<Comm>::Share(comm)) {}

  bool IsDone() override { return handle_ == 0 || front_end->messages->IsComplete(handle_); }
  void Await() override {
    if (handle_ != 0) {
      front_end->messages->Wait(handle_, &completion_);
      handle_ = 0;
    }
  }
  Failure End(MPI_Status* status) override {
    Look(status);
    return completion_.error == ErrorCode::kOk ? Failure() : FailureOf(completion_.error);
  }
  void Look(MPI_Status* status) override {
    Await();
    SetEmptyStatus(status);
  }
  Failure Cancel() override { return {MPI_ERR_REQUEST, "a request to match cannot be cancelled"}; }
  Comm* comm() const override { return comm_.get(); }

 private:
  client::RequestHandle handle_;
  client::Completion completion_;
  Ref<Comm> comm_;
};

// The requests of a call, all of which can be matched, but for those that are partitioned, which
// need none.
struct Members {
  std::vector<Matchable*> all;
  std::vector<Request*> partitioned;
  Comm* comm = nullptr;  // of the first
};
enum class Partitions { kRefused, kAccepted };

int FindMembers(const char* call, int count, MPI_Request requests_[], Partitions partitions,
                Members* members) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  if (count < 0 || (count != 0 && requests_ == nullptr)) {
    return Fail(call, nullptr, MPI_ERR_ARG,
                count < 0 ? "count is " + std::to_string(count) : "the array of requests is null");
  }
  for (int i = 0; i < count; ++i) {
    auto* const request = requests.Find(requests_[i]);
    if (requests_[i] == MPI_REQUEST_NULL) {
      return Fail(call, nullptr, MPI_ERR_REQUEST,
                  "request " + std::to_string(i) + " is MPI_REQUEST_NULL");
    }
    if (request == nullptr) {
      return FailHandle(call, nullptr, MPI_ERR_REQUEST, "MPI_Request", requests_[i]);
    }
    members->comm = members->comm == nullptr ? request->comm() : members->comm;
    if (request->partitioned() != nullptr && partitions == Partitions::kAccepted) {
      members->partitioned.push_back(request);
      continue;
    }
    if (request->matchable() == nullptr) {
      return Fail(call, request->comm(), MPI_ERR_REQUEST,
                  "request " + std::to_string(i) +
                      " is not a persistent receive, collective, or send that is not buffered");
    }
    if (request->is_active()) {
      return Fail(call, request->comm(), MPI_ERR_REQUEST,
                  "request " + std::to_string(i) + " is active: complete it first");
    }
    members->all.push_back(request->matchable());
  }
  return MPI_SUCCESS;
}

// Calls `add(member)`, which returns a Failure, for each.
template <typename Add>
int ForAll(const char* call, const Members& members, Add&& add) {
  for (size_t i = 0; i < members.all.size(); ++i) {
    if (Failure failure = add(*members.all[i]); !failure.ok()) {
      failure.text = "request " + std::to_string(i) + ": " + failure.text;
      return Fail(call, members.comm, failure);
    }
  }
  return MPI_SUCCESS;
}

// Collects the requests to match.
int FindOffered(const char* call, int count, MPI_Request requests_[], Members* members,
                std::vector<client::RequestHandle>* offered) {
  FERRY_RETURN_ERROR(FindMembers(call, count, requests_, Partitions::kRefused, members));
  return ForAll(call, *members, [&](Matchable& member) { return member.AddOffered(offered); });
}

int Return(const char* call, Comm* comm, const Status& status) {
  return status.ok() ? MPI_SUCCESS : Fail(call, comm, FailureOfQueue(status));
}

int Match(const char* call, int count, MPI_Request requests_[]) {
  Members members;
  std::vector<client::RequestHandle> offered;
  if (const int error = FindOffered(call, count, requests_, &members, &offered);
      error != MPI_SUCCESS || offered.empty()) {
    return error;
  }
  client::RequestHandle match = 0;
  if (const Status status = front_end->queues->BeginMatch(offered, &match); !status.ok()) {
    return Return(call, members.comm, status);
  }
  client::Completion completion;
  front_end->messages->Wait(match, &completion);
  return completion.error == ErrorCode::kOk ? MPI_SUCCESS
                                            : Fail(call, members.comm, FailureOf(completion.error));
}

int BeginMatch(const char* call, int count, MPI_Request requests_[], MPI_Request* match) {
  Members members;
  std::vector<client::RequestHandle> offered;
  if (match == nullptr) {
    return Fail(call, nullptr, MPI_ERR_ARG, "the address for the request is null");
  }
  FERRY_RETURN_ERROR(FindOffered(call, count, requests_, &members, &offered));
  client::RequestHandle handle = 0;
  if (!offered.empty()) {
    if (const Status status = front_end->queues->BeginMatch(offered, &handle); !status.ok()) {
      return Return(call, members.comm, status);
    }
  }
  *match = MakeRef<MatchRequest>(handle, members.comm).Leave()->Publish();
  return MPI_SUCCESS;
}

// Enqueues calls for the partitioned ones, and then the others; all or none.
int EnqueueAll(const char* call, QueuedStep step, MPIX_Queue queue, int count,
               MPI_Request requests_[]) {
  Members members;
  FERRY_RETURN_ERROR(FindMembers(call, count, requests_, Partitions::kAccepted, &members));
  std::vector<client::RequestHandle> handles;
  const auto add = [&](Matchable& member) {
    client::RequestHandle handle = 0;
    Failure failure = member.FindEnqueued(&handle);
    if (failure.ok() && handle != 0) {
      handles.push_back(handle);
    }
    return failure;
  };
  FERRY_RETURN_ERROR(ForAll(call, members, add));
  const auto enqueue_others = [&] {
    return step == QueuedStep::kStart ? front_end->queues->EnqueueStart(queue, handles)
                                      : front_end->queues->EnqueueWait(queue, handles);
  };
  if (members.partitioned.empty()) {
    return Return(call, members.comm, enqueue_others());
  }
  return Conclude(call, members.comm,
                  EnqueuePartitioned(queue, step, members.partitioned, [&]() -> Failure {
                    return handles.empty() ? Failure() : FailureOfQueue(enqueue_others());
                  }));
}

}  // namespace

#define FERRY_MPIX __attribute__((visibility("default")))

extern "C" {

FERRY_MPIX int MPIX_Match(MPI_Request* request) { return Match(__func__, 1, request); }

FERRY_MPIX int MPIX_Matchall(int count, MPI_Request requests_[]) {
  return Match(__func__, count, requests_);
}

FERRY_MPIX int MPIX_Imatch(MPI_Request* request, MPI_Request* match) {
  return BeginMatch(__func__, 1, request, match);
}

FERRY_MPIX int MPIX_Imatchall(int count, MPI_Request requests_[], MPI_Request* match) {
  return BeginMatch(__func__, count, requests_, match);
}

FERRY_MPIX int MPIX_Is_matched(MPI_Request handle, int* flag) {
  Call call(__func__);
  call.NeedRunning();
  Request* const request = call.Find(handle);
  call.Need(flag, "flag");
  if (call.ok() && request->matchable() == nullptr) {
    call.Refuse(MPI_ERR_REQUEST, "the request is not a persistent send, receive or collective");
  }
  FERRY_RETURN_ERROR(call.result());
  bool is_matched = false;
  const Failure failure = request->matchable()->IsMatched(&is_matched);
  *flag = is_matched ? 1 : 0;
  return Conclude(__func__, *request, failure);
}

FERRY_MPIX int MPIX_Queue_init(MPIX_Queue* queue, MPIX_Queue_type type,
                               const void* stream_address) {
  Call call(__func__);
  call.NeedRunning();
  call.NeedPlace(queue, "the address for the queue is null");
  return call.Then([&]() -> Failure {
    *queue = MPIX_QUEUE_NULL;
    auto made = front_end->queues->MakeQueue(static_cast<uint32_t>(type), stream_address);
    if (!made.ok()) {
      return FailureOfQueue(made.status());
    }
    *queue = *made;
    may_be_enqueued.store(true, std::memory_order_relaxed);
    return {};
  });
}

FERRY_MPIX int MPIX_Queue_free(MPIX_Queue* queue) {
  Call call(__func__);
  call.NeedRunning();
  call.NeedPlace(queue, "the address of the queue is null");
  (void)call.Then([&] { return FailureOfQueue(front_end->queues->FreeQueue(*queue)); });
  return call.Then([&] { *queue = MPIX_QUEUE_NULL; });
}

FERRY_MPIX int MPIX_Queue_wait(MPIX_Queue queue) {
  Call call(__func__);
  call.NeedRunning();
  return call.Then([&] { return FailureOfQueue(front_end->queues->AwaitQueue(queue)); });
}

FERRY_MPIX int MPIX_Enqueue_start(MPIX_Queue queue, MPI_Request* request) {
  return EnqueueAll(__func__, QueuedStep::kStart, queue, 1, request);
}

FERRY_MPIX int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests_[]) {
  return EnqueueAll(__func__, QueuedStep::kStart, queue, count, requests_);
}

FERRY_MPIX int MPIX_Enqueue_wait(MPIX_Queue queue, MPI_Request* request) {
  return EnqueueAll(__func__, QueuedStep::kWait, queue, 1, request);
}

FERRY_MPIX int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests_[]) {
  return EnqueueAll(__func__, QueuedStep::kWait, queue, count, requests_);
}

}  // extern "C"
}  // namespace ferry::mpi
