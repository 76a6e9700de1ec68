// Checks which messages the receives of a run have got, once it is over, against MPI's rules:
//   - every message was received at most once, and whole;
//   - envelopes fit;
//   - non-overtaking: of two messages of one sender that both match a receive, the later one is
//     not taken while the earlier one is left for a later receive;
//   - of two receives that both match a message, the earlier posted gets it first;
//   - nothing is left pending that could match.
// So it need not know when an engine has drained what.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {

// A message, in the order in which its sender has sent it among others to the same rank.
struct SentMessage {
  uint32_t source;
  uint32_t destination;
  int32_t tag;
  uint32_t context;
  std::string data;
  uint32_t request;
  bool taken = false;
};

// A receive, in the order in which its rank has posted it.
struct PostedReceive {
  uint32_t rank;
  int32_t source;
  int32_t tag;
  uint32_t context;
  uint64_t capacity;
  uint32_t request;
  std::optional<Outcome> outcome;  // if it is over, and was not cancelled
  const SentMessage* message = nullptr;
};

inline bool Matches(const PostedReceive& receive, const SentMessage& message) {
  return receive.rank == message.destination && receive.context == message.context &&
         (receive.source == shm::kAnySource ||
          receive.source == static_cast<int32_t>(message.source)) &&
         (receive.tag == shm::kAnyTag || receive.tag == message.tag);
}

// The data tells the messages that a receive may have got apart, unless it was cut.
inline const SentMessage* Identify(const PostedReceive& receive, std::vector<SentMessage>* sent) {
  for (SentMessage& message : *sent) {
    const uint64_t kept = std::min<uint64_t>(message.data.size(), receive.capacity);
    if (!message.taken && Matches(receive, message) &&
        receive.outcome->source == static_cast<int32_t>(message.source) &&
        receive.outcome->tag == message.tag &&
        receive.outcome->message_bytes == message.data.size() &&
        receive.outcome->data == message.data.substr(0, kept)) {
      message.taken = true;
      return &message;
    }
  }
  return nullptr;
}

// Of two receives of one rank, the one posted first, `early`, is served first.
inline void CheckOrder(const PostedReceive& early, const PostedReceive& late) {
  if (late.message == nullptr || !Matches(early, *late.message)) {
    return;
  }
  ASSERT_NE(early.message, nullptr) << "a later receive took what the earlier one waits for";
  if (early.message->source != late.message->source ||
      early.message->destination != late.message->destination || !Matches(late, *early.message)) {
    return;
  }
  ASSERT_LT(early.message, late.message) << "a message was overtaken";  // both lie in one vector
}

// `posted`: without those that were cancelled.
inline void CheckMatching(std::vector<SentMessage>* sent, std::vector<PostedReceive>* posted) {
  for (PostedReceive& receive : *posted) {
    if (!receive.outcome.has_value()) {
      continue;
    }
    receive.message = Identify(receive, sent);
    ASSERT_NE(receive.message, nullptr) << "a receive got what nobody sent";
    ASSERT_EQ(receive.outcome->error, receive.message->data.size() > receive.capacity
                                          ? ErrorCode::kTruncated
                                          : ErrorCode::kOk);
  }
  for (size_t early = 0; early < posted->size(); ++early) {
    for (size_t late = early + 1; late < posted->size(); ++late) {
      ASSERT_NO_FATAL_FAILURE(CheckOrder((*posted)[early], (*posted)[late]));
    }
  }
}

}  // namespace ferry::engine
