#include "engine/rendezvous/sender_side.h"

#include <algorithm>

namespace ferry::engine {

bool SenderSide::Keep(const Advert& advert) {
  // What was sent since `seen` and is for this receive will match it.
  if (held_ == kAdverts || advert.seen > sent_ || sent_ - advert.seen > kHistory) {
    return false;
  }
  for (uint64_t message = advert.seen; message != sent_; ++message) {
    const Envelope& envelope = history_[message % kHistory];
    if (envelope.context == advert.context && envelope.tag == advert.tag) {
      return false;
    }
  }
  adverts_[held_++] = advert;
  return true;
}

std::optional<Advert> SenderSide::Send(uint32_t context, int32_t tag, bool large) {
  history_[sent_++ % kHistory] = {context, tag};
  for (uint32_t i = 0; i < held_; ++i) {
    if (adverts_[i].context == context && adverts_[i].tag == tag) {
      // At most one: the peer advertises no receive behind another for the same messages.
      const Advert found = adverts_[i];
      Drop(i);
      return large ? std::optional(found) : std::nullopt;
    }
  }
  return std::nullopt;
}

void SenderSide::Withdraw(uint32_t receive, uint32_t generation) {
  for (uint32_t i = 0; i < held_; ++i) {
    if (adverts_[i].receive == receive && adverts_[i].generation == generation) {
      Drop(i);
      return;
    }
  }
}

void SenderSide::Drop(uint32_t i) {
  std::move(adverts_.begin() + i + 1, adverts_.begin() + held_, adverts_.begin() + i);
  --held_;
}

}  // namespace ferry::engine
