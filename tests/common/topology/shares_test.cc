#include "common/topology/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

CpuSet Range(uint32_t first, uint32_t count) {
  CpuSet cpus;
  for (uint32_t cpu = first; cpu < first + count; ++cpu) {
    cpus.Add(cpu);
  }
  return cpus;
}

// NUMA nodes, and as many sockets, of cores of one thread each.
Machine Nodes(uint32_t nodes, uint32_t cores) {
  Machine machine;
  for (uint32_t node = 0; node < nodes; ++node) {
    machine.nodes.push_back({node, Range(node * cores, cores), 1});
    machine.sockets.push_back(Range(node * cores, cores));
  }
  for (uint32_t core = 0; core < nodes * cores; ++core) {
    machine.cores.push_back({core});
  }
  return machine;
}

std::vector<CpuSet> Share(const Machine& machine, const CpuSet& free, size_t ranks) {
  return ShareCores(machine, free, ranks, {});
}

TEST(SharesTest, ACoreForEachRankWhereThereAreAsMany) {
  EXPECT_THAT(Share(Nodes(1, 3), Range(0, 3), 3), ElementsAre(CpuSet{0}, CpuSet{1}, CpuSet{2}));
}

TEST(SharesTest, AllCoresWhereThatComesOutEven) {
  EXPECT_THAT(Share(Nodes(1, 8), Range(0, 8), 2), ElementsAre(Range(0, 4), Range(4, 4)));
  EXPECT_THAT(Share(Nodes(1, 8), Range(0, 8), 1), ElementsAre(Range(0, 8)));
  EXPECT_THAT(Share(Nodes(1, 8), Range(0, 8), 3),
              ElementsAre(Range(0, 2), Range(2, 2), Range(4, 2)));
}

TEST(SharesTest, CoresAreWhole) {
  Machine machine;
  machine.cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  machine.sockets = {Range(0, 8)};
  EXPECT_THAT(Share(machine, Range(0, 8), 2), ElementsAre(CpuSet{0, 1, 4, 5}, CpuSet{2, 3, 6, 7}));
  EXPECT_THAT(Share(machine, {0, 1, 5}, 2), ElementsAre(CpuSet{0}, CpuSet{1, 5}));
}

TEST(SharesTest, NobodyHasAnyWhereRanksOutnumberCores) {
  EXPECT_THAT(Share(Nodes(2, 2), Range(0, 4), 5), IsEmpty());
  EXPECT_THAT(Share(Nodes(2, 2), {}, 1), IsEmpty());
  EXPECT_THAT(Share(Machine(), Range(0, 4), 1), IsEmpty());
}

TEST(SharesTest, NoShareCrossesNodesIfThatCostsLittle) {
  EXPECT_THAT(Share(Nodes(2, 4), Range(0, 8), 2), ElementsAre(Range(0, 4), Range(4, 4)));
  // Of two each, none is left over where a third rank would have to cross.
  EXPECT_THAT(Share(Nodes(2, 4), Range(0, 8), 3),
              ElementsAre(Range(0, 2), Range(2, 2), Range(4, 2)));
  EXPECT_THAT(Share(Nodes(2, 32), Range(0, 64), 3),
              ElementsAre(Range(0, 16), Range(16, 16), Range(32, 16)));
}

TEST(SharesTest, AShareCrossesNodesWhereItWouldLoseMuch) {
  EXPECT_THAT(Share(Nodes(2, 4), Range(0, 8), 1), ElementsAre(Range(0, 8)));
  EXPECT_THAT(Share(Nodes(8, 8), Range(0, 64), 3),
              ElementsAre(Range(0, 21), Range(21, 21), Range(42, 21)));
}

TEST(SharesTest, RanksSpreadOverNodes) {
  EXPECT_THAT(Share(Nodes(2, 3), Range(0, 6), 4),
              ElementsAre(CpuSet{0}, CpuSet{1}, CpuSet{3}, CpuSet{4}));
}

TEST(SharesTest, WhatIsTakenIsLeftOut) {
  EXPECT_THAT(Share(Nodes(2, 4), Range(3, 5), 2), ElementsAre(Range(4, 2), Range(6, 2)));
  EXPECT_THAT(Share(Nodes(2, 4), Range(3, 5), 5),
              ElementsAre(CpuSet{3}, CpuSet{4}, CpuSet{5}, CpuSet{6}, CpuSet{7}));
}

