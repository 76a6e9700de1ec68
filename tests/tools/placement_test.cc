#include "tools/ferryrun/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint32_t> Place(const std::vector<PartPlace>& parts, const std::vector<uint64_t>& slots,
                            const std::string& rule) {
  const StatusOr<Mapping> mapping = ParseMapping(rule);
  EXPECT_TRUE(mapping.ok()) << mapping.status().message();
  const auto placed = PlaceRanks(parts, slots, *mapping);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return placed.ok() ? *placed : std::vector<uint32_t>();
}

TEST(PlacementTest, EvenSlotsMakeBlocksThatDifferByAtMostOne) {
  const auto blocks = [](uint64_t ranks, uint64_t nodes) {
    return Place({{ranks, {}}}, EvenSlots(ranks, nodes), "slot");
  };
  EXPECT_THAT(blocks(4, 1), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(blocks(4, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(blocks(5, 2), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(blocks(5, 3), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(blocks(3, 3), ElementsAre(0, 1, 2));
}

TEST(PlacementTest, BySlotFillsNodesAndStartsAgainWhenAllAreFull) {
  EXPECT_THAT(Place({{4, {}}}, {1, 3}, "slot"), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Place({{6, {}}}, {1, 3}, "core"), ElementsAre(0, 1, 1, 1, 0, 1));
}

TEST(PlacementTest, ByNodeTakesThemInTurnAsLongAsTheyHaveSlots) {
  EXPECT_THAT(Place({{5, {}}}, {3, 1, 3}, "node"), ElementsAre(0, 1, 2, 0, 2));
  EXPECT_THAT(Place({{9, {}}}, {3, 1, 3}, "node"), ElementsAre(0, 1, 2, 0, 2, 0, 2, 0, 1));
}

TEST(PlacementTest, SoManyPerNodeWrapOnlyWhenTheyMay) {
  EXPECT_THAT(Place({{4, {}}}, {1, 1}, "ppr:2:node"), ElementsAre(0, 0, 1, 1));
  const auto full = PlaceRanks({{5, {}}}, {9, 9}, *ParseMapping("ppr:2:node"));
  EXPECT_THAT(full.status().message(),
              HasSubstr("-n 5: 2 node(s) with ppr:2:node have room for 4 ranks"));
  const auto wrapped = PlaceRanks({{5, {}}}, {1, 1}, {.by = Mapping::By::kCount, .count = 2});
  EXPECT_THAT(*wrapped, ElementsAre(0, 0, 1, 1, 0));
}

TEST(PlacementTest, ProgramsShareSlotsAndKeepToTheirNodes) {
  EXPECT_THAT(Place({{1, {}}, {3, {}}}, {2, 2}, "slot"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Place({{2, {1}}, {3, {}}}, {2, 2}, "slot"), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(Place({{1, {}}, {2, {}}}, {2, 2}, "node"), ElementsAre(0, 1, 0));
  EXPECT_THAT(Place({{2, {}}, {2, {}}}, {1, 1}, "ppr:1:node"), ElementsAre(0, 1, 0, 1));
}

TEST(MappingTest, ReadsTheUsualRules) {
  EXPECT_EQ(ParseMapping("NODE:OVERSUBSCRIBE")->by, Mapping::By::kNode);
  EXPECT_EQ(ParseMapping("socket")->by, Mapping::By::kSlot);
  EXPECT_EQ(ParseMapping("ppr:12:node:oversubscribe")->count, 12U);
  EXPECT_THAT(ParseMapping("rack").status().message(), HasSubstr("--map-by rack: it knows slot"));
  EXPECT_THAT(ParseMapping("ppr:x:node").status().message(), HasSubstr("'x' is no number"));
  EXPECT_THAT(ParseMapping("ppr:0:node").status().message(), HasSubstr("'0' is no number"));
  EXPECT_THAT(ParseMapping("ppr:2:socket").status().message(), HasSubstr("per node only"));
  EXPECT_THAT(ParseMapping("ppr:2").status().message(), HasSubstr("per node only"));
}

TEST(PlacementTest, HoldsToTheLimits) {
  config::Options options;
  options.max_ranks = 10;
  options.max_local_ranks = 4;
  const auto local = [&options](uint64_t ranks, uint64_t nodes) {
    return CheckLocalCounts(Place({{ranks, {}}}, EvenSlots(ranks, nodes), "slot"), nodes, options);
  };
  EXPECT_TRUE(local(4, 1).ok());
  EXPECT_TRUE(local(8, 2).ok());
  EXPECT_TRUE(CheckCounts(10, 10, options).ok());
  EXPECT_THAT(local(9, 2).message(), HasSubstr("-n 9 on 2 node(s) puts 5 ranks on one"));
  EXPECT_THAT(CheckCounts(11, 11, options).message(),
              HasSubstr("at most 10 ranks (raise it with --max_ranks)"));
  EXPECT_EQ(CheckCounts(2, 3, options).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::tools
