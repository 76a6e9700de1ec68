// Keys: asking the peer that owns the memory about a key, and answering (rail_keys.h).
#include <algorithm>

#include "transports/rails/rail_set.h"

namespace ferry::transport {
// Asks once for all operations that wait for the same answer.
void RailSet::Ask(const RmaRequest& request) {
  for (const uint32_t index : asking_) {
    if (AskSame(operations_[index].request, request)) {
      operations_[index].asked_ns = now_ns_;
    }
  }
  const RailPeer* peer = peers_.Find(request.peer);
  RailMessage question;
  question.to = peer->cookie;
  question.from = peer->own_cookie;
  question.kind = RailMessage::Kind::kAsk;
  question.key = request.key;
  SendRailMessage(*peer, /*rail=*/0, question);  // if there is no room, AskAgain
}

void RailSet::Answer(const RailMessage& question) {
  RailMessage answer;
  answer.to = question.from;
  answer.from = question.to;
  answer.kind = RailMessage::Kind::kUnknown;
  answer.key = question.key;
  if (const RailRegion* region = memory_.FindByKey(question.key); region != nullptr) {
    answer.kind = RailMessage::Kind::kAnswer;
    answer.rails = static_cast<uint32_t>(rails_.size());
    answer.keys = region->keys;
  }
  Reply(/*rail=*/0, answer);
}

void RailSet::OnAnswer(const RailMessage& answer) {
  const bool known = answer.kind == RailMessage::Kind::kAnswer;
  if (known) {
    peers_.ForEach([&](PeerId, RailPeer& peer) {
      if (peer.HasSent(answer) && answer.rails >= peer.rails) {
        peer.keys.Learn(answer.key, answer.keys);
      }
    });
  }
  std::vector<uint32_t> waiting;
  waiting.swap(asking_);
  asking_.reserve(operations_.size());
  for (const uint32_t index : waiting) {
    RailOperation* operation = &operations_[index];
    const RailPeer* peer = peers_.Find(operation->request.peer);
    if (!peer->HasSent(answer) || operation->request.key != answer.key) {
      asking_.push_back(index);
    } else if (const RailKeys* keys = peer->keys.Find(answer.key); keys != nullptr) {
      operation->keys = *keys;
      Advance(operation);
    } else {
      last_error_ = "the peer has no memory of this key";
      operation->result = ErrorCode::kInvalidBuffer;
      EndIfDone(operation);
    }
  }
}

// Repeats questions that have had no answer, and ends operations that waited too long.
void RailSet::AskAgain() {
  const uint64_t interval_ns = options_.post_timeout_ns / kAsksPerTimeout;
  for (size_t i = 0; i < asking_.size();) {
    RailOperation* operation = &operations_[asking_[i]];
    if (operation->deadline_ns <= now_ns_) {
      own_timeouts_++;
      last_error_ = "the peer does not say what a key means on its rails";
      Fail(operation, ErrorCode::kNodeUnreachable);  // takes it off the list
      EndIfDone(operation);
      continue;
    }
    if (operation->asked_ns + interval_ns <= now_ns_) {
      Ask(operation->request);
    }
    i++;
  }
}

}  // namespace ferry::transport
