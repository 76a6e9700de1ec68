#include "engine/rendezvous/sender_side.h"

#include <algorithm>

namespace ferry::engine {

SenderSide::SenderSide(const shm::AdvertBook& book)
    : sent_(book.sent), held_(std::min(book.held, kAdverts)) {
  std::copy_n(book.history, kHistory, history_.begin());
  std::copy_n(book.adverts, kAdverts, adverts_.begin());
}

bool SenderSide::Keep(const Advert& advert) {
  // A message sent since `seen` that is for this receive will match it.
  if (advert.seen > sent_ || sent_ - advert.seen > kHistory) {
    return false;
  }
  for (uint64_t message = advert.seen; message != sent_; ++message) {
    if (envelope(message).context == advert.context && envelope(message).tag == advert.tag) {
      return false;
    }
  }
  for (uint32_t i = 0; i < held_; ++i) {
    if (adverts_[i].context == advert.context && adverts_[i].tag == advert.tag) {
      Drop(i);  // the peer advertises no receive behind another: that one was withdrawn
      break;
    }
  }
  if (held_ == kAdverts) {
    Drop(0);
  }
  adverts_[held_++] = advert;
  return true;
}

std::optional<Advert> SenderSide::Send(uint32_t context, int32_t tag, bool large) {
  history_[sent_++ % kHistory] = {context, tag};
  for (uint32_t i = 0; i < held_; ++i) {
    if (adverts_[i].context == context && adverts_[i].tag == tag) {
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
