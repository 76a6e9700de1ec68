#include "tools/ferrysim/topology.h"

#include <gtest/gtest.h>

namespace ferry::sim {
namespace {

// Groups of 4 switches with 2 nodes each.
constexpr Topology kDragonfly = {.kind = TopologyKind::kDragonfly,
                                 .nodes_per_switch = 2,
                                 .switches_per_group = 4,
                                 .links_between = 1};

TEST(TopologyTest, DragonflyCountsSwitchesInsideAGroup) {
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 0).switches, 1U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 1).switches, 1U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 2).switches, 2U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 7).switches, 2U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 7).link, kNoLink);
}

TEST(TopologyTest, DragonflyGoesThroughTheGateways) {
  // Group 0's link to group 1 is at its switch 1 (nodes 2, 3), and group 1's to group 0 at switch 0
  // of that group (nodes 8, 9).
  EXPECT_EQ(RouteBetween(kDragonfly, 2, 8).switches, 2U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 8).switches, 3U);
  EXPECT_EQ(RouteBetween(kDragonfly, 2, 10).switches, 3U);
  EXPECT_EQ(RouteBetween(kDragonfly, 0, 10).switches, 4U);
}

TEST(TopologyTest, DragonflySharesALinkPerPairOfGroupsAndDirection) {
  const uint64_t there = RouteBetween(kDragonfly, 0, 8).link;
  EXPECT_NE(there, kNoLink);
  EXPECT_EQ(there, RouteBetween(kDragonfly, 7, 15).link);
  EXPECT_NE(there, RouteBetween(kDragonfly, 8, 0).link);
  EXPECT_NE(there, RouteBetween(kDragonfly, 0, 16).link);
}

TEST(TopologyTest, FatTreeClimbsAsFarAsItMust) {
  Topology tree = kDragonfly;
  tree.kind = TopologyKind::kFatTree;
  EXPECT_EQ(RouteBetween(tree, 0, 1).switches, 1U);
  EXPECT_EQ(RouteBetween(tree, 0, 2).switches, 3U);
  EXPECT_EQ(RouteBetween(tree, 0, 8).switches, 5U);
  EXPECT_EQ(RouteBetween(tree, 0, 2).link, RouteBetween(tree, 1, 9).link);
  EXPECT_NE(RouteBetween(tree, 0, 2).link, RouteBetween(tree, 2, 0).link);
}

TEST(TopologyTest, RefusesZeros) {
  EXPECT_TRUE(CheckTopology(kDragonfly).ok());
  Topology topology = kDragonfly;
  topology.switches_per_group = 0;
  EXPECT_EQ(CheckTopology(topology).message(),
            "switches per group is 0: there must be one at least");
}

}  // namespace
}  // namespace ferry::sim
