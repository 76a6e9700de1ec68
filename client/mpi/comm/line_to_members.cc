#include "client/mpi/comm/line_to_members.h"

#include <string>

#include "client/core/front_end.h"
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

}  // namespace

Failure LineToMembers::Send(int rank, const void* data, size_t size_bytes) {
  client::Message message;
  message.buffer = const_cast<void*>(data);
  message.size_bytes = size_bytes;
  message.peer = WorldRank(rank);
  message.tag = tag_;
  message.context = context_;
  client::Completion completion;
  ErrorCode error = front_end->Send(message, &completion);
  return FailureOf(error == ErrorCode::kOk ? completion.error : error);
}

Failure LineToMembers::Receive(int rank, void* data, size_t size_bytes) {
  client::Message message;
  message.buffer = data;
  message.size_bytes = size_bytes;
  message.peer = WorldRank(rank);
  message.tag = tag_;
  message.context = context_;
  client::Completion completion;
  ErrorCode error = wait_ == nullptr ? front_end->Receive(message, &completion)
                                     : ReceiveWatched(message, wait_, &completion);
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

Failure Exchange(Line* line, int rank, bool lower, const void* mine, void* theirs,
                 size_t size_bytes) {
  if (!lower) {
    if (Failure failure = line->Receive(rank, theirs, size_bytes); !failure.ok()) {
      return failure;
    }
  }
  if (Failure failure = line->Send(rank, mine, size_bytes); !failure.ok()) {
    return failure;
  }
  return lower ? line->Receive(rank, theirs, size_bytes) : Failure{};
}

}  // namespace ferry::mpi
