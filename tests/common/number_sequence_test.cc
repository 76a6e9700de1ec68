#include "common/number_sequence.h"

#include <gtest/gtest.h>

#include <climits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {
namespace {

std::vector<int> NumbersOf(const NumberSequence& sequence) {
  std::vector<int> numbers;
  sequence.ForEach([&numbers](int number) { numbers.push_back(number); });
  return numbers;
}

NumberSequence SequenceOf(const std::vector<int>& numbers) {
  NumberSequence sequence;
  for (const int number : numbers) {
    sequence.Add(number);
  }
  return sequence;
}

// As a tree of members makes it: each has its own number, and appends those of the next half, of
// the next quarter...
NumberSequence MadeByTree(const std::vector<int>& numbers, size_t begin, size_t count) {
  if (count == 1) {
    return SequenceOf({numbers[begin]});
  }
  NumberSequence first = MadeByTree(numbers, begin, count / 2);
  const NumberSequence second = MadeByTree(numbers, begin + count / 2, count - count / 2);
  std::string text;
  second.Pack(&text);
  std::string_view left = text;
  NumberSequence read;
  EXPECT_TRUE(read.Unpack(&left, second.size()));
  EXPECT_TRUE(left.empty());
  first.Append(read);
  return first;
}

template <typename At>
std::vector<int> Numbers(int count, At&& at) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(at(i));
  }
  return numbers;
}

TEST(NumberSequenceTest, KeepsWhatItWasGiven) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto values = static_cast<int>(random() % 5 + 1);
    const std::vector<int> numbers = Numbers(static_cast<int>(random() % 40 + 1), [&](int) {
      return static_cast<int>(random() % static_cast<unsigned>(values));
    });
    EXPECT_EQ(NumbersOf(SequenceOf(numbers)), numbers);
    EXPECT_EQ(NumbersOf(MadeByTree(numbers, 0, numbers.size())), numbers);
  }
}

TEST(NumberSequenceTest, TakesFewPatternsWhereverItBegins) {
  const int count = 1000;
  for (int start = 0; start < 12; ++start) {
    SCOPED_TRACE(start);
    for (const std::vector<int>& numbers :
         {Numbers(count, [&](int) { return 3; }), Numbers(count, [&](int i) { return start + i; }),
          Numbers(count, [&](int i) { return (start + i) / 5; }),
          Numbers(count, [&](int i) { return (start + i) % 7; }),
          Numbers(count, [&](int i) { return (start + i) / 4 % 3; })}) {
      EXPECT_LE(SequenceOf(numbers).patterns(), 5U);
      EXPECT_LE(MadeByTree(numbers, 0, numbers.size()).patterns(), 5U);
      EXPECT_EQ(NumbersOf(MadeByTree(numbers, 0, numbers.size())), numbers);
    }
  }
}

TEST(NumberSequenceTest, NamesEachValue) {
  std::vector<int> values;
  SequenceOf({4, 4, 5, 5, 4, 4, 5, 5, -1, 9}).ForEachValue([&](int value) {
    values.push_back(value);
  });
  EXPECT_EQ(values, (std::vector<int>{4, 5, -1, 9}));
}

TEST(NumberSequenceTest, TakesNumbersOfTheWholeRange) {
  const std::vector<int> numbers = {INT_MIN, INT_MAX, INT_MIN, INT_MAX, 0, INT_MIN, INT_MIN, 1};
  EXPECT_EQ(NumbersOf(MadeByTree(numbers, 0, numbers.size())), numbers);
}

TEST(NumberSequenceTest, RefusesWhatIsNone) {
  std::string text;
  SequenceOf({1, 1, 2, 2, 7, 8, 9}).Pack(&text);
  for (size_t size = 0; size < text.size(); ++size) {
    std::string_view cut = std::string_view(text).substr(0, size);
    EXPECT_FALSE(NumberSequence().Unpack(&cut, 7)) << size;
  }
  std::string_view whole = text;
  EXPECT_FALSE(NumberSequence().Unpack(&whole, 6));  // fewer than there are
  // Any text whatever is refused, or is a sequence of that size.
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string noise(random() % 30, '\0');
    for (char& byte : noise) {
      byte = static_cast<char>(random());
    }
    std::string_view left = noise;
    NumberSequence sequence;
    if (sequence.Unpack(&left, 20)) {
      EXPECT_EQ(NumbersOf(sequence).size(), 20U);
    }
  }
}

}  // namespace
}  // namespace ferry
