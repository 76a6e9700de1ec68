#include "mpi/comm/line_to_members.h"

#include <string>
#include <utility>

#include "mpi/base/connection.h"

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
      front_end->messages->ReceiveUntil(message, wait->end_ns(), completion, &waiting.handle);
  if (error != ErrorCode::kWouldBlock) {
    return error;
  }
  for (; !front_end->messages->IsComplete(waiting.handle); wait->Look()) {
    front_end->peers->WaitFor(
        [](void* argument) {
          const auto* self = static_cast<Waiting*>(argument);
          self->wait->Listen();
          return front_end->messages->IsComplete(self->handle);
        },
        &waiting, message.peer, wait->end_ns());
  }
  front_end->messages->Wait(waiting.handle, completion);
  return ErrorCode::kOk;
}

// A message under way, which is given up if the fiber that waits for it ends.
struct Begun {
  client::RequestHandle handle = 0;
  ~Begun() {
    if (handle != 0) {
      client::Completion ignored;
      (void)front_end->messages->Cancel(handle);
      front_end->messages->Wait(handle, &ignored);
    }
  }
};

// Starts a message by start(&handle), and completes it. The program may have all requests in use:
// one is to be had later.
template <typename Start>
ErrorCode CarryWithPauses(const std::function<void()>& pause, client::Completion* completion,
                          Start&& start) {
  Begun begun;
  ErrorCode error = start(&begun.handle);
  for (; error == ErrorCode::kLimitExceeded && front_end->poison() == ErrorCode::kOk;
       error = start(&begun.handle)) {
    pause();
  }
  if (error == ErrorCode::kOk) {
    while (!front_end->messages->IsComplete(begun.handle)) {
      pause();
    }
    front_end->messages->Wait(std::exchange(begun.handle, 0), completion);
  }
  return error;
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
  const client::Message message = MessageTo(rank, data, size_bytes);
  client::Completion completion;
  const ErrorCode error =
      pause_ == nullptr ? front_end->messages->Send(message, &completion)
                        : CarryWithPauses(pause_, &completion, [&](client::RequestHandle* handle) {
                            return front_end->messages->StartSend(message, handle);
                          });
  return FailureOf(error == ErrorCode::kOk ? completion.error : error);
}

Failure LineToMembers::Receive(int rank, void* data, size_t size_bytes) {
  const client::Message message = MessageTo(rank, data, size_bytes);
  client::Completion completion;
  ErrorCode error = ErrorCode::kOk;
  if (pause_ != nullptr) {
    error = CarryWithPauses(pause_, &completion, [&](client::RequestHandle* handle) {
      return front_end->messages->StartReceive(message, handle);
    });
  } else {
    error = wait_ != nullptr ? ReceiveWatched(message, wait_, &completion)
                             : front_end->messages->Receive(message, &completion);
  }
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

}  // namespace ferry::mpi