TEST(SharesTest, SocketsCountWhereAllMemoryIsOneNode) {
  Machine machine = Nodes(2, 4);
  machine.nodes = {{0, Range(0, 8), 1}};
  EXPECT_THAT(Share(machine, Range(0, 7), 2), ElementsAre(Range(0, 3), Range(4, 3)));
}

Device Gpu(std::vector<std::string> names, const CpuSet& cpus, uint32_t node) {
  return {DeviceKind::kGpu, "", std::move(names), cpus, node, {}};
}

TEST(SharesTest, EachRankIsNearItsGpu) {
  Machine machine = Nodes(2, 4);
  machine.devices = {Gpu({"card0"}, Range(0, 4), 0),  // the management controller's
                     Gpu({"card1", "renderD128"}, Range(4, 4), 1), Gpu({}, Range(0, 4), 0)};
  const std::vector<CpuSet> near = CpusNearGpus(machine, 4);
  EXPECT_THAT(near, ElementsAre(Range(4, 4), Range(0, 4), Range(4, 4), Range(0, 4)));
  EXPECT_THAT(ShareCores(machine, Range(0, 8), 4, near),
              ElementsAre(Range(4, 2), Range(0, 2), Range(6, 2), Range(2, 2)));
  EXPECT_THAT(CpusNearGpus(Nodes(2, 4), 4), IsEmpty());
}

std::vector<CpuSet> ShareAsWanted(const Machine& machine, std::vector<uint64_t> wanted,
                                  std::span<const CpuSet> near = {}, size_t spare = 0) {
  CpuSet free;
  for (const CpuSet& core : machine.cores) {
    free.Add(core);
  }
  return ShareCores(machine, free, wanted.size(), near, spare, wanted);
}

TEST(SharesTest, ARankHasWhatItWantsOfItsShare) {
  EXPECT_THAT(ShareAsWanted(Nodes(2, 8), {2, 2, 2}),
              ElementsAre(Range(0, 2), Range(4, 2), Range(8, 2)));
  EXPECT_THAT(ShareAsWanted(Nodes(8, 8), {4, 4}), ElementsAre(Range(0, 4), Range(32, 4)));
  // The second rank's share begins with three cores of a node.
  EXPECT_THAT(ShareAsWanted(Nodes(8, 8), {2, 2, 2})[1], Range(21, 2));
  EXPECT_THAT(ShareAsWanted(Nodes(8, 8), {4, 4, 4})[1], Range(24, 4));
}

TEST(SharesTest, WhatIsWantedIsSharedOutWhereThereIsEnough) {
  EXPECT_THAT(ShareAsWanted(Nodes(1, 8), {5, 1, 2}),
              ElementsAre(Range(0, 5), Range(5, 1), Range(6, 2)));
  // One that does not say has what is left.
  EXPECT_THAT(ShareAsWanted(Nodes(1, 8), {5, 0}), ElementsAre(Range(0, 5), Range(6, 2)));
  EXPECT_THAT(ShareAsWanted(Nodes(1, 8), {5, 4}), ElementsAre(Range(0, 4), Range(4, 4)));
  EXPECT_THAT(ShareAsWanted(Nodes(1, 8), {UINT64_MAX, UINT64_MAX}),
              ElementsAre(Range(0, 4), Range(4, 4)));
  EXPECT_THAT(ShareAsWanted(Nodes(1, 8), {4, 4}, {}, 1), ElementsAre(Range(0, 3), Range(3, 3)));
  EXPECT_THAT(ShareAsWanted(Nodes(2, 4), {6, 2}), ElementsAre(Range(0, 6), Range(6, 2)));
}

TEST(SharesTest, WhoWantsFewCoresHasThemNearItsGpu) {
  const std::vector<CpuSet> near = {Range(56, 8), Range(0, 8)};
  EXPECT_THAT(ShareAsWanted(Nodes(8, 8), {4, 4}, near), ElementsAre(Range(56, 4), Range(0, 4)));
}

TEST(SharesTest, WhoFindsNoRoomNearItsGpuGoesElsewhere) {
  const Machine machine = Nodes(2, 2);
  const std::vector<CpuSet> near(3, Range(2, 2));
  EXPECT_THAT(ShareCores(machine, Range(0, 4), 3, near),
              ElementsAre(CpuSet{2}, CpuSet{3}, CpuSet{0}));
}

}  // namespace
}  // namespace ferry::topology
