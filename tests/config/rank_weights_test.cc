#include "config/rank_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(RankWeightsTest, ReadsPairs) {
  EXPECT_THAT(*ParseRankWeights("0:4,17:100"), UnorderedElementsAre(Pair(0, 4), Pair(17, 100)));
  EXPECT_THAT(*ParseRankWeights("3:1"), UnorderedElementsAre(Pair(3, 1)));
}

TEST(RankWeightsTest, NothingWeighsNobody) { EXPECT_THAT(*ParseRankWeights(""), IsEmpty()); }

TEST(RankWeightsTest, SaysWhichPartIsWrongAndWhy) {
  for (const char* wrong :
       {"4", "0:", ":4", "x:1", "0:4x", "-1:2", "0:4;1:2", "0 :1", "4294967296:1", "0:4,,1:2"}) {
    const auto weights = ParseRankWeights(wrong);
    ASSERT_FALSE(weights.ok()) << wrong;
    EXPECT_EQ(weights.status().code(), ErrorCode::kConfiguration);
    EXPECT_THAT(weights.status().message(), HasSubstr("RANK:WEIGHT")) << wrong;
  }
  EXPECT_THAT(ParseRankWeights("1:2,0:0").status().message(),
              HasSubstr("\"0:0\": a weight is from 1 to 100"));
  EXPECT_THAT(ParseRankWeights("0:101").status().message(), HasSubstr("from 1 to 100"));
  EXPECT_THAT(ParseRankWeights("2:1,2:3").status().message(), HasSubstr("rank 2 has a weight"));
  EXPECT_THAT(ParseRankWeights("2:1,").status().message(), HasSubstr("last comma"));
}

}  // namespace
}  // namespace ferry::config
