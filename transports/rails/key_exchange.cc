#include "transports/rails/key_exchange.h"

#include <algorithm>

namespace ferry::transport {
namespace {

constexpr uint64_t kAsksPerTimeout = 8;

// Returns true if both requests wait for the same answer.
bool AskSame(const RmaRequest& a, const RmaRequest& b) {
  return a.peer == b.peer && a.key == b.key;
}

}  // namespace

KeyExchange::KeyExchange(RailsState& state, RailMessages& messages, Striping& striping)
    : state_(state), messages_(messages), striping_(striping) {
  asking_.reserve(state.operations.size());
}

void KeyExchange::Want(RailOperation* operation) {
  const RmaRequest& request = operation->request;
  operation->deadline_ns = state_.now_ns + state_.options.post_timeout_ns;
  const auto same = std::ranges::find_if(
      asking_, [&](uint32_t index) { return AskSame(state_.operations[index].request, request); });
  const bool asked = same != asking_.end();
  operation->asked_ns = asked ? state_.operations[*same].asked_ns : state_.now_ns;
  asking_.push_back(state_.IndexOf(*operation));
  if (!asked) {
    Ask(request);
  }
}

void KeyExchange::Drop(const RailOperation& operation) {
  std::erase(asking_, state_.IndexOf(operation));
}

void KeyExchange::Postpone(uint64_t gap_ns) {
  for (const uint32_t index : asking_) {
    state_.operations[index].deadline_ns += gap_ns;
  }
}

// Asks once for all operations that wait for the same answer.
void KeyExchange::Ask(const RmaRequest& request) {
  for (const uint32_t index : asking_) {
    if (AskSame(state_.operations[index].request, request)) {
      state_.operations[index].asked_ns = state_.now_ns;
    }
  }
  const RailPeer* peer = state_.peers.Find(request.peer);
  RailMessage question;
  question.to = peer->cookie;
  question.from = peer->own_cookie;
  question.kind = RailMessage::Kind::kAsk;
  question.key = request.key;
  messages_.Send(*peer, /*rail=*/0, question);  // if there is no room, AskAgain
}

void KeyExchange::Answer(const RailMessage& question) {
  RailMessage answer;
  answer.to = question.from;
  answer.from = question.to;
  answer.kind = RailMessage::Kind::kUnknown;
  answer.key = question.key;
  if (const RailRegion* region = state_.memory.FindByKey(question.key); region != nullptr) {
    answer.kind = RailMessage::Kind::kAnswer;
    answer.rails = static_cast<uint32_t>(state_.rails.size());
    answer.keys = region->keys;
  }
  messages_.Reply(/*rail=*/0, answer);
}

void KeyExchange::OnAnswer(const RailMessage& answer) {
  const bool known = answer.kind == RailMessage::Kind::kAnswer;
  if (known) {
    state_.peers.ForEach([&](PeerId, RailPeer& peer) {
      if (peer.HasSent(answer) && answer.rails >= peer.rails) {
        peer.keys.Learn(answer.key, answer.keys);
      }
    });
  }
  std::vector<uint32_t> waiting;
  waiting.swap(asking_);
  asking_.reserve(state_.operations.size());
  for (const uint32_t index : waiting) {
    RailOperation* operation = &state_.operations[index];
    const RailPeer* peer = state_.peers.Find(operation->request.peer);
    if (!peer->HasSent(answer) || operation->request.key != answer.key) {
      asking_.push_back(index);
    } else if (const RailKeys* keys = peer->keys.Find(answer.key); keys != nullptr) {
      operation->keys = *keys;
      striping_.Advance(operation);
    } else {
      state_.last_error = "the peer has no memory of this key";
      operation->result = ErrorCode::kInvalidBuffer;
      striping_.EndIfDone(operation);
    }
  }
}

void KeyExchange::AskAgain() {
  const uint64_t interval_ns = state_.options.post_timeout_ns / kAsksPerTimeout;
  for (size_t i = 0; i < asking_.size();) {
    RailOperation* operation = &state_.operations[asking_[i]];
    if (operation->deadline_ns <= state_.now_ns) {
      timeouts_++;
      state_.last_error = "the peer does not say what a key means on its rails";
      asking_.erase(asking_.begin() + static_cast<ptrdiff_t>(i));
      striping_.Fail(operation, ErrorCode::kNodeUnreachable);
      striping_.EndIfDone(operation);
      continue;
    }
    if (operation->asked_ns + interval_ns <= state_.now_ns) {
      Ask(operation->request);
    }
    i++;
  }
}

uint64_t KeyExchange::NextNs() const {
  uint64_t next_ns = UINT64_MAX;
  for (const uint32_t index : asking_) {
    const RailOperation& operation = state_.operations[index];
    next_ns = std::min({next_ns, operation.deadline_ns,
                        operation.asked_ns + state_.options.post_timeout_ns / kAsksPerTimeout});
  }
  return next_ns;
}

}  // namespace ferry::transport
