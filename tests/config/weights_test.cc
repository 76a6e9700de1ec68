#include "config/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(WeightsTest, ReadsPairs) {
  EXPECT_THAT(*ParseWeights("0:4,17:100", "rank"), UnorderedElementsAre(Pair(0, 4), Pair(17, 100)));
  EXPECT_THAT(*ParseWeights("3:1", "rank"), UnorderedElementsAre(Pair(3, 1)));
}

TEST(WeightsTest, NothingWeighsNobody) { EXPECT_THAT(*ParseWeights("", "rank"), IsEmpty()); }

TEST(WeightsTest, SaysWhichPartIsWrongAndWhy) {
  for (const char* wrong :
       {"4", "0:", ":4", "x:1", "0:4x", "-1:2", "0:4;1:2", "0 :1", "4294967296:1", "0:4,,1:2"}) {
    const auto weights = ParseWeights(wrong, "rank");
    ASSERT_FALSE(weights.ok()) << wrong;
    EXPECT_EQ(weights.status().code(), ErrorCode::kConfiguration);
    EXPECT_THAT(weights.status().message(), HasSubstr("rank:weight")) << wrong;
  }
  EXPECT_THAT(ParseWeights("1:2,0:0", "rank").status().message(),
              HasSubstr("\"0:0\": a weight is from 1 to 100"));
  EXPECT_THAT(ParseWeights("0:101", "rank").status().message(), HasSubstr("from 1 to 100"));
  EXPECT_THAT(ParseWeights("2:1,2:3", "rank").status().message(), HasSubstr("rank 2 has a weight"));
  EXPECT_THAT(ParseWeights("2:1,2:3", "uid").status().message(), HasSubstr("uid 2 has a weight"));
  EXPECT_THAT(ParseWeights("2:1,", "rank").status().message(), HasSubstr("last comma"));
}

}  // namespace
}  // namespace ferry::config
