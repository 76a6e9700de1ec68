#include "client/mpi/comm/line_to_members.h"

#include <string>

#include "client/mpi/base/connection.h"

namespace ferry::mpi {
namespace {

// front_end->Receive, of which `wait` hears.
ErrorCode ReceiveWatched(const client::Message& message, LongWait* wait,
                         client::Completion* completion) {
  struct Waiting {
    LongWait* wait;
    client::RequestHandle handle;
  } waiting{wait, 0};
  const ErrorCode error =
      front_end->ReceiveUntil(message, wait->end_ns(), completion, &waiting.handle);
  if (error != ErrorCode::kWouldBlock) {
    return error;
  }
  for (; !front_end->IsComplete(waiting.handle); wait->Look()) {
    front_end->WaitFor(
        [](void* argument) {
          const auto* self = static_cast<Waiting*>(argument);
          self->wait->Listen();
          return front_end->IsComplete(self->handle);
        },
        &waiting, message.peer, wait->end_ns());
  }
  front_end->Wait(waiting.handle, completion);
  return ErrorCode::kOk;
}

// Completes what was started, if that worked.
ErrorCode Complete(ErrorCode started, const client::RequestHandle& handle,
                   const std::function<void()>& pause, client::Completion* completion) {
  if (started == ErrorCode::kOk) {
    while (!front_end->IsComplete(handle)) {
      pause();
    }
    front_end->Wait(handle, completion);
  }
  return started;
}

}  // namespace

client::Message LineToMembers::MessageTo(int rank, const void* data, size_t size_bytes) const {
  return {.buffer = const_cast<void*>(data),
          .size_bytes = size_bytes,
          .peer = members_.WorldRank((rank + first_) % members_.size()),
          .tag = tag_,
          .context = context_};
}

Failure LineToMembers::Send(int rank, const void* data, size_t size_bytes) {
  client::Completion completion;
  client::RequestHandle handle = 0;
  const client::Message message = MessageTo(rank, data, size_bytes);
  const ErrorCode error = pause_ == nullptr ? front_end->Send(message, &completion)
                                            : Complete(front_end->StartSend(message, &handle),
                                                       handle, pause_, &completion);
  return FailureOf(error == ErrorCode::kOk ? completion.error : error);
}

Failure LineToMembers::Receive(int rank, void* data, size_t size_bytes) {
  const client::Message message = MessageTo(rank, data, size_bytes);
  client::Completion completion;
  client::RequestHandle handle = 0;
  ErrorCode error = pause_ != nullptr  ? Complete(front_end->StartReceive(message, &handle), handle,
                                                  pause_, &completion)
                    : wait_ != nullptr ? ReceiveWatched(message, wait_, &completion)
                                       : front_end->Receive(message, &completion);
  error = error == ErrorCode::kOk ? completion.error : error;
  if (error == ErrorCode::kTruncated ||
      (error == ErrorCode::kOk && completion.size_bytes != size_bytes)) {
    return Failure{MPI_ERR_INTERN, "rank " + std::to_string(message.peer) + " of the job sent " +
                                       std::to_string(completion.size_bytes) + " bytes, not " +
                                       std::to_string(size_bytes) +
                                       ": do all members make the same call?"};
  }
  return FailureOf(error);
}

Failure Exchange(Line* line, int rank, bool lower, const void* mine, size_t mine_bytes,
                 void* theirs, size_t theirs_bytes) {
  if (!lower) {
    FERRY_RETURN_FAILURE(line->Receive(rank, theirs, theirs_bytes));
  }
  FERRY_RETURN_FAILURE(line->Send(rank, mine, mine_bytes));
  return lower ? line->Receive(rank, theirs, theirs_bytes) : Failure{};
}

}  // namespace ferry::mpi
