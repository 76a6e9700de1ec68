#include "tools/ferryrun/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::ElementsAre;

TEST(PlacementTest, MakesBlocksThatDifferByAtMostOne) {
  EXPECT_THAT(PlaceInBlocks(4, 1), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(PlaceInBlocks(4, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(PlaceInBlocks(5, 2), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(PlaceInBlocks(5, 3), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(PlaceInBlocks(3, 3), ElementsAre(0, 1, 2));
}

TEST(PlacementTest, HoldsToTheLimits) {
  config::Options options;
  options.max_ranks = 10;
  options.max_local_ranks = 4;
  EXPECT_TRUE(CheckPlacement(4, 1, options).ok());
  EXPECT_TRUE(CheckPlacement(8, 2, options).ok());
  EXPECT_TRUE(CheckPlacement(10, 10, options).ok());
  EXPECT_THAT(CheckPlacement(9, 2, options).message(),
              testing::HasSubstr("-n 9 on 2 node(s) puts 5 ranks on one"));
  EXPECT_THAT(CheckPlacement(11, 11, options).message(),
              testing::HasSubstr("at most 10 ranks (raise it with --max_ranks)"));
  EXPECT_EQ(CheckPlacement(2, 3, options).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::tools
