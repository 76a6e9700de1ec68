// Lists of numbers that do not change, such as the node of each rank of a job, or the rank of the
// job of each member of a communicator. Most of these follow a pattern, and then take no memory,
// whatever their length: number i is first + (i / block % period) * step. So are ranks in a row or
// every second one (block 1), ranks that fill one node after the other (block: the ranks of a node)
// and ranks that go around the nodes (period: the number of nodes). Any other list has its numbers
// once, shared by its copies.
//
// Any number of threads may read it; copying costs no more than a reference. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

// The pattern of the numbers that it has been given so far, one after the other.
class NumberPattern {
 public:
  // Takes the next number. False: it does not fit, and the pattern stays as it is.
  bool Take(int number);
  size_t size() const { return size_; }
  int At(size_t index) const { return static_cast<int>(WideAt(index)); }
  // So many of the first numbers have all that are there.
  size_t SizeOfRound() const { return IsRepeated() ? block_ * period_ : size_; }

  // Appends the pattern to `text` in a few bytes.
  void Pack(std::string* text) const;
  // Takes a packed pattern of 1 to `most` numbers from the beginning of `text`. Nothing: none is
  // there, or not all of its numbers are ints.
  static std::optional<NumberPattern> Unpack(std::string_view* text, size_t most);

 private:
  friend class NumberList;
  int64_t WideAt(size_t index) const {
    if (is_line_) [[likely]] {
      return first_ + static_cast<int64_t>(index) * step_;
    }
    const uint64_t group = index / block_;
    return first_ + static_cast<int64_t>(period_ == 0 ? group : group % period_) * step_;
  }
  // How many blocks there are, the last of which may be shorter.
  size_t groups() const { return (size_ + block_ - 1) / block_; }
  bool IsRepeated() const { return period_ != 0 && groups() > period_; }

  bool is_line_ = true;  // block 1 and no period; or all are the same
  int64_t first_ = 0;
  int64_t step_ = 0;     // 0: all are the same
  uint64_t block_ = 1;   // so many in a row are the same
  uint64_t period_ = 0;  // of blocks; 0: none
  size_t size_ = 0;
};

class NumberList {
 public:
  NumberList() = default;
  NumberList(std::vector<int> numbers);           // NOLINT(google-explicit-constructor)
  NumberList(std::initializer_list<int> numbers)  // NOLINT(google-explicit-constructor)
      : NumberList(std::vector<int>(numbers)) {}
  // first, first + step, ...
  static NumberList Line(int first, int step, size_t size);
  // at(0), at(1), ... at(size - 1). `at` is called twice where the numbers have no pattern.
  template <typename Function>
  static NumberList Of(size_t size, Function&& at) {
    NumberPattern pattern;
    for (size_t i = 0; i < size; ++i) {
      if (!pattern.Take(at(i))) {
        std::vector<int> numbers;
        numbers.reserve(size);
        for (size_t j = 0; j < size; ++j) {
          numbers.push_back(at(j));
        }
        return NumberList(std::move(numbers));
      }
    }
    return NumberList(pattern);
  }

  size_t size() const { return pattern_.size(); }
  bool empty() const { return size() == 0; }
  // Returns true if the list has no memory of its own.
  bool is_pattern() const { return numbers_ == nullptr; }
  int operator[](size_t index) const {
    return numbers_ == nullptr ? pattern_.At(index) : (*numbers_)[index];
  }

  // The first index of `number`; size(): it is not in the list.
  size_t IndexOf(int number) const;
  size_t CountDistinct() const;
  // Returns true if numbers that are the same follow each other.
  bool AreSameTogether() const;
  // Returns true if each number is there as often as each other one.
  bool AreEquallyOften() const;

 private:
  friend class NumberListMaker;
  explicit NumberList(const NumberPattern& pattern) : pattern_(pattern) {}

  NumberPattern pattern_;  // with `numbers_` only its size counts
  std::shared_ptr<const std::vector<int>> numbers_;
};

// Makes a list of numbers that come one after the other.
class NumberListMaker {
 public:
  // `size`: how many will come, more or less.
  explicit NumberListMaker(size_t size) : expected_(size) {}
  void Add(int number);
  NumberList Make() &&;

 private:
  const size_t expected_;
  NumberPattern pattern_;
  std::vector<int> numbers_;  // once one has not fitted: all
};

}  // namespace ferry
