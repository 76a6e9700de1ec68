#include "mpi/base/connection.h"

#include "mpi/base/object.h"

namespace ferry::mpi {
namespace {

int thread_level = MPI_THREAD_SINGLE;
std::atomic<bool> for_good{false};

}  // namespace

client::FrontEnd* front_end = nullptr;

void Threads::Begin(int level) {
  thread_level = level;
  if (level >= MPI_THREAD_MULTIPLE) {
    Allow();
  } else {
    threads_may_meet.store(false, std::memory_order_relaxed);
  }
}

void Threads::End() { threads_may_meet.store(true, std::memory_order_relaxed); }

void Threads::Raise(int level) {
  if (level >= MPI_THREAD_MULTIPLE) {
    AllowForGood();
  }
}

void Threads::Allow() {
  if (!AreAllowed()) {
    front_end->peers->SetThreads(true);
    threads_may_meet.store(true, std::memory_order_relaxed);
    allowed_.store(true, std::memory_order_release);
  }
}

void Threads::AllowForGood() {
  for_good.store(true, std::memory_order_relaxed);
  Allow();
}

void Threads::Restrict() {
  helper_at_rest_.store(false, std::memory_order_relaxed);  // looked at once for each rest
  if (thread_level < MPI_THREAD_MULTIPLE && !for_good.load(std::memory_order_relaxed)) {
    front_end->peers->SetThreads(false);
    threads_may_meet.store(false, std::memory_order_relaxed);
    allowed_.store(false, std::memory_order_release);
  }
}

int ErrorClassOf(ErrorCode error) {
  switch (error) {
    case ErrorCode::kOk:
    case ErrorCode::kCancelled:
      return MPI_SUCCESS;
    case ErrorCode::kTruncated:
      return MPI_ERR_TRUNCATE;
    case ErrorCode::kInvalidRank:
      return MPI_ERR_RANK;
    case ErrorCode::kInvalidTag:
      return MPI_ERR_TAG;
    case ErrorCode::kOutOfMemory:
      return MPI_ERR_NO_MEM;
    case ErrorCode::kInvalidBuffer:
      return MPI_ERR_BUFFER;
    case ErrorCode::kInvalidRequest:
      return MPI_ERR_REQUEST;
    case ErrorCode::kInvalidArgument:
      return MPI_ERR_ARG;
    case ErrorCode::kPeerDied:
    case ErrorCode::kNotFound:
    case ErrorCode::kNodeUnreachable:
      return MPI_ERR_PROC_ABORTED;
    case ErrorCode::kUnsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
      return MPI_ERR_OTHER;
  }
}

Failure FailureOf(const Status& status) { return {ErrorClassOf(status.code()), status.message()}; }

Failure FailureOfQueue(const Status& status) {
  return status.code() == ErrorCode::kCancelled ? Failure{MPI_ERR_OTHER, status.message()}
                                                : FailureOf(status);
}

Failure FailureOf(ErrorCode error) {
  if (ErrorClassOf(error) == MPI_SUCCESS) {
    return {};
  }
  const Status status = front_end->peers->Explain(error);
  return {ErrorClassOf(error), status.ToString()};
}

}  // namespace ferry::mpi
