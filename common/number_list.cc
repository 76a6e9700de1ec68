#include "common/number_list.h"

#include <algorithm>
#include <climits>
#include <unordered_map>
#include <unordered_set>

#include "common/varint.h"

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

void NumberPattern::Pack(std::string* text) const {
  AppendVarint(size_, text);
  AppendVarint(Folded(first_), text);
  AppendVarint(Folded(step_), text);
  if (step_ != 0) {
    AppendVarint(block_, text);
    AppendVarint(period_, text);
  }
}

std::optional<NumberPattern> NumberPattern::Unpack(std::string_view* text, size_t most) {
  const std::optional<uint64_t> size = TakeVarint(text);
  const std::optional<uint64_t> first = TakeVarint(text);
  const std::optional<uint64_t> step = TakeVarint(text);
  const bool varies = step.value_or(0) != 0;
  const std::optional<uint64_t> block = varies ? TakeVarint(text) : 1;
  const std::optional<uint64_t> period = varies ? TakeVarint(text) : 0;
  constexpr uint64_t kMostFolded = 4 * uint64_t{1U << 31};  // of the difference of two ints
  if (!size || !first || !step || !block || !period || *size == 0 || *size > most ||
      *first > kMostFolded || *step > kMostFolded || *block == 0 || *block > *size ||
      *period > *size) {
    return std::nullopt;
  }
  NumberPattern pattern;
  pattern.size_ = *size;
  pattern.first_ = Unfolded(*first);
  pattern.step_ = Unfolded(*step);
  pattern.block_ = *block;
  pattern.period_ = *period;
  pattern.is_line_ = !varies || (*block == 1 && *period == 0);
  // Numbers grow, or shrink, up to the last one of a round.
  const auto is_int = [](int64_t number) { return number >= INT_MIN && number <= INT_MAX; };
  const uint64_t steps = pattern.IsRepeated() ? *period - 1 : pattern.groups() - 1;
  const bool fits =
      is_int(pattern.first_) &&
      (!varies || is_int(pattern.first_ + static_cast<int64_t>(steps) * pattern.step_));
  return fits ? std::optional(pattern) : std::nullopt;
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
