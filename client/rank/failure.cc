// Client: the sentences of errors that reach the C API as a mere code. See client.h.
#include <string>
#include <utility>

#include "client/bootstrap/job_life.h"
#include "client/rank/client.h"

namespace ferry::client {
namespace {

// Null for errors that the rank's health explains, or that have no sentence.
const char* SentenceOf(ErrorCode error) {
  switch (error) {
    case ErrorCode::kLimitExceeded:
      return "all request slots are in use, or all entries for receives and unexpected messages: "
             "complete some first, or raise request_limit (FERRY_REQUEST_LIMIT) or "
             "unexpected_limit (FERRY_UNEXPECTED_LIMIT)";
    case ErrorCode::kOutOfMemory:
      return "no memory for a copy of the message: in the heap, which heap_bytes "
             "(FERRY_HEAP_BYTES) raises, or in ferryd";
    case ErrorCode::kTruncated:
      return "the message is longer than the receive buffer, which holds its first bytes";
    case ErrorCode::kPeerDied:
      return "the other rank, or with FERRY_ANY_SOURCE some rank of the job, has died";
    case ErrorCode::kNotFound:
      return "the other rank has left the job";
    case ErrorCode::kNodeUnreachable:
      return "the ferryd of the other rank's node died or cannot be reached";
    case ErrorCode::kLinkDown:
      return "the link to the other rank's node was cut: messages to and from it may be lost; new "
             "ones will pass once it is back";
    case ErrorCode::kInvalidBuffer:
      return "memory of this or the other end of the message is not there: was it freed or "
             "unmapped before the request was complete?";
    case ErrorCode::kInvalidRequest:
      return "the other side of the matched pair has freed its request: free this one, too, and "
             "make and match both anew";
    case ErrorCode::kPermissionDenied:
      return "the system refused a copy between the two processes";
    default:
      return nullptr;
  }
}

}  // namespace

Status Client::Explain(ErrorCode error) const {
  JobLife::Instance().HearOfEnd(error);
  if (std::string words = FailureWords::Take(error); !words.empty()) {
    return {error, std::move(words)};
  }
  const char* const sentence = SentenceOf(error);
  // A rank with too many unexpected messages is poisoned, and its health says so.
  if (sentence != nullptr && (error != ErrorCode::kLimitExceeded || poison() == ErrorCode::kOk)) {
    return {error, sentence};
  }
  const Status health = Health();
  return {error, health.message()};
}

}  // namespace ferry::client
