// The network that is simulated.
#include "tools/ferrysim/network.h"

#include <gtest/gtest.h>

#include <vector>

#include "tools/ferrysim/halo_program.h"
#include "tools/ferrysim/machine.h"
#include "tools/ferrysim/time.h"

namespace ferry::sim {
namespace {

// ---- LogGP

// 25 GB/s, a message each 5 ns.
constexpr LogGp kNic = {.latency = 700 * kNanosecond,
                        .overhead = 300 * kNanosecond,
                        .gap = 5 * kNanosecond,
                        .gap_per_byte_ps = 40};

TEST(LogGpTest, ShortMessagesTakeTheGap) {
  EXPECT_EQ(kNic.Occupancy(0), 5000U);
  EXPECT_EQ(kNic.Occupancy(8), 5000U);
  EXPECT_EQ(kNic.Occupancy(125), 5000U);
  EXPECT_EQ(kNic.Occupancy(126), 5040U);
}

TEST(LogGpTest, LongMessagesTakeTheirBytes) {
  EXPECT_EQ(kNic.Occupancy(8192), 327680U);  // 0.33 us
  EXPECT_EQ(kNic.Occupancy(uint64_t{1} << 30), 42949672960U);
}

TEST(LogGpTest, OneWayIsLatencySwitchesAndBytes) {
  EXPECT_EQ(kNic.OneWay(8, 700 * kNanosecond), 1405 * kNanosecond);
  EXPECT_EQ(kNic.OneWay(1'000'000, 0), 700 * kNanosecond + 40 * kMicrosecond);
}

TEST(TimeTest, ConvertsMicroseconds) {
  EXPECT_EQ(FromMicroseconds(1.5), 1'500'000U);
  EXPECT_DOUBLE_EQ(ToMicroseconds(1'500'000), 1.5);
}

TEST(FifoServerTest, ServesOneAfterTheOther) {
  FifoServer server;
  EXPECT_EQ(server.Reserve(10, 5), 10U);
  EXPECT_EQ(server.Reserve(11, 5), 15U);
  EXPECT_EQ(server.Reserve(30, 5), 30U);
  server.HoldUntil(50);
  EXPECT_EQ(server.Reserve(31, 1), 50U);
  EXPECT_EQ(server.busy(), 16U);
}

// ---- Topologies

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

// ---- Grids of ranks

TEST(GridTest, IsAsSquareAsCanBe) {
  for (const auto& [ranks, rows, columns] :
       {std::tuple{1U, 1U, 1U}, {8U, 2U, 4U}, {64U, 8U, 8U}, {7U, 1U, 7U}, {8192U, 64U, 128U}}) {
    const Grid grid = GridOf(ranks);
    EXPECT_EQ(grid.rows, rows);
    EXPECT_EQ(grid.columns, columns);
  }
}

TEST(GridTest, EightNeighboursAround) {
  const auto around = NeighboursOf({.rows = 3, .columns = 4}, 5, 12, 8);
  const uint32_t ranks[] = {0, 1, 2, 4, 6, 8, 9, 10};
  for (uint32_t d = 0; d < kDirections; ++d) {
    EXPECT_EQ(around[d].rank, ranks[d]);
  }
  EXPECT_EQ(around[0].bytes, 8U);   // a corner
  EXPECT_EQ(around[1].bytes, 24U);  // 3 cells wide
  EXPECT_EQ(around[3].bytes, 32U);  // 4 cells high
}

// A rank sends in one direction, and the other rank receives from the opposite one, also if both
// are the same rank.
TEST(GridTest, NeighboursAgree) {
  for (const uint32_t ranks : {1U, 2U, 4U, 6U, 12U, 64U}) {
    const Grid grid = GridOf(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto own = NeighboursOf(grid, rank, 100, 8);
      for (uint32_t d = 0; d < kDirections; ++d) {
        const auto theirs = NeighboursOf(grid, own[d].rank, 100, 8);
        EXPECT_EQ(theirs[own[d].direction].rank, rank);
        EXPECT_EQ(theirs[own[d].direction].bytes, own[d].bytes);
      }
    }
  }
}

TEST(GridTest, BlocksAndEdges) {
  EXPECT_DOUBLE_EQ(CellsOf({.rows = 2, .columns = 4}, 16), 32.0);
  EXPECT_DOUBLE_EQ(MeanEdgeBytes(1024, 16384, 8), 4096.0);
}

// ---- Networks

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    machine_.ranks_per_node = machine_.nics_per_node = 1;
    machine_.topology = {.nodes_per_switch = 2, .switches_per_group = 2, .links_between = 2};
    machine_.switch_latency = 100 * kNanosecond;
    machine_.nic = {.latency = 1000 * kNanosecond,
                    .overhead = 0,
                    .gap = 10 * kNanosecond,
                    .gap_per_byte_ps = 1000};
  }

