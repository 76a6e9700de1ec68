// Numbers that one after the other are added, kept as the patterns that they follow in turn
// (number_list.h): a million ranks' rows and columns in a grid of processes take some tens of
// bytes. Numbers without any pattern take several times the memory of a list.
//
// A sequence belongs to one thread at a time. Nothing blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/number_list.h"

namespace ferry {

class NumberSequence {
 public:
  void Add(int number);
  // Adds all of `more`, which takes time for each of its numbers.
  void Append(const NumberSequence& more);

  size_t size() const { return size_; }
  size_t patterns() const { return patterns_.size(); }
  // Calls visit(number) for one number after the other.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const NumberPattern& pattern : patterns_) {
      for (size_t i = 0; i < pattern.size(); ++i) {
        visit(pattern.At(i));
      }
    }
  }
  // Calls visit(number) for each number that is there, for some of them several times.
  template <typename Visit>
  void ForEachValue(Visit&& visit) const {
    for (const NumberPattern& pattern : patterns_) {
      for (size_t i = 0; i < pattern.SizeOfRound(); ++i) {
        if (i == 0 || pattern.At(i) != pattern.At(i - 1)) {
          visit(pattern.At(i));
        }
      }
    }
  }

  // Appends the sequence, without its size, to `text`.
  void Pack(std::string* text) const;
  // Takes a packed sequence of `size` numbers from the beginning of `text`. False: there is none.
  bool Unpack(std::string_view* text, size_t size);

 private:
  std::vector<NumberPattern> patterns_;
  size_t size_ = 0;
  // Numbers at the end of the last pattern that are the same.
  size_t run_ = 0;
};

}  // namespace ferry
