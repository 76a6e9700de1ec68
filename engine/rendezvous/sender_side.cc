#include "engine/rendezvous/sender_side.h"

#include <algorithm>

namespace ferry::engine {

SenderSide::SenderSide(const shm::RtrBook& book)
    : sent_(book.sent), held_(std::min(book.held, kRtrs)) {
  std::copy_n(book.history, kHistory, history_.begin());
  std::copy_n(book.rtrs, kRtrs, rtrs_.begin());
}

bool SenderSide::Keep(const Rtr& rtr) {
  // A message sent since `seen` that is for this receive will match it.
  if (rtr.seen > sent_ || sent_ - rtr.seen > kHistory) {
    return false;
  }
  for (uint64_t message = rtr.seen; message != sent_; ++message) {
    if (envelope(message).context == rtr.context && envelope(message).tag == rtr.tag) {
      return false;
    }
  }
  for (uint32_t i = 0; i < held_; ++i) {
    if (rtrs_[i].context == rtr.context && rtrs_[i].tag == rtr.tag) {
      Drop(i);  // the peer announces no receive behind another: that one was withdrawn
      break;
    }
  }
  if (held_ == kRtrs) {
    Drop(0);
  }
  rtrs_[held_++] = rtr;
  return true;
}

std::optional<Rtr> SenderSide::Send(uint32_t context, int32_t tag, bool large) {
  history_[sent_++ % kHistory] = {context, tag};
  for (uint32_t i = 0; i < held_; ++i) {
    if (rtrs_[i].context == context && rtrs_[i].tag == tag) {
      const Rtr found = rtrs_[i];
      Drop(i);
      return large ? std::optional(found) : std::nullopt;
    }
  }
  return std::nullopt;
}

void SenderSide::Withdraw(uint32_t receive, uint32_t generation) {
  for (uint32_t i = 0; i < held_; ++i) {
    if (rtrs_[i].receive == receive && rtrs_[i].generation == generation) {
      Drop(i);
      return;
    }
  }
}

void SenderSide::Drop(uint32_t i) {
  std::move(rtrs_.begin() + i + 1, rtrs_.begin() + held_, rtrs_.begin() + i);
  --held_;
}

}  // namespace ferry::engine
