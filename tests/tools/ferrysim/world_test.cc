#include "tools/ferrysim/world.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ferry::sim {
namespace {

using engine::kNoCounter;
using engine::Operation;
using engine::OperationKind;
using engine::Placement;

class WorldTest : public testing::Test, public Driver {
 protected:
  WorldTest() {
    machine_.ranks_per_node = machine_.nics_per_node = 1;
    machine_.topology.nodes_per_switch = 1;  // two switches between nodes
  }

  void OnProgress(uint32_t rank) override {
    if (rank == watched_rank_ && world_->Value(rank, 0) > seen_) {
      seen_ = world_->Value(rank, 0);
      times_.push_back(world_->queue().now());
    }
  }

  World& Make(uint32_t ranks) {
    world_ = std::make_unique<World>(machine_, ranks, this);
    return *world_;
  }

  static Operation At(Placement placement, uint32_t trigger, uint32_t done = kNoCounter) {
    return {.kind = OperationKind::kPut,
            .placement = placement,
            .trigger = {.counter = trigger, .threshold = 1},
            .local_done = done};
  }
  static Work To(uint32_t peer, uint64_t bytes, Move move = Move::kPut) {
    Work work;
    work.move = move;
    work.peer = peer;
    work.bytes = bytes;
    work.remote = NameOf(peer, 0);
    return work;
  }

