#include "client/mpi/comm/rank_set.h"

#include <algorithm>
#include <random>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

using Ranks = std::vector<int>;

RankSet World(int size) { return RankSet::Strided(0, 1, size); }

TEST(RankSetTest, StoresSequencesWithoutTheirMembers) {
  EXPECT_TRUE(World(1 << 30).compact());
  EXPECT_TRUE(RankSet::Of({7, 5, 3}).compact());
  EXPECT_TRUE(RankSet::Of({9, 2}).compact());
  EXPECT_TRUE(RankSet::Of({4}).compact());
  EXPECT_FALSE(RankSet::Of({0, 1, 3}).compact());
}

TEST(RankSetTest, FindsEveryMemberAndNoOther) {
  for (const Ranks& members : {Ranks{}, Ranks{3}, Ranks{0, 1, 2, 3}, Ranks{9, 6, 3}, Ranks{2, 10},
                               Ranks{10, 2}, Ranks{5, 1, 8, 0}, Ranks{0, 2, 4, 7}}) {
    RankSet set = RankSet::Of(members);
    ASSERT_EQ(set.size(), static_cast<int>(members.size()));
    EXPECT_EQ(set.WorldRanks(), members);
    for (int world_rank = -3; world_rank < 15; ++world_rank) {
      auto at = std::find(members.begin(), members.end(), world_rank);
      int expected =
          at == members.end() ? RankSet::kAbsent : static_cast<int>(at - members.begin());
      EXPECT_EQ(set.RankOf(world_rank), expected) << world_rank;
      EXPECT_EQ(set.Contains(world_rank), at != members.end());
    }
  }
}

TEST(RankSetTest, ComparesOrderAndMembers) {
  EXPECT_EQ(Compare(RankSet::Of({1, 2, 3}), RankSet::Strided(1, 1, 3)), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet::Strided(4, 1, 1), RankSet::Strided(4, 9, 1)), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet(), RankSet::Of({})), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet::Of({3, 2, 1}), RankSet::Of({1, 2, 3})), MPI_SIMILAR);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 5, 1})), MPI_SIMILAR);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 1, 6})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 1, 2})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(World(3), World(4)), MPI_UNEQUAL);
}

// Groups of MPI 5.0's own example in section 7.3.2: the order is that of the first operand.
TEST(RankSetTest, KeepsTheOrderOfTheFirstOperand) {
  RankSet a = RankSet::Of({0, 1, 2, 3});
  RankSet b = RankSet::Of({3, 0, 4});
  EXPECT_EQ(Union(a, b).WorldRanks(), (Ranks{0, 1, 2, 3, 4}));
  EXPECT_EQ(Union(b, a).WorldRanks(), (Ranks{3, 0, 4, 1, 2}));
  EXPECT_EQ(Intersection(a, b).WorldRanks(), (Ranks{0, 3}));
  EXPECT_EQ(Intersection(b, a).WorldRanks(), (Ranks{3, 0}));
  EXPECT_EQ(Difference(a, b).WorldRanks(), (Ranks{1, 2}));
  EXPECT_EQ(Difference(b, a).WorldRanks(), (Ranks{4}));
  EXPECT_TRUE(Difference(a, a).empty());
}

TEST(RankSetTest, AgreesWithSetsByTheBookOnRandomGroups) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    auto draw = [&] {
      Ranks all(12);
      for (int i = 0; i < 12; ++i) {
        all[i] = i;
      }
      std::shuffle(all.begin(), all.end(), random);
      all.resize(random() % 13);
      return all;
    };
    Ranks a = draw();
    Ranks b = draw();
    auto in = [](const Ranks& list, int rank) {
      return std::find(list.begin(), list.end(), rank) != list.end();
    };
    Ranks both;
    Ranks only_a;
    Ranks all = a;
    for (int rank : a) {
      (in(b, rank) ? both : only_a).push_back(rank);
    }
    for (int rank : b) {
      if (!in(a, rank)) {
        all.push_back(rank);
      }
    }
    RankSet set_a = RankSet::Of(a);
    RankSet set_b = RankSet::Of(b);
    EXPECT_EQ(Union(set_a, set_b).WorldRanks(), all);
    EXPECT_EQ(Intersection(set_a, set_b).WorldRanks(), both);
    EXPECT_EQ(Difference(set_a, set_b).WorldRanks(), only_a);
  }
}

