#include "common/number_sequence.h"

#include <optional>

namespace ferry {

void NumberSequence::Add(int number) {
  ++size_;
  const bool is_first = patterns_.empty();
  const bool goes_on = !is_first && patterns_.back().At(patterns_.back().size() - 1) == number;
  if (!is_first && patterns_.back().Take(number)) {
    run_ = goes_on ? run_ + 1 : 1;
    return;
  }
  // A row of the same numbers that goes on beyond its block begins the next pattern, so that a
  // sequence may begin in the middle of a block.
  NumberPattern next;
  if (goes_on) {
    NumberPattern& last = patterns_.back();
    NumberPattern before;
    for (size_t i = 0; i < last.size() - run_; ++i) {
      before.Take(last.At(i));
    }
    for (size_t i = 0; i < run_; ++i) {
      next.Take(number);
    }
    last = before;
  }
  run_ = goes_on ? run_ + 1 : 1;
  next.Take(number);
  patterns_.push_back(next);
}

void NumberSequence::Append(const NumberSequence& more) {
  more.ForEach([this](int number) { Add(number); });
}

void NumberSequence::Pack(std::string* text) const {
  for (const NumberPattern& pattern : patterns_) {
    pattern.Pack(text);
  }
}

bool NumberSequence::Unpack(std::string_view* text, size_t size) {
  *this = {};
  while (size_ < size) {
    const std::optional<NumberPattern> pattern = NumberPattern::Unpack(text, size - size_);
    if (!pattern) {
      return false;
    }
    patterns_.push_back(*pattern);
    size_ += pattern->size();
  }
  // A number that is added later goes on with the last pattern, or begins one of its own.
  for (run_ = 0; size != 0 && run_ < patterns_.back().size() &&
                 patterns_.back().At(patterns_.back().size() - 1 - run_) ==
                     patterns_.back().At(patterns_.back().size() - 1);) {
    ++run_;
  }
  return true;
}

}  // namespace ferry
