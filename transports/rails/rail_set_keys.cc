// What keys stand for: asking the peer that owns the memory, and answering (rail_keys.h).
#include <algorithm>

#include "transports/rails/rail_set.h"

namespace ferry::transport {
namespace {

constexpr size_t kMostAnswersWaiting = 1024;  // who asked gets none of the rest, and asks again

}  // namespace

// For all that wait for the same.
void RailSet::Ask(const RmaRequest& request) {
  for (const uint32_t index : asking_) {
    if (AskSame(operations_[index].request, request)) {
      operations_[index].asked_ns = now_ns_;
    }
  }
  const RailPeer* peer = peers_.Find(request.peer);
  KeyMessage question;
  question.to = peer->cookie;
  question.from = cookie_;
  question.kind = KeyMessage::Kind::kAsk;
  question.key = request.key;
  SendKeyMessage(*peer, question);  // if there is no room, AskAgain
}

ErrorCode RailSet::SendKeyMessage(const RailPeer& peer, const KeyMessage& message) {
  return First().SendMessage(peer.of_rail[0], std::as_bytes(std::span(&message, 1)), {},
                             kKeyMessageContext, now_ns_);
}

void RailSet::OnKeyMessage(const KeyMessage& message) {
  if (message.kind == KeyMessage::Kind::kAsk) {
    Answer(message);
  } else {
    OnAnswer(message);
  }
}

void RailSet::Answer(const KeyMessage& question) {
  KeyMessage answer;
  answer.to = question.from;
  answer.from = cookie_;
  answer.kind = KeyMessage::Kind::kUnknown;
  answer.key = question.key;
  if (const RailRegion* region = memory_.FindByKey(question.key); region != nullptr) {
    answer.kind = KeyMessage::Kind::kAnswer;
    answer.rails = static_cast<uint32_t>(rails_.size());
    answer.keys = region->keys;
  }
  if (answers_.size() < kMostAnswersWaiting) {
    answers_.push_back(answer);
  }
}

void RailSet::OnAnswer(const KeyMessage& answer) {
  const bool known = answer.kind == KeyMessage::Kind::kAnswer;
  if (known) {
    peers_.ForEach([&](PeerId, RailPeer& peer) {
      if (peer.cookie == answer.from && answer.rails >= peer.rails) {
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
    if (peer->cookie != answer.from || operation->request.key != answer.key) {
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

// Sends answers that found no room, asks anew what has had none, and ends what waited too long.
void RailSet::AskAgain() {
  std::erase_if(answers_, [&](const KeyMessage& answer) {
    bool wait = false;
    bool sent = false;
    peers_.ForEach([&](PeerId, const RailPeer& peer) {
      if (!sent && !wait && peer.cookie == answer.to && !peer.removed) {
        const ErrorCode code = SendKeyMessage(peer, answer);
        wait = code == ErrorCode::kWouldBlock;
        sent = code == ErrorCode::kOk;
      }
    });
    return !wait;  // who is not known here (yet) asks again
  });
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
