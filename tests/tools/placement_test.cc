// Which node each rank lives on.
#include "tools/ferryrun/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ferryrun/node_plan.h"

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- Ranks on nodes

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
              HasSubstr("-n 5: 2 nodes with ppr:2:node: room for 4 ranks"));
  const auto wrapped = PlaceRanks({{5, {}}}, {1, 1}, {.by = Mapping::By::kCount, .count = 2});
  EXPECT_THAT(*wrapped, ElementsAre(0, 0, 1, 1, 0));
}

TEST(PlacementTest, ProgramsShareSlotsAndKeepToTheirNodes) {
  EXPECT_THAT(Place({{1, {}}, {3, {}}}, {2, 2}, "slot"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Place({{2, {1}}, {3, {}}}, {2, 2}, "slot"), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(Place({{1, {}}, {2, {}}}, {2, 2}, "node"), ElementsAre(0, 1, 0));
  EXPECT_THAT(Place({{2, {}}, {2, {}}}, {1, 1}, "ppr:1:node"), ElementsAre(0, 1, 0, 1));
}

TEST(PlacementTest, RanksAreNumberedByNodesOrBySlots) {
  const auto ordered = [](const std::vector<PartPlace>& parts, const std::string& rule,
                          const std::string& order) {
    Mapping mapping = *ParseMapping(rule);
    EXPECT_TRUE(ParseOrder(order, &mapping).ok());
    return *PlaceRanks(parts, {2, 2}, mapping);
  };
  EXPECT_THAT(ordered({{4, {}}}, "slot", "node"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(ordered({{3, {}}}, "slot", "node"), ElementsAre(0, 1, 0));
  EXPECT_THAT(ordered({{3, {}}}, "node", "slot"), ElementsAre(0, 0, 1));
  EXPECT_THAT(ordered({{3, {}}}, "slot", "numa"), ElementsAre(0, 0, 1));
  // Each program for itself.
  EXPECT_THAT(ordered({{1, {}}, {3, {}}}, "slot", "node"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(ordered({{2, {}}, {2, {}}}, "node", "slot"), ElementsAre(0, 1, 0, 1));
}

TEST(PlacementTest, NoMoreRanksThanSlotsWhereThatIsAskedFor) {
  const Mapping mapping = *ParseMapping("slot:NOOVERSUBSCRIBE");
  EXPECT_TRUE(PlaceRanks({{4, {}}}, {1, 3}, mapping).ok());
  EXPECT_EQ(PlaceRanks({{5, {}}}, {1, 3}, mapping).status().message(),
            "-n 5: 2 nodes with nooversubscribe: room for 4 ranks");
  EXPECT_FALSE(PlaceRanks({{2, {}}, {3, {}}}, {1, 3}, mapping).ok());
}

TEST(MappingTest, ReadsTheUsualRules) {
  EXPECT_EQ(ParseMapping("NODE:OVERSUBSCRIBE")->by, Mapping::By::kNode);
  EXPECT_EQ(ParseMapping("socket")->by, Mapping::By::kSlot);
  EXPECT_EQ(ParseMapping("socket")->unit, Unit::kSocket);
  EXPECT_EQ(ParseMapping("package")->unit, Unit::kSocket);
  EXPECT_EQ(ParseMapping("L3cache")->unit, Unit::kCache);
  EXPECT_EQ(ParseMapping("ppr:2:l3cache")->per_unit, 2U);
  EXPECT_EQ(ParseMapping("slot")->unit, std::nullopt);
  EXPECT_EQ(ParseMapping("numa:PE=4")->width, 4U);
  EXPECT_EQ(ParseMapping("numa:pe=4,OVERSUBSCRIBE")->width, 4U);
  EXPECT_TRUE(ParseMapping(":HWTCPUS")->threads_are_cpus);
  EXPECT_FALSE(ParseMapping("core:NOOVERSUBSCRIBE")->oversubscribes);
  EXPECT_EQ(ParseMapping("ppr:12:node:oversubscribe")->count, 12U);
  const Mapping sockets = *ParseMapping("ppr:2:socket:PE=3");
  EXPECT_EQ(sockets.by, Mapping::By::kCount);
  EXPECT_EQ(sockets.unit, Unit::kSocket);
  EXPECT_EQ(sockets.per_unit, 2U);
  EXPECT_EQ(sockets.width, 3U);
  EXPECT_FALSE(sockets.wraps);
}

TEST(MappingTest, NamesWhatItDoesNotKnow) {
  const auto mistake = [](const char* rule) { return ParseMapping(rule).status().message(); };
  EXPECT_THAT(mistake("rack"), HasSubstr("--map-by rack: it knows slot"));
  EXPECT_THAT(mistake(""), HasSubstr("--map-by : it knows slot"));
  EXPECT_THAT(mistake("l2cache"), HasSubstr("ferryrun has no l2cache; say most cores"));
  EXPECT_THAT(mistake("seq:file=f"), HasSubstr("say slot with -host a,b,a"));
  EXPECT_THAT(mistake("pe-list=0,1"), HasSubstr("taskset -c LIST ferryrun"));
  EXPECT_THAT(mistake("ppr:x:node"), HasSubstr("'x' is no number"));
  EXPECT_THAT(mistake("ppr:0:node"), HasSubstr("'0' is no number"));
  EXPECT_THAT(mistake("ppr:2:rack"), HasSubstr("it knows ranks per node, socket"));
  EXPECT_THAT(mistake("ppr:2"), HasSubstr("as in ppr:2:socket"));
  EXPECT_THAT(mistake("ppr"), HasSubstr("'' is no number"));
  EXPECT_THAT(mistake("core:2"), HasSubstr("2 cores for each rank are --map-by slot:PE=2"));
  EXPECT_THAT(mistake("numa:SPAN"), HasSubstr("--map-by ppr:N:numa puts N on each"));
  EXPECT_THAT(mistake("slot:PE=0"), HasSubstr("'0' is no number of cores"));
  EXPECT_THAT(mistake("slot:PE=99999"), HasSubstr("'99999' is no number of cores"));
  EXPECT_THAT(mistake("slot:fast"), HasSubstr("'fast' is none of PE=N"));
  EXPECT_THAT(mistake("slot:nolocal"), HasSubstr("-hosts names the hosts"));
}

TEST(MappingTest, ReadsOrdersAndBindings) {
  Mapping mapping;
  EXPECT_TRUE(ParseOrder("NUMA", &mapping).ok());
  EXPECT_EQ(mapping.order, Mapping::Order::kUnit);
  EXPECT_EQ(mapping.order_unit, Unit::kNuma);
  EXPECT_TRUE(ParseOrder("fill", &mapping).ok());
  EXPECT_EQ(mapping.order, Mapping::Order::kFill);
  EXPECT_THAT(ParseOrder("span", &mapping).message(), HasSubstr("--rank-by numa"));
  EXPECT_THAT(ParseOrder("rack", &mapping).message(), HasSubstr("it knows slot, node, fill"));
  EXPECT_EQ(ParseBindTo("package")->name, "socket");
  EXPECT_EQ(ParseBindTo("core:2")->width, 2U);
  EXPECT_EQ(ParseBindTo("core:if-supported")->name, "core");
  EXPECT_EQ(ParseBindTo("machine")->name, "none");
  EXPECT_THAT(ParseBindTo("core:overload-allowed").status().message(), HasSubstr("--bind-to numa"));
  EXPECT_THAT(ParseBindTo("none:2").status().message(), HasSubstr("'2' is no number"));
  EXPECT_THAT(ParseBindTo("user:0,4").status().message(), HasSubstr("taskset -c 0 ./program"));
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
  EXPECT_THAT(local(9, 2).message(), HasSubstr("-n 9 on 2 nodes puts 5 ranks on one"));
  EXPECT_THAT(CheckCounts(11, 11, options).message(),
              HasSubstr("at most 10 ranks (raise it with --max_ranks)"));
  EXPECT_EQ(CheckCounts(2, 3, options).code(), ErrorCode::kInvalidArgument);
}

// ---- Nodes

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
  arguments.parts = {PartOf(40'000), PartOf(40'000)};
  EXPECT_THAT(Plan(arguments).status().message(), HasSubstr("at most 65536 ranks"));
  arguments.parts = {PartOf(100)};
  config::Options few;
  few.max_local_ranks = 64;
  EXPECT_THAT(Plan(arguments, few).status().message(), HasSubstr("puts 100 ranks on one"));
}

}  // namespace
}  // namespace ferry::tools
