#include "engine/rendezvous/receiver_side.h"

#include "shm/layout/match_layout.h"

namespace ferry::engine {

bool IsAdvertisable(const ReceivePattern& pattern) {
  return pattern.source != shm::kAnySource && pattern.tag != shm::kAnyTag;
}

bool CouldShareAMessage(const ReceivePattern& a, const ReceivePattern& b) {
  const auto overlap = [](int32_t x, int32_t y, int32_t any) {
    return x == y || x == any || y == any;
  };
  return a.context == b.context && overlap(a.source, b.source, shm::kAnySource) &&
         overlap(a.tag, b.tag, shm::kAnyTag);
}

Rtr ReceiveByRtr::SendRtr(const ReceivePattern& pattern, uint32_t receive, uint32_t generation,
                          uint64_t seen) {
  state_ = State::kOut;
  return {pattern.context, pattern.tag, receive, generation, seen};
}

bool ReceiveByRtr::Announce() {
  const bool expected = state_ != State::kQuiet;
  state_ = State::kQuiet;
  return expected;
}

bool ReceiveByRtr::Cancel() {
  if (state_ == State::kQuiet) {
    return true;
  }
  state_ = State::kWithdrawing;
  return false;
}

bool ReceiveByRtr::Acknowledge() {
  const bool cancelled = state_ == State::kWithdrawing;
  state_ = State::kQuiet;
  return cancelled;
}

}  // namespace ferry::engine
