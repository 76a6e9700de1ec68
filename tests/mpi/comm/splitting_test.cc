#include "client/mpi/comm/splitting.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

using Ranks = std::vector<int>;

TEST(SplittingTest, OrdersByKeyThenByRank) {
  const std::vector<SplitWish> wishes = {{1, 5}, {0, 2}, {1, 5}, {-32766, 0}, {1, -7}, {0, 2}};
  EXPECT_EQ(MembersOf(wishes, 1), (Ranks{4, 0, 2}));
  EXPECT_EQ(MembersOf(wishes, 0), (Ranks{1, 5}));
  EXPECT_TRUE(MembersOf(wishes, 2).empty());
}

TEST(SplittingTest, NumbersColors) {
  const int most = std::numeric_limits<int>::max();
  const std::vector<SplitWish> wishes = {{most, 0}, {-32766, 0}, {0, 0}, {7, 0}, {0, 0}};
  EXPECT_EQ(CountColors(wishes), 3);
  EXPECT_EQ(IndexOfColor(wishes, 0), 0);
  EXPECT_EQ(IndexOfColor(wishes, 7), 1);
  EXPECT_EQ(IndexOfColor(wishes, most), 2);
  EXPECT_EQ(CountColors({}), 0);
}

}  // namespace
}  // namespace ferry::mpi
