#include "mpi/partitioned/queued_calls.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/p2p/partitioned.h"

namespace ferry::mpi {
namespace {

Status StatusOf(const Failure& failure) {
  switch (failure.error_class) {
    case MPI_SUCCESS:
      return {};
    case MPI_ERR_TRUNCATE:
      return {ErrorCode::kTruncated, failure.text};
    case MPI_ERR_REQUEST:
      return {ErrorCode::kInvalidRequest, failure.text};
    case MPI_ERR_ARG:
      return {ErrorCode::kInvalidArgument, failure.text};
    case MPI_ERR_NO_MEM:
      return {ErrorCode::kOutOfMemory, failure.text};
    case MPI_ERR_PROC_ABORTED:
      return {ErrorCode::kPeerDied, failure.text};
    default:
      return {ErrorCode::kInternal, failure.text};
  }
}

// The references of a call to its requests, until the call is over, or dropped with its stream.
class Members {
 public:
  explicit Members(std::span<Request* const> requests) {
    for (Request* const request : requests) {
      all_.push_back(Ref<Request>::Share(request));
      request->partitioned()->queued().Begin();
    }
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members() { Drop(); }
  // Drops the references of a call that will not be made; called by the thread that enqueues it.
  void Drop() {
    for (const Ref<Request>& request : all_) {
      request->partitioned()->queued().End();
    }
    all_.clear();
  }

  const std::vector<Ref<Request>>& all() const { return all_; }
  // The first failure of call(request) for all of them.
  template <typename Call>
  Failure ForAll(Call&& call) const {
    Failure first;
    for (const Ref<Request>& request : all_) {
      Failure failure = call(*request);
      if (!failure.ok() && first.ok()) {
        first = std::move(failure);
      }
    }
    return first;
  }

 private:
  std::vector<Ref<Request>> all_;
};

// Decides whether an enqueued call is made: the thread that enqueues it says so once it knows.
class Decision {
 public:
  void Make(bool go) {
    state_ = go ? kGo : kVoid;
    state_.notify_all();
  }
  bool Await() const {  // the other side is about to make it
    state_.wait(kOpen);
    return state_ == kGo;
  }

 private:
  enum State : int { kOpen, kGo, kVoid };
  std::atomic<int> state_{kOpen};
};

// Waits until the request is complete, or the wait is cancelled; then ends a complete request.
Failure AwaitAndEnd(Request& request, const std::atomic<bool>& is_cancelled) {
  CancellableWait wait{[](void* argument) { return static_cast<Request*>(argument)->IsDone(); },
                       &request, &is_cancelled};
  request.AwaitUntil(CancellableWait::IsOver, &wait);
  return is_cancelled && !request.IsDone() ? Failure() : request.End(MPI_STATUS_IGNORE);
}

Failure CheckStep(QueuedStep step, std::span<Request* const> requests) {
  for (Request* const request : requests) {
    const Partitioned::QueuedCalls& queued = request->partitioned()->queued();
    if (step == QueuedStep::kWait && !queued.is_started()) {
      return {MPI_ERR_REQUEST, "a partitioned request was not started on a queue"};
    }
    if (step == QueuedStep::kStart && queued.is_started()) {
      return {MPI_ERR_REQUEST,
              "a partitioned request was started on a queue; enqueue a wait for it first"};
    }
    if (step == QueuedStep::kStart && !queued.any() && request->is_active()) {
      return {MPI_ERR_REQUEST, "a partitioned request is active: complete it first"};
    }
  }
  return {};
}

// Objects of the requests are counted by the queue's thread, too.
Failure Enqueue(client::QueueHandle queue, client::HostCall call) {
  Threads::AllowForGood();
  return FailureOfQueue(front_end->queues->EnqueueCall(queue, std::move(call)));
}

}  // namespace

Failure EnqueuePartitioned(client::QueueHandle queue, QueuedStep step,
                           std::span<Request* const> requests,
                           const std::function<Failure()>& others) {
  FERRY_RETURN_FAILURE(CheckStep(step, requests));
  Threads::AllowForGood();
  const auto members = std::make_shared<Members>(requests);
  const auto decision = std::make_shared<Decision>();
  const auto run = [step, members, decision](const std::atomic<bool>& is_cancelled) {
    if (!decision->Await()) {
      return Status();
    }
    return StatusOf(members->ForAll([&](Request& request) {
      return step == QueuedStep::kStart ? request.Start() : AwaitAndEnd(request, is_cancelled);
    }));
  };
  FERRY_RETURN_FAILURE(Enqueue(queue, {run}));
  Failure failure = others();
  if (failure.ok()) {
    for (Request* const request : requests) {
      request->partitioned()->queued().SetStarted(step == QueuedStep::kStart);
    }
  }
  if (!failure.ok()) {
    members->Drop();
  }
  decision->Make(failure.ok());
  return failure;
}

Failure EnqueueOn(client::QueueHandle queue, std::span<Request* const> requests,
                  std::function<Failure(Request&, const std::atomic<bool>&)> call) {
  Threads::AllowForGood();
  const auto members = std::make_shared<Members>(requests);
  return Enqueue(queue, {[members, call = std::move(call)](const std::atomic<bool>& is_cancelled) {
                   return StatusOf(members->ForAll(
                       [&](Request& request) { return call(request, is_cancelled); }));
                 }});
}

}  // namespace ferry::mpi