  // When the last byte of each message (from, to, bytes), all sent at 0, is there.
  struct Message {
    uint32_t from;
    uint32_t to;
    uint64_t bytes;
  };
  std::vector<Time> Send(const std::vector<Message>& messages) {
    Network network(&machine_, &queue_, 16);
    arrived_.assign(messages.size(), 0);
    for (size_t i = 0; i < messages.size(); ++i) {
      network.Send(messages[i].from, messages[i].to, messages[i].bytes,
                   {[](void* self, uint64_t which, uint64_t) {
                      auto& test = *static_cast<NetworkTest*>(self);
                      test.arrived_[which] = test.queue_.now() / kNanosecond;
                    },
                    this, i, 0});
    }
    queue_.Run();
    EXPECT_EQ(network.sent(), messages.size());
    EXPECT_EQ(network.delivered(), messages.size());
    return arrived_;
  }

  Machine machine_;
  EventQueue queue_;
  std::vector<Time> arrived_;
};

using Times = std::vector<Time>;

TEST_F(NetworkTest, OneMessageTakesLatencySwitchAndBytes) {
  EXPECT_EQ(Send({{0, 1, 500}}), (Times{1000 + 100 + 500}));
}

TEST_F(NetworkTest, ShortMessagesTakeTheGap) {
  EXPECT_EQ(Send({{0, 1, 1}, {0, 1, 1}}), (Times{1110, 1120}));
}

TEST_F(NetworkTest, ASenderSendsOneAfterTheOther) {
  EXPECT_EQ(Send({{0, 1, 500}, {0, 2, 300}}), (Times{1600, 500 + 1000 + 200 + 300}));
}

TEST_F(NetworkTest, AReceiverTakesOneAfterTheOther) {
  EXPECT_EQ(Send({{0, 1, 500}, {1, 1, 300}}), (Times{1600, 1600 + 300}));
}

TEST_F(NetworkTest, ThoseInOppositeDirectionsDoNotMeet) {
  EXPECT_EQ(Send({{0, 1, 500}, {1, 0, 500}}), (Times{1600, 1600}));
}

// Two links from group 0 to group 1: each message holds them for half its own time.
TEST_F(NetworkTest, GroupsShareTheirLinks) {
  // Nodes 2 and 3 are at the gateway to group 1, whose own gateway has nodes 4 and 5.
  EXPECT_EQ(Send({{2, 4, 500}, {3, 5, 500}}), (Times{1700, 1700 + 250}));
}

TEST_F(NetworkTest, AtomicsTakeTurnsInTheirNic) {
  Network network(&machine_, &queue_, 1);
  machine_.atomic_latency = 600 * kNanosecond;
  std::vector<Time> done;
  struct Seen {
    EventQueue* queue;
    std::vector<Time> times;
  } seen{&queue_, {}};
  for (int i = 0; i < 2; ++i) {
    network.Atomic(0, {[](void* self, uint64_t, uint64_t) {
                         auto& s = *static_cast<Seen*>(self);
                         s.times.push_back(s.queue->now() / kNanosecond);
                       },
                       &seen, 0, 0});
  }
  queue_.Run();
  EXPECT_EQ(seen.times, (Times{610, 620}));
}

TEST(MachineTest, RefusesWhatCannotBe) {
  Machine machine;
  EXPECT_TRUE(CheckMachine(machine).ok());
  machine.ranks_per_node = 6;
  EXPECT_EQ(CheckMachine(machine).message(), "6 ranks of a node cannot share 4 NICs evenly");
  machine.ranks_per_node = 3;
  EXPECT_EQ(CheckMachine(machine).message(),
            "4 NICs cannot be dealt out to 3 ranks of a node evenly");
  machine.ranks_per_node = 0;
  EXPECT_EQ(CheckMachine(machine).message(),
            "a node has 0 ranks and 4 NICs: each must be at least 1");
  machine.ranks_per_node = 2;
  EXPECT_TRUE(CheckMachine(machine).ok());
  machine.nic.gap = 0;
  EXPECT_EQ(CheckMachine(machine).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::sim