TEST(RankSetTest, IncludesAndExcludesByRank) {
  RankSet set = RankSet::Of({10, 20, 30, 50});
  RankSet result;
  ASSERT_TRUE(Include(set, Ranks{3, 0}, &result).ok());
  EXPECT_EQ(result.WorldRanks(), (Ranks{50, 10}));
  ASSERT_TRUE(Include(set, {}, &result).ok());
  EXPECT_TRUE(result.empty());
  ASSERT_TRUE(Exclude(set, Ranks{3, 0}, &result).ok());
  EXPECT_EQ(result.WorldRanks(), (Ranks{20, 30}));
  ASSERT_TRUE(Exclude(set, {}, &result).ok());
  EXPECT_EQ(result, set);
}

TEST(RankSetTest, RefusesRanksThatAreNotThereOrThereTwice) {
  RankSet result;
  Failure failure = Include(World(4), Ranks{1, 4}, &result);
  EXPECT_EQ(failure.error_class, MPI_ERR_RANK);
  EXPECT_NE(failure.text.find("ranks[1] is 4"), std::string::npos) << failure.text;
  EXPECT_EQ(Include(World(4), Ranks{-1}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Include(World(4), Ranks{2, 0, 2}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Exclude(World(4), Ranks{4}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Exclude(World(4), Ranks{1, 1}, &result).error_class, MPI_ERR_RANK);
}

TEST(RankSetTest, ExpandsRanges) {
  Ranks ranks;
  const RankRange ranges[] = {{1, 9, 4}, {8, 6, -1}, {3, 3, 1}, {0, 0, -5}};
  ASSERT_TRUE(ExpandRanges(World(10), ranges, &ranks).ok());
  EXPECT_EQ(ranks, (Ranks{1, 5, 9, 8, 7, 6, 3, 0}));
  // The last rank of a range need not be hit, nor be in the group.
  const RankRange beyond[] = {{1, 11, 4}};
  ASSERT_TRUE(ExpandRanges(World(10), beyond, &ranks).ok());
  EXPECT_EQ(ranks, (Ranks{1, 5, 9}));
}

TEST(RankSetTest, RefusesRangesThatMakeNoRanks) {
  Ranks ranks;
  auto expand = [&](RankRange range) {
    return ExpandRanges(World(10), std::span(&range, 1), &ranks).error_class;
  };
  EXPECT_EQ(expand({0, 5, 0}), MPI_ERR_ARG);
  EXPECT_EQ(expand({0, 5, -1}), MPI_ERR_ARG);
  EXPECT_EQ(expand({5, 0, 1}), MPI_ERR_ARG);
  EXPECT_EQ(expand({-2, 5, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({0, 10, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({0, 2147483647, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({2147483647, -2147483647 - 1, -1}), MPI_ERR_RANK);
  const RankRange twice[] = {{0, 4, 1}, {4, 6, 1}};
  EXPECT_EQ(ExpandRanges(World(10), twice, &ranks).error_class, MPI_ERR_RANK);
}

TEST(RankSetTest, TranslatesRanks) {
  RankSet from = RankSet::Of({4, 2, 7, 0});
  RankSet to = RankSet::Strided(0, 2, 3);
  Ranks translated(5);
  ASSERT_TRUE(TranslateRanks(from, Ranks{0, 1, 2, 3, MPI_PROC_NULL}, to, translated).ok());
  EXPECT_EQ(translated, (Ranks{2, 1, MPI_UNDEFINED, 0, MPI_PROC_NULL}));
  EXPECT_EQ(TranslateRanks(from, Ranks{4}, to, translated).error_class, MPI_ERR_RANK);
  EXPECT_EQ(TranslateRanks(from, Ranks{-7}, to, translated).error_class, MPI_ERR_RANK);
}

}  // namespace
}  // namespace ferry::mpi
