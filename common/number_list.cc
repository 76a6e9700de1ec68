#include "common/number_list.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ferry {

// ---- NumberPattern ------------------------------------------------------------------------------

bool NumberPattern::Take(int number) {
  if (size_ == 0) {
    first_ = number;
  } else if (step_ == 0) {
    if (number != first_) {
      block_ = size_;
      step_ = number - first_;
      is_line_ = block_ == 1;
    }
  } else if (number != WideAt(size_)) {  // which may lie beyond the range of an int
    // The numbers may begin again, at the end of a block.
    if (period_ != 0 || number != first_ || size_ % block_ != 0) {
      return false;
    }
    period_ = size_ / block_;
    is_line_ = false;
  }
  ++size_;
  return true;
}

// ---- NumberList ---------------------------------------------------------------------------------

NumberList::NumberList(std::vector<int> numbers) {
  if (std::all_of(numbers.begin(), numbers.end(),
                  [this](int number) { return pattern_.Take(number); })) {
    return;
  }
  pattern_ = NumberPattern();
  pattern_.size_ = numbers.size();
  numbers_ = std::make_shared<const std::vector<int>>(std::move(numbers));
}

NumberList NumberList::Line(int first, int step, size_t size) {
  NumberPattern pattern;
  pattern.first_ = first;
  pattern.step_ = step;
  pattern.size_ = size;
  return NumberList(pattern);
}

size_t NumberList::IndexOf(int number) const {
  if (numbers_ == nullptr && pattern_.is_line_ && pattern_.step_ != 0) {
    const int64_t distance = number - pattern_.first_;
    const int64_t index = distance / pattern_.step_;
    const bool is_there =
        distance % pattern_.step_ == 0 && index >= 0 && static_cast<size_t>(index) < size();
    return is_there ? static_cast<size_t>(index) : size();
  }
  size_t index = 0;
  while (index < size() && (*this)[index] != number) {
    ++index;
  }
  return index;
}

size_t NumberList::CountDistinct() const {
  if (numbers_ != nullptr) {
    return std::unordered_set<int>(numbers_->begin(), numbers_->end()).size();
  }
  if (pattern_.step_ == 0) {
    return std::min<size_t>(size(), 1);
  }
  return pattern_.IsRepeated() ? pattern_.period_ : pattern_.groups();
}

bool NumberList::AreSameTogether() const {
  if (numbers_ == nullptr) {
    return pattern_.step_ == 0 || !pattern_.IsRepeated();
  }
  std::unordered_set<int> left;
  for (size_t i = 1; i < size(); ++i) {
    if ((*numbers_)[i] != (*numbers_)[i - 1]) {
      left.insert((*numbers_)[i - 1]);
      if (left.contains((*numbers_)[i])) {
        return false;
      }
    }
  }
  return true;
}

bool NumberList::AreEquallyOften() const {
  if (numbers_ == nullptr) {
    const uint64_t round =
        pattern_.IsRepeated() ? pattern_.block_ * pattern_.period_ : pattern_.block_;
    return pattern_.step_ == 0 || size() % round == 0;
  }
  std::unordered_map<int, size_t> counts;
  for (const int number : *numbers_) {
    ++counts[number];
  }
  return std::all_of(counts.begin(), counts.end(), [&counts](const auto& entry) {
    return entry.second == counts.begin()->second;
  });
}

// ---- NumberListMaker ----------------------------------------------------------------------------

void NumberListMaker::Add(int number) {
  if (numbers_.empty()) {
    if (pattern_.Take(number)) {
      return;
    }
    numbers_.reserve(std::max(expected_, pattern_.size() + 1));
    for (size_t i = 0; i < pattern_.size(); ++i) {
      numbers_.push_back(pattern_.At(i));
    }
  }
  numbers_.push_back(number);
}

NumberList NumberListMaker::Make() && {
  return numbers_.empty() ? NumberList(pattern_) : NumberList(std::move(numbers_));
}

}  // namespace ferry
