// Client: barriers of all ranks. See client.h.
#include <cstdint>
#include <string>
#include <string_view>

#include "client/bootstrap/meeting_watch.h"
#include "client/rank/client.h"

namespace ferry::client {
namespace {

// Reads a rank's message of a barrier: no error, or the error with which that rank has failed.
ErrorCode FailureIn(const Completion& message, ErrorCode said) {
  if (message.error != ErrorCode::kOk || message.size_bytes == 0) {
    return message.error;
  }
  const std::string_view unknown = ErrorCodeText(static_cast<ErrorCode>(-1));
  if (message.size_bytes == sizeof(said) && said != ErrorCode::kOk &&
      said != ErrorCode::kWouldBlock && ErrorCodeText(said) != unknown) {
    return said;
  }
  return FailureWords::Tell(ErrorCode::kCorrupt,
                            "rank " + std::to_string(message.source) +
                                " says that the barrier has failed with error " +
                                std::to_string(static_cast<int32_t>(said)) + " in " +
                                std::to_string(message.size_bytes) + " bytes, which is none");
}

}  // namespace

// Dissemination (Hensgen, Finkel and Manber, 1988): in round k a rank tells the one 2^k further.
// A rank that has failed sends its error in the later rounds, and receives nothing in them: their
// ranks may be alive, and know of no failure.
ErrorCode Client::BarrierUnder(MeetingWatch* watch) {
  const uint32_t barrier = barriers_++ & 0x7f'ffffU;
  ErrorCode failure = ErrorCode::kOk;
  for (uint32_t distance = 1, round = 0; distance < size(); distance *= 2, ++round) {
    const auto tag = static_cast<int32_t>(barrier << 8 | round);
    const auto to = static_cast<int32_t>((rank() + distance) % size());
    const auto from = static_cast<int32_t>((rank() + size() - distance) % size());
    ErrorCode theirs = ErrorCode::kOk;  // they send it if it is another
    RequestHandle receive = 0;
    if (failure == ErrorCode::kOk) {
      failure = StartReceive({&theirs, sizeof(theirs), from, tag, kInternalContext}, &receive);
    }
    const bool has_receive = failure == ErrorCode::kOk;
    ErrorCode ours = failure;
    const uint64_t size_bytes = ours == ErrorCode::kOk ? 0 : sizeof(ours);
    RequestHandle send = 0;
    Completion sent;
    sent.error = StartSend({&ours, size_bytes, to, tag, kInternalContext}, &send);
    if (sent.error == ErrorCode::kOk) {
      Wait(send, &sent);
    }
    failure = failure == ErrorCode::kOk ? sent.error : failure;
    if (!has_receive) {
      continue;
    }
    Completion received;
    if (failure != ErrorCode::kOk) {
      (void)Cancel(receive);
    } else if (watch != nullptr && round == 0) {
      AwaitUnder(watch, receive, from);
    }
    Wait(receive, &received);
    failure = failure == ErrorCode::kOk ? FailureIn(received, theirs) : failure;
  }
  return failure;
}

// The first message of a barrier is from the rank before this one. If it does not come, the daemon
// knows what that rank does, or whom it waits for. If a later one does not come, another rank
// misses its first one, and tells.
void Client::AwaitUnder(MeetingWatch* watch, RequestHandle receive, int32_t from) {
  struct Awaited {
    Client* client;
    RequestHandle receive;
  } awaited{this, receive};
  const auto is_there = [](void* argument) {
    const auto& [client, handle] = *static_cast<Awaited*>(argument);
    return client->IsComplete(handle);
  };
  while (watch->due_ns() != UINT64_MAX && !IsComplete(receive) && poison() == ErrorCode::kOk) {
    WaitFor(is_there, &awaited, from, watch->due_ns());
    if (!IsComplete(receive) && watch->IsDue()) {
      watch->TellAnswer([this]() -> StatusOr<std::string> {
        StatusOr<std::string> verdict = attach_.Why();
        FERRY_RETURN_IF_ERROR(verdict.status());
        return ": " + *verdict;
      });
    }
  }
}

}  // namespace ferry::client
