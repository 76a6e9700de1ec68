// Simulated time: events, the entries of a NIC, and programs on all of it.
#include "tools/ferrysim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tools/ferrysim/event_queue.h"
#include "tools/ferrysim/network.h"

namespace ferry::sim {
namespace {

// ---- Events

struct Log {
  EventQueue queue;
  std::vector<uint64_t> seen;
  std::vector<Time> times;

  Action Note(uint64_t what) {
    return {[](void* self, uint64_t a, uint64_t) {
              auto& log = *static_cast<Log*>(self);
              log.seen.push_back(a);
              log.times.push_back(log.queue.now());
            },
            this, what, 0};
  }
};

TEST(EventQueueTest, RunsInTheOrderOfTime) {
  Log log;
  for (const Time at : {50, 10, 40, 20, 30}) {
    log.queue.At(at, log.Note(at));
  }
  EXPECT_TRUE(log.queue.Run());
  EXPECT_EQ(log.seen, (std::vector<uint64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(log.times, (std::vector<Time>{10, 20, 30, 40, 50}));
  EXPECT_EQ(log.queue.ran(), 5U);
}

TEST(EventQueueTest, SortsWhateverComes) {
  Log log;
  std::mt19937 random(1);
  std::vector<Time> times;
  for (int i = 0; i < 5000; ++i) {
    times.push_back(random() % 700);
    log.queue.At(times.back(), log.Note(static_cast<uint64_t>(i)));
  }
  log.queue.Run();
  std::vector<uint64_t> expected(times.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint64_t a, uint64_t b) { return times[a] < times[b]; });
  EXPECT_EQ(log.seen, expected);
}

TEST(EventQueueTest, KeepsTheOrderOfMakingAtEqualTimes) {
  Log log;
  for (uint64_t i = 0; i < 100; ++i) {
    log.queue.At(7, log.Note(i));
  }
  log.queue.Run();
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(log.seen[i], i);
  }
}

TEST(EventQueueTest, EventsMakeEventsAtTheSameTime) {
  Log log;
  log.queue.At(5, {[](void* self, uint64_t, uint64_t) {
                     auto& inner = *static_cast<Log*>(self);
                     inner.queue.At(inner.queue.now(), inner.Note(2));
                   },
                   &log, 0, 0});
  log.queue.At(5, log.Note(1));
  log.queue.At(6, log.Note(3));
  log.queue.Run();
  EXPECT_EQ(log.seen, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(EventQueueTest, StopsAtItsLimit) {
  Log log;
  log.queue.At(1, log.Note(1));
  log.queue.At(2, log.Note(2));
  EXPECT_FALSE(log.queue.Run(1));
  EXPECT_EQ(log.seen.size(), 1U);
  EXPECT_TRUE(log.queue.Run(5));
  EXPECT_FALSE(log.queue.RunOne());
}

TEST(EventQueueDeathTest, NobodyChangesThePast) {
  Log log;
  log.queue.At(10, log.Note(1));
  log.queue.Run();
  EXPECT_DEATH(log.queue.At(9, log.Note(2)), "");
}

// ---- Entries

TEST(EntryPoolTest, ArmsUpToItsLimit) {
  EntryPool pool(2);
  EntryPool::Slot slots[3];
  for (EntryPool::Slot& slot : slots) {
    pool.Start(&slot);
  }
  EXPECT_EQ(pool.used(), 2U);
  EXPECT_TRUE(pool.Begin(&slots[0]));
  EXPECT_TRUE(pool.Begin(&slots[1]));
  EXPECT_FALSE(pool.Begin(&slots[2]));
  EXPECT_EQ(pool.peak(), 2U);
}

TEST(EntryPoolTest, WhoWaitsInLineGetsTheNextFreeEntry) {
  EntryPool pool(1);
  EntryPool::Slot first;
  EntryPool::Slot second;
  pool.Start(&first);
  pool.Start(&second);
  EXPECT_TRUE(pool.Begin(&first));
  pool.End();
  EXPECT_TRUE(pool.Begin(&second));
  pool.End();
  EXPECT_EQ(pool.used(), 0U);
}

TEST(EntryPoolTest, WhoRanInSoftwareLeavesTheLine) {
  EntryPool pool(1);
  EntryPool::Slot first;
  EntryPool::Slot second;
  EntryPool::Slot third;
  pool.Start(&first);
  pool.Start(&second);
  pool.Start(&third);
  EXPECT_FALSE(pool.Begin(&second));
  EXPECT_TRUE(pool.Begin(&first));
  pool.End();
  EXPECT_TRUE(pool.Begin(&third));
}

TEST(EntryPoolTest, StartsAheadAreArmedOneByOne) {
  EntryPool pool(3);
  EntryPool::Slot slot;
  for (int i = 0; i < 4; ++i) {
    pool.Start(&slot);
  }
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_TRUE(pool.Begin(&slot));
  pool.End();  // of the first: the fourth gets its entry
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_EQ(pool.used(), 3U);
}

// Whatever happens: never more entries than there are, and none is lost.
TEST(EntryPoolTest, NeverGivesOutMoreThanThereAre) {
  for (const uint32_t limit : {1U, 3U, 16U}) {
    EntryPool pool(limit);
    std::vector<EntryPool::Slot> slots(10);
    std::mt19937 random(limit);
    uint32_t running = 0;
    for (int i = 0; i < 20000; ++i) {
      EntryPool::Slot& slot = slots[random() % slots.size()];
      switch (random() % 3) {
        case 0:
          if (slot.started - slot.begun < EntryPool::kMostAhead) {
            pool.Start(&slot);
          }
          break;
        case 1:
          if (slot.begun < slot.started) {
            running += pool.Begin(&slot) ? 1 : 0;
          }
          break;
        default:
          if (running != 0) {
            --running;
            pool.End();
          }
      }
      ASSERT_LE(pool.used(), limit);
    }
    for (EntryPool::Slot& slot : slots) {
      while (slot.begun < slot.started) {
        running += pool.Begin(&slot) ? 1 : 0;
      }
    }
    for (; running != 0; --running) {
      pool.End();
    }
    EXPECT_EQ(pool.used(), 0U);
    EXPECT_EQ(pool.peak(), limit);
  }
}

// ---- Worlds

class WorldTest : public testing::Test, public Driver {
 protected:
  WorldTest() {
    machine_.ranks_per_node = machine_.nics_per_node = 1;
    machine_.topology.nodes_per_switch = 1;  // two switches between nodes
  }

  void OnProgress(uint32_t rank) override {
    const uint64_t seen = watches_ends_ ? world_->Completed(rank) : world_->Added(rank, 0);
    if (rank == watched_rank_ && seen > seen_) {
      seen_ = seen;
      times_.push_back(world_->queue().now());
    }
  }

  World& Make(uint32_t ranks) {
    world_ = std::make_unique<World>(machine_, ranks, this);
    return *world_;
  }

  // A rank's program: an event, step 0, to which the others add so often, then `works`, which wait
  // for `waits`.
  static Program Of(uint32_t adds, const std::vector<Work>& works,
                    std::initializer_list<StepId> waits = {}) {
    Program program;
    program.Add({.move = Move::kEvent, .adds = adds}, {});
    for (const Work& work : works) {
      program.Add(work, waits);
    }
    return program;
  }
  static Work To(uint32_t peer, uint64_t bytes, Placement placement, Move move = Move::kPut) {
    return {.move = move,
            .placement = placement,
            .peer = peer,
            .bytes = bytes,
            .remote = NameOf(peer, 0)};
  }

  Machine machine_;
  std::unique_ptr<World> world_;
  uint32_t watched_rank_ = 0;
  bool watches_ends_ = false;  // the rank's completion word, not its event
  uint64_t seen_ = 0;
  std::vector<Time> times_;  // at which that grew
};

// There and back: each way the trigger, the wire and the bytes.
TEST_F(WorldTest, PingPongIsTheClosedForm) {
  for (const uint64_t bytes : {8U, 4096U, 1U << 20}) {
    World& world = Make(2);
    times_.clear();
    seen_ = 0;
    world.Install(0, Of(1, {To(1, bytes, Placement::kNic)}));
    world.Install(1, Of(1, {To(0, bytes, Placement::kNic)}, {0}));
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
  Work work = To(1, 8, Placement::kRank);
  work.cost = machine_.nic.overhead;
  world.Install(0, Of(0, {work, work}));
  world.Install(1, Of(2, {}));
  world.Start(0);
  world.queue().Run();
  const Time first = machine_.nic.overhead + machine_.nic.OneWay(8, 2 * machine_.switch_latency);
  EXPECT_EQ(times_, (std::vector<Time>{first, first + machine_.nic.overhead}));
}

TEST_F(WorldTest, WhatFindsNoEntryRunsInTheDaemon) {
  machine_.entries = 1;
  World& world = Make(2);
  watched_rank_ = 1;
  const Work put = To(1, 8, Placement::kNic);
  world.Install(0, Of(0, {put, put, put}));
  world.Install(1, Of(3, {}));
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
  world.Install(0, Of(0, {To(1, 4096, Placement::kRank, Move::kGet)}));
  world.Install(1, Of(1, {}));
  world.Start(0);
  world.queue().Run();
  const Time latency = machine_.nic.latency + 2 * machine_.switch_latency;
  EXPECT_EQ(times_, (std::vector<Time>{3 * latency + machine_.nic.Occupancy(4096)}));
}

// A send and the receive of its tag, made ready early or late, short or by request.
TEST_F(WorldTest, MessagesMeetTheirReceives) {
  for (const bool rendezvous : {false, true}) {
    World& world = Make(2);
    const Work send{.move = Move::kSend,
                    .rendezvous = rendezvous,
                    .peer = 1,
                    .tag = 3,
                    .bytes = 4096,
                    .cost = machine_.nic.overhead};
    const Work receive{.move = Move::kReceive,
                       .completes = true,
                       .tag = 3,
                       .bytes = 4096,
                       .match_cost = machine_.match_cost};
    world.Install(0, Of(0, {send}));
    world.Install(1, Of(0, {receive}));
    world.Start(0);
    world.Start(1);
    watched_rank_ = 1;
    watches_ends_ = true;
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
  world.Install(0, Of(0, {{.move = Move::kSend, .peer = 1, .bytes = 8}}));
  world.Install(1, Of(0, {{.move = Move::kReceive, .completes = true, .peer = 0, .bytes = 8}}));
  for (int i = 0; i < 3; ++i) {
    world.Start(0);
  }
  world.queue().Run();
  for (uint64_t i = 1; i <= 3; ++i) {
    world.Start(1);
    world.queue().Run();
    EXPECT_EQ(world.Completed(1), i);
  }
  EXPECT_EQ(world.Counts().starts, 6U);
  EXPECT_EQ(world.Counts().busy, 0U);
}

// Adds that come ahead count for later starts, and a start made ahead waits for its own.
TEST_F(WorldTest, StartsMadeAheadRunOneAfterAnother) {
  World& world = Make(1);
  watches_ends_ = true;
  const Time cost = 5 * kMicrosecond;
  world.Install(0, Of(2, {{.completes = true, .cost = cost}}, {0}));
  for (int i = 0; i < 3; ++i) {
    world.Add(0, 0);
  }
  world.queue().Run();
  EXPECT_EQ(world.Completed(0), 0U) << "nobody has started it";
  for (int i = 0; i < 3; ++i) {
    world.Start(0);
  }
  world.queue().Run();
  EXPECT_EQ(times_, (std::vector<Time>{cost}));
  for (int i = 0; i < 3; ++i) {
    world.Add(0, 0);
  }
  EXPECT_FALSE(world.IsIdle(0));
  world.queue().Run();
  EXPECT_EQ(times_, (std::vector<Time>{cost, 2 * cost, 3 * cost}));
  EXPECT_TRUE(world.IsIdle(0));
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
