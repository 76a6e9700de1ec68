#include "tools/ferryrun/node_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool IsHere(const std::string& name) { return name == "here" || name == "localhost"; }

Part PartOf(std::optional<uint64_t> ranks, std::vector<Host> hosts = {}) {
  Part part;
  part.ranks = ranks;
  part.hosts = std::move(hosts);
  return part;
}

StatusOr<JobLayout> Plan(const Arguments& arguments, const config::Options& options = {}) {
  return PlanNodes(arguments, options, IsHere);
}

TEST(NodePlanTest, WithoutHostsNodesAreOfThisMachine) {
  Arguments arguments;
  arguments.parts = {PartOf(3)};
  arguments.nodes = 2;
  const auto layout = Plan(arguments);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_THAT(layout->nodes, ElementsAre(NodePlan{"", false, 2}, NodePlan{"", false, 1}));
  EXPECT_THAT(layout->node_of_rank, ElementsAre(0, 0, 1));
  EXPECT_THAT(layout->part_of_rank, ElementsAre(0, 0, 0));
  EXPECT_EQ(layout->slots, 0u);
}

TEST(NodePlanTest, HostsAreNodesAndAllNamesOfThisOneAreOne) {
  Arguments arguments;
  arguments.parts = {PartOf(4)};
  arguments.hosts = {{"here", 1}, {"b", 2}, {"localhost", 1}};
  const auto layout = Plan(arguments);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_THAT(layout->nodes, ElementsAre(NodePlan{"here", false, 2}, NodePlan{"b", true, 2}));
  EXPECT_THAT(layout->node_of_rank, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(layout->slots, 4u);
}

TEST(NodePlanTest, HostsWithoutRanksAreLeftOut) {
  Arguments arguments;
  arguments.parts = {PartOf(1, {{"b", 1}}), PartOf(1, {{"d", 1}})};
  arguments.hosts = {{"a", 1}, {"b", 1}, {"c", 1}};
  const auto layout = Plan(arguments);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_THAT(layout->nodes, ElementsAre(NodePlan{"b", true, 1}, NodePlan{"d", true, 1}));
  EXPECT_THAT(layout->node_of_rank, ElementsAre(0, 1));
  EXPECT_THAT(layout->part_of_rank, ElementsAre(0, 1));
}

TEST(NodePlanTest, SoManyPerNodeSayHowManyThereAre) {
  Arguments arguments;
  arguments.parts = {PartOf(std::nullopt)};
  arguments.hosts = {{"a", 1}, {"b", 1}};
  arguments.mapping = *ParseMapping("ppr:3:node");
  EXPECT_THAT(Plan(arguments)->node_of_rank, ElementsAre(0, 0, 0, 1, 1, 1));
  arguments.mapping = {};
  EXPECT_THAT(Plan(arguments)->node_of_rank, ElementsAre(0));
}

TEST(NodePlanTest, RefusesWhatMakesNoSense) {
  Arguments arguments;
  arguments.parts = {PartOf(4)};
  arguments.nodes = 2;
  arguments.hosts = {{"a", 1}};
  EXPECT_THAT(Plan(arguments).status().message(), HasSubstr("--nodes 2 makes nodes of this"));
  arguments.nodes = 1;
  arguments.parts = {PartOf(4), PartOf(0)};
  EXPECT_THAT(Plan(arguments).status().message(), HasSubstr("-n 0"));
  arguments.parts = {PartOf(1000), PartOf(1000)};
  EXPECT_THAT(Plan(arguments).status().message(), HasSubstr("at most 1024 ranks"));
  arguments.parts = {PartOf(100)};
  config::Options few;
  few.max_local_ranks = 64;
  EXPECT_THAT(Plan(arguments, few).status().message(), HasSubstr("puts 100 ranks on one"));
}

}  // namespace
}  // namespace ferry::tools