  Machine machine_;
  std::unique_ptr<World> world_;
  uint32_t watched_rank_ = 0;
  uint64_t seen_ = 0;
  std::vector<Time> times_;  // at which counter 0 of the watched rank grew
};

// There and back: each way the trigger, the wire and the bytes.
TEST_F(WorldTest, PingPongIsTheClosedForm) {
  for (const uint64_t bytes : {8U, 4096U, 1U << 20}) {
    World& world = Make(2);
    times_.clear();
    seen_ = 0;
    ASSERT_TRUE(world.Install(0, {At(Placement::kNic, kNoCounter)}, {To(1, bytes)}, {1}).ok());
    ASSERT_TRUE(world.Install(1, {At(Placement::kNic, 0)}, {To(0, bytes)}, {1}).ok());
    world.Start(0);
    world.Start(1);
    world.queue().Run();
    const Time one_way =
        machine_.trigger_latency + machine_.nic.OneWay(bytes, 2 * machine_.switch_latency);
    EXPECT_EQ(times_, (std::vector<Time>{2 * one_way})) << bytes;
    EXPECT_EQ(world.Counts().busy, 0U);
  }
}

TEST_F(WorldTest, ACpuAddsItsOverhead) {
  World& world = Make(2);
  watched_rank_ = 1;
  Work work = To(1, 8);
  work.cost = machine_.nic.overhead;
  ASSERT_TRUE(world
                  .Install(0, {At(Placement::kRank, kNoCounter), At(Placement::kRank, kNoCounter)},
                           {work, work}, {0})
                  .ok());
  ASSERT_TRUE(world.Install(1, {}, {}, {2}).ok());
  world.Start(0);
  world.queue().Run();
  const Time first = machine_.nic.overhead + machine_.nic.OneWay(8, 2 * machine_.switch_latency);
  EXPECT_EQ(times_, (std::vector<Time>{first, first + machine_.nic.overhead}));
}

TEST_F(WorldTest, WhatFindsNoEntryRunsInTheDaemon) {
  machine_.entries = 1;
  World& world = Make(2);
  watched_rank_ = 1;
  const Operation put = At(Placement::kNic, kNoCounter);
  ASSERT_TRUE(world.Install(0, {put, put, put}, {To(1, 8), To(1, 8), To(1, 8)}, {0}).ok());
  ASSERT_TRUE(world.Install(1, {}, {}, {3}).ok());
  world.Start(0);
  world.queue().Run();
  const Time wire = machine_.nic.OneWay(8, 2 * machine_.switch_latency);
  const Time daemon = machine_.daemon_delay + machine_.daemon_cost;
  EXPECT_EQ(times_, (std::vector<Time>{machine_.trigger_latency + wire, daemon + wire,
                                       daemon + machine_.daemon_cost + wire}));
  const WorldCounts counts = world.Counts();
  EXPECT_EQ(counts.begun[static_cast<size_t>(Placement::kNic)], 1U);
  EXPECT_EQ(counts.begun[static_cast<size_t>(Placement::kDaemon)], 2U);
  EXPECT_EQ(counts.overflowed, 2U);
  EXPECT_EQ(counts.peak_entries, 1U);
  EXPECT_EQ(counts.busy, 0U);
  EXPECT_EQ(counts.undelivered, 0U);
}

TEST_F(WorldTest, AGetFetchesAndTellsItsPeer) {
  World& world = Make(2);
  watched_rank_ = 1;
  Work get = To(1, 4096, Move::kGet);
  ASSERT_TRUE(world.Install(0, {At(Placement::kRank, kNoCounter)}, {get}, {0}).ok());
  ASSERT_TRUE(world.Install(1, {}, {}, {1}).ok());
  world.Start(0);
  world.queue().Run();
  const Time latency = machine_.nic.latency + 2 * machine_.switch_latency;
  EXPECT_EQ(times_, (std::vector<Time>{3 * latency + machine_.nic.Occupancy(4096)}));
}

// A send and the receive of its tag, made ready early or late, short or by request.
TEST_F(WorldTest, MessagesMeetTheirReceives) {
  for (const bool rendezvous : {false, true}) {
    World& world = Make(2);
    Work send = To(1, 4096, Move::kSend);
    send.remote = 0;
    send.tag = 3;
    send.cost = machine_.nic.overhead;
    send.rendezvous = rendezvous;
    Work receive = To(0, 4096, Move::kReceive);
    receive.remote = 0;
    receive.tag = 3;
    receive.match_cost = machine_.match_cost;
    ASSERT_TRUE(world.Install(0, {At(Placement::kRank, kNoCounter)}, {send}, {}).ok());
    ASSERT_TRUE(world.Install(1, {At(Placement::kRank, kNoCounter, 0)}, {receive}, {0}).ok());
    world.Start(0);
    world.Start(1);
    watched_rank_ = 1;
    seen_ = 0;
    times_.clear();
    world.queue().Run();
    const Time switches = 2 * machine_.switch_latency;
    const Time latency = machine_.nic.latency + switches;
    const Time eager =
        machine_.nic.overhead + machine_.nic.OneWay(4096, switches) + machine_.match_cost;
    const Time requested = machine_.nic.overhead + machine_.nic.OneWay(64, switches) +
                           machine_.match_cost + latency + machine_.nic.OneWay(4096, switches);
    EXPECT_EQ(times_, (std::vector<Time>{rendezvous ? requested : eager}));
    EXPECT_EQ(world.Counts().busy, 0U);
  }
}

// The sender is two starts ahead of a receiver that is late: no message gets lost.
TEST_F(WorldTest, LaterMessagesWaitForLaterStarts) {
  World& world = Make(2);
  watched_rank_ = 1;
  Work send = To(1, 8, Move::kSend);
  Work receive = To(0, 8, Move::kReceive);
  send.remote = receive.remote = 0;
  ASSERT_TRUE(world.Install(0, {At(Placement::kRank, kNoCounter)}, {send}, {}).ok());
  ASSERT_TRUE(world.Install(1, {At(Placement::kRank, kNoCounter, 0)}, {receive}, {0}).ok());
  for (int i = 0; i < 3; ++i) {
    world.Start(0);
  }
  world.queue().Run();
  for (uint64_t i = 1; i <= 3; ++i) {
    world.Start(1);
    world.queue().Run();
    EXPECT_EQ(world.Value(1, 0), i);
  }
  EXPECT_EQ(world.Counts().starts, 6U);
  EXPECT_EQ(world.Counts().busy, 0U);
}

TEST_F(WorldTest, RefusesAProgramThatWaitsForItself) {
  World& world = Make(1);
  EXPECT_EQ(world.Install(0, {At(Placement::kNic, 0, 0)}, {To(0, 8)}, {0}).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(WorldTest, RanksOfANodeShareItsNics) {
  machine_.ranks_per_node = 8;
  machine_.nics_per_node = 4;
  const World& world = Make(16);
  EXPECT_EQ(world.NicOf(0), 0U);
  EXPECT_EQ(world.NicOf(1), 0U);
  EXPECT_EQ(world.NicOf(7), 3U);
  EXPECT_EQ(world.NicOf(8), 4U);
  machine_.ranks_per_node = 2;
  const World& few = Make(4);
  EXPECT_EQ(few.NicOf(1), 2U);
  EXPECT_EQ(few.NicOf(2), 4U);
}

}  // namespace
}  // namespace ferry::sim
