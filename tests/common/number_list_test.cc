// Lists of numbers, of each pattern and of none, against vectors of the same numbers.
#include "common/number_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ferry {
namespace {

using Ints = std::vector<int>;

bool AreTogether(const Ints& numbers) {
  std::set<int> seen;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if ((i == 0 || numbers[i] != numbers[i - 1]) && !seen.insert(numbers[i]).second) {
      return false;
    }
  }
  return true;
}

bool AreEquallyOften(const Ints& numbers) {
  std::map<int, int> counts;
  for (const int number : numbers) {
    ++counts[number];
  }
  return std::all_of(counts.begin(), counts.end(), [&counts](const auto& entry) {
    return entry.second == counts.begin()->second;
  });
}

void ExpectSame(const NumberList& list, const Ints& numbers) {
  ASSERT_EQ(list.size(), numbers.size());
  EXPECT_EQ(list.empty(), numbers.empty());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(list[i], numbers[i]) << i;
  }
  std::set<int> wanted(numbers.begin(), numbers.end());
  EXPECT_EQ(list.CountDistinct(), wanted.size());
  for (const int near : {-7, -1, 0, 1, 2, 3, 5, 1000}) {
    wanted.insert(near);
  }
  for (const int number : wanted) {
    EXPECT_EQ(
        list.IndexOf(number),
        static_cast<size_t>(std::find(numbers.begin(), numbers.end(), number) - numbers.begin()))
        << number;
  }
  EXPECT_EQ(list.AreSameTogether(), AreTogether(numbers));
  EXPECT_EQ(list.AreEquallyOften(), AreEquallyOften(numbers));
}

// Made in each way.
void ExpectList(const Ints& numbers, bool is_pattern) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(numbers.size(), 20); ++i) {
    text += std::to_string(numbers[i]) + " ";
  }
  SCOPED_TRACE(text + "of " + std::to_string(numbers.size()));
  NumberListMaker maker(numbers.size() / 2);  // it may be wrong
  for (const int number : numbers) {
    maker.Add(number);
  }
  const NumberList lists[] = {
      NumberList(numbers), std::move(maker).Make(),
      NumberList::Of(numbers.size(), [&numbers](size_t i) { return numbers[i]; })};
  for (const NumberList& list : lists) {
    EXPECT_EQ(list.is_pattern(), is_pattern);
    ExpectSame(list, numbers);
    const NumberList copy = list;
    ExpectSame(copy, numbers);
  }
}

TEST(NumberListTest, NoneAndOne) {
  ExpectSame(NumberList(), {});
  ExpectList({}, true);
  ExpectList({7}, true);
  ExpectList({-7, -7}, true);
}

TEST(NumberListTest, LinesOfAnyStep) {
  ExpectSame(NumberList::Line(3, 2, 4), {3, 5, 7, 9});
  ExpectSame(NumberList::Line(3, -3, 3), {3, 0, -3});
  ExpectSame(NumberList::Line(5, 0, 3), {5, 5, 5});
  ExpectList({4, 1, -2, -5}, true);
  ExpectList({INT_MIN, INT_MAX}, true);
  ExpectList({INT_MAX, INT_MIN}, true);
  ExpectList({0, INT_MAX, -2}, false);
}

// Ranks that fill nodes, and ranks that go around them, with the last node or round whole or not.
TEST(NumberListTest, NodesOfRanks) {
  for (const int each : {1, 2, 3, 104}) {
    for (const int nodes : {1, 2, 3, 17}) {
      for (const int rest : {0, 1, each}) {
        Ints filled;
        Ints around;
        for (int rank = 0; rank < 3 * each * nodes + rest; ++rank) {
          filled.push_back(rank / each);
          around.push_back(rank / each % nodes);
        }
        ExpectList(filled, true);
        ExpectList(around, true);
      }
    }
  }
}

TEST(NumberListTest, ListsWithoutAPattern) {
  ExpectList({0, 1, 1}, false);
  ExpectList({0, 0, 1, 0}, false);
  ExpectList({0, 1, 0, 1, 1}, false);
  ExpectList({0, 1, 2, 0, 1, 0}, false);
  ExpectList({3, 1, 2, 0}, false);
  ExpectList({0, 0, 1, 1, 1, 2}, false);
}

TEST(NumberListTest, AnyShortList) {
  for (int code = 0; code < 3 * 3 * 3 * 3 * 3 * 3; ++code) {
    Ints numbers;
    for (int rest = code; rest > 0; rest /= 3) {
      numbers.push_back(rest % 3);
    }
    ExpectSame(numbers, numbers);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Ints numbers(random() % 40);
    const auto distinct = 1 + random() % 4;
    for (int& number : numbers) {
      number = static_cast<int>(random() % distinct);
    }
    std::sort(numbers.begin(), numbers.begin() + static_cast<int>(numbers.size() / 2));
    ExpectSame(numbers, numbers);
  }
}

}  // namespace
}  // namespace ferry
