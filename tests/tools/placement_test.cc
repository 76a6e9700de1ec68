// Which node each rank lives on, and which CPUs it is bound to.
#include "tools/ferryrun/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ferryrun/node_plan.h"

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::CpuSet;

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

// ---- CPUs

// Two sockets of two cores of two threads.
topology::Machine TwoSockets() {
  topology::Machine machine;
  machine.cores = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  machine.sockets = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  return machine;
}

constexpr std::initializer_list<uint32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

RankPlaces Places(const UsableCpus& usable, Binding binding, uint64_t count) {
  const StatusOr<RankPlaces> places = BindRanks(TwoSockets(), usable, binding, count);
  EXPECT_TRUE(places.ok()) << places.status().message();
  return *places;
}

TEST(BindingTest, NoneBindsNothing) {
  EXPECT_THAT(Places({kAll, {}, 0}, Binding::kNone, 100).cpus, IsEmpty());
}

TEST(BindingTest, EachRankHasACoreOfItsOwn) {
  EXPECT_THAT(Places({kAll, {}, 0}, Binding::kCore, 3).cpus,
              ElementsAre(CpuSet{0, 1}, CpuSet{2, 3}, CpuSet{4, 5}));
}

TEST(BindingTest, OnlyWhatMayBeUsedIs) {
  EXPECT_THAT(Places({{1, 4, 5}, {}, 0}, Binding::kCore, 2).cpus,
              ElementsAre(CpuSet{1}, CpuSet{4, 5}));
  EXPECT_THAT(Places({{6}, {}, 0}, Binding::kSocket, 2).cpus, ElementsAre(CpuSet{6}, CpuSet{6}));
}

TEST(BindingTest, RanksTakeSocketsInTurn) {
  EXPECT_THAT(Places({kAll, {}, 0}, Binding::kSocket, 3).cpus,
              ElementsAre(CpuSet{0, 1, 2, 3}, CpuSet{4, 5, 6, 7}, CpuSet{0, 1, 2, 3}));
}

TEST(BindingTest, TooFewCoresAreRefused) {
  EXPECT_THAT(BindRanks(TwoSockets(), {{0, 1, 2}, {}, 0}, Binding::kCore, 3).status().message(),
              HasSubstr("--bind-to core: 3 ranks here, but 2 cores"));
}

TEST(BindingTest, ByItselfEachRankHasAnEqualShare) {
  const RankPlaces places = Places({kAll, {}, 0}, Binding::kAuto, 2);
  EXPECT_THAT(places.cpus, ElementsAre(CpuSet{0, 1, 2, 3}, CpuSet{4, 5, 6, 7}));
  EXPECT_EQ(places.claimed, CpuSet(kAll));
  EXPECT_THAT(Places({kAll, {}, 0}, Binding::kAuto, 4).cpus,
              ElementsAre(CpuSet{0, 1}, CpuSet{2, 3}, CpuSet{4, 5}, CpuSet{6, 7}));
}

TEST(BindingTest, ByItselfNobodyIsBoundWhereRanksOutnumberCores) {
  const RankPlaces places = Places({kAll, {}, 0}, Binding::kAuto, 5);
  EXPECT_THAT(places.cpus, IsEmpty());
  EXPECT_TRUE(places.claimed.empty());
  EXPECT_EQ(places.why_not, "5 ranks, but 4 cores");
  EXPECT_EQ(Places({{3}, {}, 0}, Binding::kAuto, 2).why_not, "2 ranks, but 1 core");
}

TEST(BindingTest, DaemonsThatWorkAreLeftACoreEach) {
  EXPECT_THAT(Places({kAll, {}, 2}, Binding::kAuto, 2).cpus,
              ElementsAre(CpuSet{0, 1}, CpuSet{4, 5}));
  EXPECT_EQ(Places({kAll, {}, 2}, Binding::kAuto, 3).why_not, "3 ranks and 2 daemons, but 4 cores");
}

TEST(BindingTest, ACoreOfWhichAnotherJobHasAThreadIsNotFree) {
  const UsableCpus usable = {kAll, {1, 2}, 0};
  EXPECT_THAT(Places(usable, Binding::kAuto, 2).cpus, ElementsAre(CpuSet{4, 5}, CpuSet{6, 7}));
  EXPECT_THAT(Places(usable, Binding::kCore, 1).cpus, ElementsAre(CpuSet{4, 5}));
  const RankPlaces places = Places(usable, Binding::kAuto, 3);
  EXPECT_THAT(places.cpus, IsEmpty());
  EXPECT_EQ(places.why_not, "other jobs have 2 of its 4 cores");
}

TEST(BindingTest, WhoAsksForCoresSharesThemWithOtherJobsIfNeedBe) {
  const RankPlaces places = Places({kAll, {0}, 0}, Binding::kCore, 4);
  EXPECT_THAT(places.cpus, ElementsAre(CpuSet{0, 1}, CpuSet{2, 3}, CpuSet{4, 5}, CpuSet{6, 7}));
  EXPECT_EQ(places.claimed, (CpuSet{2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace ferry::tools
