#include "tests/coll/stream_world.h"

#include <algorithm>
#include <cstring>

namespace ferry::collective {

StreamWorld::StreamWorld(const std::vector<Schedule>& schedules, std::vector<CaseRank>* ranks,
                         Reducer* reducer, uint64_t seed, bool may_leave_ahead,
                         const Nodes& chained)
    : schedules_(schedules),
      ranks_(*ranks),
      reducer_(*reducer),
      may_leave_ahead_(may_leave_ahead),
      random_(seed) {
  for (const Schedule& schedule : schedules) {
    ChainRules rules;
    if (!chained.empty()) {
      const int node = chained[streams_.size()];
      rules.may_chain = [&schedule, &chained, node](StepId id) {
        return chained[static_cast<size_t>(schedule.steps[id].peer)] != node;
      };
      rules.most_followed = 7;
      rules.most_followers = 64;
    }
    streams_.push_back(
        {OrderForStream(schedule, rules), 0, std::vector<uint8_t>(schedule.scratch_bytes)});
  }
}

std::string StreamWorld::Play() {
  std::vector<size_t> order(streams_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  for (bool any = true; any;) {
    any = false;
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t rank : order) {
      // Takes one step, or a run of them.
      for (uint64_t steps = 1 + random_() % 5; steps != 0 && Advance(rank); --steps) {
        any = true;
      }
    }
    for (auto& [key, message] : messages_) {
      any |= random_() % 2 == 0 && Move(key, &message);
    }
    std::erase_if(messages_, [](const auto& entry) {
      return entry.second.has_landed && !entry.second.is_sent;
    });
    if (!any) {  // there may be steps that chance has left out
      for (auto& [key, message] : messages_) {
        any |= Move(key, &message);
      }
    }
  }
  for (size_t rank = 0; rank < streams_.size(); ++rank) {
    const Stream& stream = streams_[rank];
    if (stream.next != stream.steps.size()) {
      return "the stream of rank " + std::to_string(rank) + " waits for ever at step " +
             std::to_string(stream.next) + " of " + std::to_string(stream.steps.size());
    }
  }
  return messages_.empty() ? "" : std::to_string(messages_.size()) + " messages are left over";
}

uint8_t* StreamWorld::Address(size_t rank, const Range& range) {
  std::vector<uint8_t>& memory = range.place == Place::kInput    ? ranks_[rank].input
                                 : range.place == Place::kOutput ? ranks_[rank].output
                                                                 : streams_[rank].scratch;
  return memory.data() + range.offset_bytes;
}

StreamWorld::Key StreamWorld::KeyOf(size_t rank, const Step& step) {
  const int self = static_cast<int>(rank);
  return step.kind == StepKind::kSend ? Key{self, step.peer, step.tag}
                                      : Key{step.peer, self, step.tag};
}

bool StreamWorld::Advance(size_t rank) {
  Stream& stream = streams_[rank];
  if (stream.next == stream.steps.size()) {
    return false;
  }
  const OrderedStep& ordered = stream.steps[stream.next];
  const Step& step = schedules_[rank].steps[ordered.step];
  if (ordered.action == StreamAction::kStart) {
    Start(rank, ordered);
  } else if (ordered.action == StreamAction::kCompute) {
    Compute(rank, step);
  } else {
    Message& message = messages_[KeyOf(rank, step)];
    if (!message.is_there) {
      return false;
    }
    if (step.kind == StepKind::kSend) {
      message.is_sent = false;  // over; the sender may use its memory again
    } else {
      if (message.leaves_ahead && message.size != 0) {
        std::memcpy(message.to, message.cell.data(), message.size);
      }
      message.has_landed = true;
    }
  }
  ++stream.next;
  return true;
}

void StreamWorld::Start(size_t rank, const OrderedStep& ordered) {
  const Step& step = schedules_[rank].steps[ordered.step];
  Message& message = messages_[KeyOf(rank, step)];
  if (step.kind == StepKind::kSend) {
    message.from = Address(rank, step.left);
    message.size = step.left.size_bytes;
    message.is_sent = true;
    for (const StepId followed : ordered.follows) {
      message.follows.push_back(KeyOf(rank, schedules_[rank].steps[followed]));
    }
    message.leaves_ahead = may_leave_ahead_ && random_() % 2 == 0;
  } else {
    message.to = Address(rank, step.to);
    message.is_awaited = true;
    std::fill_n(message.to, step.to.size_bytes,
                uint8_t{0xee});  // anything, until the bytes have come
  }
}

bool StreamWorld::Move(const Key& key, Message* message) {
  if (message->is_there || !message->is_sent || (!message->leaves_ahead && !message->is_awaited) ||
      !std::ranges::all_of(message->follows, [this](const Key& k) { return there_.contains(k); })) {
    return false;
  }
  there_.insert(key);
  if (message->leaves_ahead) {
    message->cell.assign(message->from, message->from + message->size);
  } else if (message->size != 0) {
    std::memcpy(message->to, message->from, message->size);
  }
  message->is_there = true;
  return true;
}

void StreamWorld::Compute(size_t rank, const Step& step) {
  uint8_t* const to = Address(rank, step.to);
  const uint8_t* const left = Address(rank, step.left);
  if (step.kind == StepKind::kCopy) {
    std::memmove(to, left, step.to.size_bytes);
  } else {
    (void)reducer_.Reduce(left, Address(rank, step.right), to,
                          step.to.size_bytes / schedules_[rank].element_bytes);
  }
}

}  // namespace ferry::collective
