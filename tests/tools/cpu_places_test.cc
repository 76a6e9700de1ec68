// Which CPUs each rank of a node is bound to.
#include "tools/ferryrun/cpu_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tools/ferryrun/placement_rules.h"

namespace ferry::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using topology::CpuSet;

// ---- A small machine

// Two sockets of two cores of two threads.
topology::Machine TwoSockets() {
  topology::Machine machine;
  machine.cores = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  machine.sockets = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  return machine;
}

constexpr std::initializer_list<uint32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

// Ranks whose programs say nothing of threads.
BindingRules RulesOf(Binding binding, size_t count) {
  return {.binding = binding, .threads = std::vector<uint64_t>(count, 0)};
}

RankPlaces Places(const UsableCpus& usable, Binding binding, size_t count) {
  const StatusOr<RankPlaces> places = BindRanks(TwoSockets(), usable, RulesOf(binding, count));
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
  EXPECT_THAT(
      BindRanks(TwoSockets(), {{0, 1, 2}, {}, 0}, RulesOf(Binding::kCore, 3)).status().message(),
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

// ---- Two sockets of four NUMA nodes of eight cores of two hardware threads

constexpr uint32_t kCores = 64;
constexpr uint32_t kCoresOfCache = 4;
constexpr uint32_t kCoresOfNode = 8;

// Both threads of `count` cores, which the kernel numbers as it does most machines' threads.
CpuSet Cores(uint32_t first, uint32_t count) {
  CpuSet cpus;
  for (uint32_t core = first; core < first + count; ++core) {
    cpus.Add(core);
    cpus.Add(core + kCores);
  }
  return cpus;
}
CpuSet Node(uint32_t node) { return Cores(node * kCoresOfNode, kCoresOfNode); }

topology::Machine MakeEightNodes() {
  topology::Machine machine;
  for (uint32_t core = 0; core < kCores; ++core) {
    machine.cores.push_back(Cores(core, 1));
  }
  for (uint32_t node = 0; node < kCores / kCoresOfNode; ++node) {
    machine.nodes.push_back({node, Node(node), 1});
  }
  machine.sockets = {Cores(0, 32), Cores(32, 32)};
  for (uint32_t core = 0; core < kCores; core += kCoresOfCache) {
    machine.caches.push_back(Cores(core, kCoresOfCache));
  }
  return machine;
}
const topology::Machine& EightNodes() {
  static const topology::Machine machine = MakeEightNodes();
  return machine;
}

// The rules of "--map-by numa --bind-to core" and the like.
StatusOr<BindingRules> RulesIn(const std::string& flags, const std::vector<uint64_t>& threads) {
  PlacementRules placement;
  std::istringstream words(flags);
  for (std::string flag, value; words >> flag >> value;) {
    const std::string both = flag + " " + value;
    FERRY_RETURN_IF_ERROR(flag == "--map-by"    ? placement.MapBy(both, value)
                          : flag == "--rank-by" ? placement.RankBy(both, value)
                                                : placement.BindTo(both, value));
  }
  FERRY_RETURN_IF_ERROR(placement.Settle());
  BindingRules rules{.binding = ParseBinding(placement.bind_to()),
                     .mapping = placement.mapping(),
                     .threads = threads};
  if (rules.mapping.per_unit > 0) {
    rules.mapping.count *= CountUnits(EightNodes(), *rules.mapping.unit, Cores(0, kCores));
  }
  return rules;
}

StatusOr<RankPlaces> TryToBind(const std::string& flags, const std::vector<uint64_t>& threads,
                               const UsableCpus& usable = {Cores(0, kCores), {}, 0}) {
  const StatusOr<BindingRules> rules = RulesIn(flags, threads);
  FERRY_RETURN_IF_ERROR(rules.status());
  return BindRanks(EightNodes(), usable, *rules);
}

std::vector<CpuSet> Bind(const std::string& flags, const std::vector<uint64_t>& threads) {
  const StatusOr<RankPlaces> places = TryToBind(flags, threads);
  EXPECT_TRUE(places.ok()) << flags << ": " << places.status().message();
  return places.ok() ? places->cpus : std::vector<CpuSet>();
}
std::vector<CpuSet> Bind(const std::string& flags, size_t ranks) {
  return Bind(flags, std::vector<uint64_t>(ranks, 0));
}
std::string Mistake(const std::string& flags, size_t ranks) {
  return TryToBind(flags, std::vector<uint64_t>(ranks, 0)).status().message();
}

TEST(EightNodesTest, RanksTakeCachesInTurn) {
  EXPECT_THAT(Bind("--bind-to l3cache", 17), AllOf(SizeIs(17), testing::Contains(Cores(60, 4))));
  EXPECT_EQ(Bind("--bind-to l3cache", 17)[16], Cores(0, 4));
  EXPECT_THAT(Bind("--map-by l3cache --bind-to core", 3),
              ElementsAre(Cores(0, 1), Cores(4, 1), Cores(8, 1)));
  EXPECT_THAT(Bind("--map-by ppr:2:l3cache --bind-to core", 3),
              ElementsAre(Cores(0, 1), Cores(1, 1), Cores(4, 1)));
  EXPECT_THAT(Bind("--map-by numa --bind-to l3cache", 9),
              AllOf(testing::Contains(Cores(8, 4)), testing::Contains(Cores(4, 4))));
}

TEST(BindingTest, WithoutKnownCachesNumaNodesAreTaken) {
  topology::Machine machine = TwoSockets();
  machine.nodes = {{0, {0, 1, 2, 3}, 1}, {1, {4, 5, 6, 7}, 1}};
  const auto places = BindRanks(machine, {kAll, {}, 0}, RulesOf(Binding::kCache, 2));
  ASSERT_TRUE(places.ok());
  EXPECT_THAT(places->cpus, ElementsAre(CpuSet{0, 1, 2, 3}, CpuSet{4, 5, 6, 7}));
  machine.caches = {{0, 1}, {4, 5, 6, 7}};  // two hardware threads have none
  EXPECT_THAT(BindRanks(machine, {kAll, {}, 0}, RulesOf(Binding::kCache, 3))->cpus,
              ElementsAre(CpuSet{0, 1}, CpuSet{4, 5, 6, 7}, CpuSet{2, 3}));
}

TEST(EightNodesTest, CoresOneAfterTheOther) {
  EXPECT_THAT(Bind("--bind-to core", 3), ElementsAre(Cores(0, 1), Cores(1, 1), Cores(2, 1)));
  EXPECT_THAT(Bind("--map-by core --bind-to core", 2), ElementsAre(Cores(0, 1), Cores(1, 1)));
  EXPECT_THAT(Bind("--map-by core", 2), ElementsAre(Cores(0, 1), Cores(1, 1)));
  EXPECT_THAT(Bind("--bind-to hwthread", 3), ElementsAre(CpuSet{0}, CpuSet{64}, CpuSet{1}));
}

TEST(EightNodesTest, UnitsInTurn) {
  EXPECT_THAT(Bind("--map-by socket --bind-to core", 4),
              ElementsAre(Cores(0, 1), Cores(32, 1), Cores(1, 1), Cores(33, 1)));
  EXPECT_THAT(Bind("--map-by numa --bind-to core", 9),
              ElementsAre(Cores(0, 1), Cores(8, 1), Cores(16, 1), Cores(24, 1), Cores(32, 1),
                          Cores(40, 1), Cores(48, 1), Cores(56, 1), Cores(1, 1)));
  EXPECT_THAT(Bind("--map-by socket --bind-to numa", 4),
              ElementsAre(Node(0), Node(4), Node(1), Node(5)));
  EXPECT_THAT(Bind("--map-by numa --bind-to socket", 5),
              ElementsAre(Cores(0, 32), Cores(0, 32), Cores(0, 32), Cores(0, 32), Cores(32, 32)));
  EXPECT_THAT(Bind("--map-by core --bind-to socket", 2), ElementsAre(Cores(0, 32), Cores(0, 32)));
  EXPECT_THAT(Bind("--map-by core --bind-to hwthread", 2), ElementsAre(CpuSet{0}, CpuSet{1}));
}

TEST(EightNodesTest, BoundToUnitsThatRanksTakeInTurn) {
  EXPECT_THAT(Bind("--bind-to socket", 3), ElementsAre(Cores(0, 32), Cores(32, 32), Cores(0, 32)));
  EXPECT_THAT(Bind("--bind-to numa", 2), ElementsAre(Node(0), Node(1)));
  EXPECT_THAT(Bind("--bind-to numa", 9)[8], Node(0));
  EXPECT_THAT(Bind("--bind-to numa:2", 5),
              ElementsAre(Cores(0, 16), Cores(16, 16), Cores(32, 16), Cores(48, 16), Cores(0, 16)));
}

TEST(EightNodesTest, SoManyCoresForEach) {
  EXPECT_THAT(Bind("--map-by slot:PE=4", 3), ElementsAre(Cores(0, 4), Cores(4, 4), Cores(8, 4)));
  EXPECT_THAT(Bind("--bind-to core:2", 2), ElementsAre(Cores(0, 2), Cores(2, 2)));
  EXPECT_THAT(Bind("--map-by numa:PE=2", 9)[8], Cores(2, 2));
  EXPECT_THAT(Bind("--map-by :PE=3 --bind-to hwthread", 2),
              ElementsAre(CpuSet{0, 64, 1}, CpuSet{65, 2, 66}));
  EXPECT_THAT(Bind("--map-by slot:PE=2:HWTCPUS", 2), ElementsAre(Cores(0, 1), Cores(1, 1)));
  // No rank crosses a NUMA node while there is room without that.
  EXPECT_THAT(Bind("--map-by slot:PE=5", 3), ElementsAre(Cores(0, 5), Cores(8, 5), Cores(16, 5)));
  EXPECT_THAT(Bind("--map-by slot:PE=5", 9)[1], Cores(5, 5));
  EXPECT_THAT(Bind("--map-by slot:PE=16", 4)[3], Cores(48, 16));
}

TEST(EightNodesTest, SoManyRanksForEachUnit) {
  EXPECT_THAT(Bind("--map-by ppr:2:socket --bind-to core", 4),
              ElementsAre(Cores(0, 1), Cores(1, 1), Cores(32, 1), Cores(33, 1)));
  EXPECT_THAT(Bind("--map-by ppr:2:socket", 4),
              ElementsAre(Cores(0, 16), Cores(16, 16), Cores(32, 16), Cores(48, 16)));
  EXPECT_THAT(Bind("--map-by ppr:1:numa:PE=4", 8)[7], Cores(56, 4));
  EXPECT_THAT(Bind("--map-by ppr:2:numa --bind-to numa", 3),
              ElementsAre(Node(0), Node(0), Node(1)));
  // A second program's ranks begin with the first unit again.
  EXPECT_THAT(Bind("--map-by ppr:1:socket --bind-to core", 4)[2], Cores(1, 1));
}

TEST(EightNodesTest, ByItselfAShareOfItsUnit) {
  EXPECT_THAT(Bind("--map-by numa", 2), ElementsAre(Node(0), Node(1)));
  EXPECT_THAT(Bind("--map-by socket", 4),
              ElementsAre(Cores(0, 16), Cores(32, 16), Cores(16, 16), Cores(48, 16)));
  EXPECT_THAT(Bind("", 16)[1], Cores(4, 4));
}

TEST(EightNodesTest, RanksAreNumberedByUnits) {
  EXPECT_THAT(Bind("--map-by core --bind-to core --rank-by numa", 16)[1], Cores(8, 1));
  EXPECT_THAT(Bind("--map-by ppr:2:socket --bind-to core --rank-by socket", 4),
              ElementsAre(Cores(0, 1), Cores(32, 1), Cores(1, 1), Cores(33, 1)));
  EXPECT_THAT(Bind("--map-by socket --bind-to core --rank-by fill", 4),
              ElementsAre(Cores(0, 1), Cores(1, 1), Cores(32, 1), Cores(33, 1)));
  EXPECT_THAT(Bind("--map-by socket --bind-to core --rank-by core", 4),
              ElementsAre(Cores(0, 1), Cores(1, 1), Cores(32, 1), Cores(33, 1)));
  EXPECT_THAT(Bind("--bind-to hwthread --rank-by core", 4),
              ElementsAre(CpuSet{0}, CpuSet{1}, CpuSet{64}, CpuSet{65}));
  // Other nodes' business.
  EXPECT_EQ(Bind("--bind-to core --rank-by node", 4), Bind("--bind-to core", 4));
}

TEST(EightNodesTest, WhatDoesNotFitIsNamed) {
  EXPECT_EQ(Mistake("--bind-to core", 65),
            "--bind-to core: 65 ranks here, but 64 cores (use --bind-to none, or fewer ranks)");
  EXPECT_EQ(Mistake("--map-by slot:PE=16", 5),
            "--bind-to core: 5 ranks here with 16 cores each (PE), but 64 cores (use --bind-to "
            "none, or fewer ranks or cores for each)");
  EXPECT_THAT(Mistake("--map-by numa:PE=9", 1), HasSubstr("but 64 cores on 8 NUMA nodes ("));
  EXPECT_THAT(Mistake("--map-by ppr:9:numa --bind-to core", 72),
              HasSubstr("72 ranks here, but 64"));
  EXPECT_THAT(Mistake("--map-by :NOOVERSUBSCRIBE", 65),
              HasSubstr("--nooversubscribe: 65 ranks, but 64 cores"));
}

TEST(EightNodesTest, OtherUnitsThanPprCountedAreNamed) {
  StatusOr<BindingRules> rules = RulesIn("--map-by ppr:2:socket", {0, 0});
  ASSERT_TRUE(rules.ok());
  for (const Binding binding : {Binding::kAuto, Binding::kCore, Binding::kNone}) {
    rules->binding = binding;
    const auto bound = BindRanks(EightNodes(), {Cores(0, 32), {}, 0}, *rules);
    EXPECT_EQ(bound.status().message(),
              "--map-by ppr:2:socket: there is room on 1 socket here, and on 2 where ferryrun was "
              "called; ppr:N:node puts N on each node");
  }
}

// ---- OpenMP

TEST(OpenMpTest, ReadsNumbersOfThreads) {
  EXPECT_EQ(OpenMpThreads("4"), 4U);
  EXPECT_EQ(OpenMpThreads(" 4 "), 4U);
  EXPECT_EQ(OpenMpThreads("4,2"), 8U);  // two in each of four
  EXPECT_EQ(OpenMpThreads("3, 2,1"), 6U);
  for (const char* value : {"", "0", "-1", "four", "4,", "4x", "99999", "99999999999999999999",
                            "8192,8192,8192,8192,8192"}) {
    EXPECT_EQ(OpenMpThreads(value), 0U) << value;
  }
}

TEST(OpenMpTest, ARankHasAsManyCoresAsThreads) {
  // At the beginning of the share that it would have.
  EXPECT_THAT(Bind("", std::vector<uint64_t>{4, 4}), ElementsAre(Cores(0, 4), Cores(32, 4)));
  EXPECT_THAT(Bind("", std::vector<uint64_t>(16, 3))[1], Cores(4, 3));
  EXPECT_THAT(Bind("", std::vector<uint64_t>{1}), ElementsAre(Cores(0, 1)));
  EXPECT_THAT(Bind("--map-by numa", std::vector<uint64_t>{2, 2}),
              ElementsAre(Cores(0, 2), Cores(8, 2)));
}

TEST(OpenMpTest, WithoutRoomSharesAreEqual) {
  EXPECT_EQ(Bind("", std::vector<uint64_t>(16, 5)), Bind("", 16));
  EXPECT_THAT(Bind("", std::vector<uint64_t>{128}), ElementsAre(Cores(0, 64)));
}

TEST(OpenMpTest, ProgramsWithOtherNumbersHaveOtherShares) {
  // One of 24 threads, which no NUMA node holds, and eight of 4.
  std::vector<uint64_t> threads(9, 4);
  threads[0] = 24;
  const std::vector<CpuSet> cpus = Bind("", threads);
  ASSERT_THAT(cpus, SizeIs(9));
  EXPECT_EQ(cpus[0].size(), 2 * 24U);
  for (size_t rank = 1; rank < 9; ++rank) {
    EXPECT_EQ(cpus[rank].size(), 2 * 4U);
    EXPECT_FALSE(cpus[rank].Intersects(cpus[0]));
  }
  // One that does not say shares what the other leaves.
  EXPECT_GT(Bind("", std::vector<uint64_t>{8, 0})[1].size(), 2 * 8U);
}

TEST(OpenMpTest, WhoAsksForCoresGetsThese) {
  EXPECT_THAT(Bind("--bind-to core", std::vector<uint64_t>{4}), ElementsAre(Cores(0, 1)));
  EXPECT_THAT(Bind("--map-by slot:PE=2", std::vector<uint64_t>{4}), ElementsAre(Cores(0, 2)));
  EXPECT_THAT(Bind("--bind-to none", std::vector<uint64_t>{4}), IsEmpty());
}

// ---- All together

struct Rule {
  const char* words;
  std::optional<Unit> unit;
};

// Every binding with every rule and order, for many numbers of ranks: whoever has cores of his own
// shares them with no rank, is where his unit is, and an order moves ranks only.
class EveryCombinationTest : public testing::TestWithParam<Rule> {};

bool Overlap(const std::vector<CpuSet>& cpus) {
  CpuSet all;
  uint32_t count = 0;
  for (const CpuSet& one : cpus) {
    all.Add(one);
    count += one.size();
  }
  return all.size() < count;
}

TEST_P(EveryCombinationTest, KeepsItsPromises) {
  const topology::Machine& machine = EightNodes();
  for (const char* bind : {"auto", "core", "hwthread", "l3cache", "numa", "socket", "core:2"}) {
    for (const size_t ranks : {1, 2, 3, 7, 8, 16, 32}) {
      const std::string flags = std::string(GetParam().words) + " --bind-to " + bind;
      const std::vector<CpuSet> plain = Bind(flags, ranks);
      ASSERT_THAT(plain, SizeIs(ranks)) << flags;
      const std::string_view unit = bind;
      const bool shared = unit == "l3cache" || unit == "numa" || unit == "socket";
      EXPECT_TRUE(shared || !Overlap(plain)) << flags << " " << ranks;
      if (GetParam().unit == Unit::kSocket) {
        for (size_t rank = 0; rank < ranks; ++rank) {
          EXPECT_TRUE(machine.sockets[rank % 2].Contains(plain[rank])) << flags << " " << rank;
        }
      } else if (GetParam().unit == Unit::kNuma) {
        for (size_t rank = 0; rank < ranks; ++rank) {
          EXPECT_TRUE(machine.nodes[rank % 8].cpus.Intersects(plain[rank])) << flags << " " << rank;
        }
      }
      if (GetParam().unit == Unit::kCache) {
        for (size_t rank = 0; rank < ranks; ++rank) {
          EXPECT_TRUE(machine.caches[rank % 16].Intersects(plain[rank])) << flags << " " << rank;
        }
      }
      for (const char* order :
           {"slot", "node", "fill", "socket", "numa", "l3cache", "core", "hwthread"}) {
        std::vector<CpuSet> ordered = Bind(flags + " --rank-by " + order, ranks);
        EXPECT_TRUE(std::is_permutation(plain.begin(), plain.end(), ordered.begin(), ordered.end()))
            << flags << " " << order << " " << ranks;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryCombinationTest,
    testing::Values(Rule{"", {}}, Rule{"--map-by slot", {}}, Rule{"--map-by node", {}},
                    Rule{"--map-by core", Unit::kCore}, Rule{"--map-by hwthread", Unit::kThread},
                    Rule{"--map-by numa", Unit::kNuma}, Rule{"--map-by l3cache", Unit::kCache},
                    Rule{"--map-by socket", Unit::kSocket}));

// ---- Pictures

TEST(PictureTest, ShowsSocketsNodesCoresAndThreads) {
  EXPECT_EQ(PictureOf(TwoSockets(), kAll, {0, 1}), "[BB/..][../..]");
  EXPECT_EQ(PictureOf(TwoSockets(), {0, 1, 2, 4, 5}, {2, 4}), "[../B-][B./--]");
  topology::Machine machine = TwoSockets();
  machine.nodes = {{0, {0, 1}, 1}, {1, {2, 3}, 1}, {2, {4, 5, 6, 7}, 1}};
  EXPECT_EQ(PictureOf(machine, kAll, {4, 5, 6, 7}), "[..|..][BB/BB]");
  EXPECT_EQ(PictureOf(EightNodes(), Cores(0, 64), Cores(8, 1)).substr(0, 34),
            "[../../../../../../../..|BB/../../");
}

}  // namespace
}  // namespace ferry::tools
