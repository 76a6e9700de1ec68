#include "mpi/comm/split_wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ferry::mpi {
namespace {

using Ranks = std::vector<int>;
using testing::HasSubstr;

SplitWishes WishesOf(const std::vector<std::pair<int, int>>& pairs) {
  SplitWishes wishes;
  for (const auto& [color, key] : pairs) {
    wishes.Add(color, key);
  }
  return wishes;
}

TEST(SplitWishesTest, OrderMembersByKeyThenByRank) {
  const SplitWishes wishes =
      WishesOf({{1, 5}, {0, 2}, {1, 5}, {MPI_UNDEFINED, 0}, {1, -7}, {0, 2}});
  EXPECT_EQ(wishes.MembersOf(1), (Ranks{4, 0, 2}));
  EXPECT_EQ(wishes.MembersOf(0), (Ranks{1, 5}));
  EXPECT_TRUE(wishes.MembersOf(2).empty());
}

TEST(SplitWishesTest, NumberColors) {
  const int most = std::numeric_limits<int>::max();
  const Ranks colors = WishesOf({{most, 0}, {MPI_UNDEFINED, 0}, {0, 0}, {7, 0}, {0, 0}}).Colors();
  EXPECT_EQ(colors, (Ranks{0, 7, most}));
  EXPECT_EQ(IndexOfColor(colors, 0), 0);
  EXPECT_EQ(IndexOfColor(colors, 7), 1);
  EXPECT_EQ(IndexOfColor(colors, most), 2);
  EXPECT_TRUE(SplitWishes().Colors().empty());
}

TEST(SplitWishesTest, NameTheMemberWithAWrongColor) {
  const Failure failure = WishesOf({{1, 0}, {MPI_UNDEFINED, 0}, {-5, 0}}).CheckColors();
  EXPECT_EQ(failure.error_class, MPI_ERR_ARG);
  EXPECT_THAT(failure.text, HasSubstr("color of rank 2 is -5"));
  EXPECT_TRUE(WishesOf({{1, 0}, {MPI_UNDEFINED, 0}}).CheckColors().ok());
}

TEST(SplitWishesTest, TravelWhole) {
  const SplitWishes wishes = WishesOf({{1, 5}, {0, -2}, {MPI_UNDEFINED, 5}});
  SplitWishes read;
  ASSERT_TRUE(read.Unpack(wishes.Packed()).ok());
  EXPECT_EQ(read.size(), 3U);
  EXPECT_EQ(read.MembersOf(1), (Ranks{0}));
  EXPECT_EQ(read.MembersOf(MPI_UNDEFINED), (Ranks{2}));
  EXPECT_EQ(read.Unpack("").error_class, MPI_ERR_INTERN);
  EXPECT_EQ(read.Unpack(wishes.Packed() + "x").error_class, MPI_ERR_INTERN);
}

// The bytes of the longest message when so many members split by color(rank), and what comes out.
template <typename Color>
size_t SplitByTree(int members, Color&& color, SplitWishes* all) {
  std::vector<SplitWishes> parts(members);
  for (int rank = 0; rank < members; ++rank) {
    parts[rank].Add(color(rank), rank);
  }
  size_t longest = 0;
  for (int distance = 1; distance < members; distance *= 2) {
    for (int rank = 0; rank + distance < members; rank += 2 * distance) {
      const std::string text = parts[rank + distance].Packed();
      longest = std::max(longest, text.size());
      SplitWishes read;
      EXPECT_TRUE(read.Unpack(text).ok());
      parts[rank].Append(read);
      parts[rank + distance] = {};
    }
  }
  *all = std::move(parts[0]);
  return std::max(longest, all->Packed().size());
}

TEST(SplitWishesTest, OfManyMembersTakeFewBytes) {
  const int members = 1 << 14;
  const int row = 360;  // which no branch of the tree is a multiple of
  SplitWishes all;
  EXPECT_LE(SplitByTree(
                members, [&](int rank) { return rank / row; }, &all),
            60U);
  EXPECT_EQ(all.Colors().size(), static_cast<size_t>((members + row - 1) / row));
  EXPECT_EQ(all.MembersOf(1).front(), row);
  EXPECT_LE(SplitByTree(
                members, [&](int rank) { return rank % row; }, &all),
            60U);
  EXPECT_EQ(all.Colors().size(), static_cast<size_t>(row));
  EXPECT_EQ(all.MembersOf(3)[1], row + 3);
  EXPECT_LE(SplitByTree(
                members, [](int) { return 0; }, &all),
            30U);
  EXPECT_EQ(all.MembersOf(0).size(), static_cast<size_t>(members));
  EXPECT_LE(SplitByTree(
                members, [](int rank) { return rank / 8 % 2 == 0 ? 1 : MPI_UNDEFINED; }, &all),
            60U);
  EXPECT_EQ(all.Colors(), (Ranks{1}));
}

}  // namespace
}  // namespace ferry::mpi
