#include "coll/board/offers.h"

#include <cstring>

namespace ferry::collective {
namespace {

// The contents of a line.
constexpr std::byte kFine{0};
constexpr std::byte kOutOfReach{1};

}  // namespace

bool Offers::Offer(int reader) {
  std::byte* const place = board_.Reserve(0, slot_, reader);
  if (place == nullptr) {
    return false;
  }
  std::memcpy(place, &own_, sizeof(own_));
  board_.PostOffer(slot_);
  return true;
}

Offered Offers::OfferOf(int member) const {
  if (member == task_.self()) {
    return own_;
  }
  Offered offer;
  std::memcpy(&offer, board_.OfferOf(member, slot_), sizeof(offer));
  return offer;
}

Offers::Met Offers::Meet(int member) {
  if (board_.Await(member, 0, slot_) != nullptr) {
    return Met::kData;
  }
  return board_.has_failed() || board_.is_elsewhere() ? Met::kNothing : Met::kOffer;
}

Verdict Offers::AwaitVerdict(int member, Met* met) {
  *met = Meet(member);
  if (*met != Met::kOffer) {
    return Verdict::kNone;
  }
  const Verdict verdict = OfferOf(member).verdict;
  if (verdict == Verdict::kNone) {  // the two have come to think differently of this board
    board_.Fail({.code = ErrorCode::kCancelled, .peer = member});
  }
  return verdict;
}

bool Offers::Demand(int member, ErrorCode error) {
  if (error != ErrorCode::kOk) {
    board_.Fail({.code = error, .peer = member});
  }
  return error == ErrorCode::kOk;
}

bool Offers::Post(uint32_t line, bool reaches) {
  std::byte* const word = board_.Reserve(line, Board::Slot::kLine, Board::kAll);
  if (word == nullptr) {
    return false;
  }
  *word = reaches ? kFine : kOutOfReach;
  board_.Post(line, Board::Slot::kLine);
  return true;
}

bool Offers::AwaitAll(uint32_t line, bool* all_reach) {
  for (int i = 0; i < task_.size(); ++i) {
    if (i == task_.self()) {
      continue;
    }
    const std::byte* const word = board_.Await(i, line, Board::Slot::kLine);
    if (word == nullptr) {
      return false;
    }
    *all_reach = *all_reach && *word == kFine;
  }
  return true;
}

}  // namespace ferry::collective
