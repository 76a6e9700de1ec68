// The world of many daemons that tests and benchmarks/scale use: its time, its counts, and whether
// its stand-ins behave as daemons would.
#include "tests/daemon/jobs/job_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/daemon/jobs/job_world_path.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kNodes = 200;  // radix 4: three whole levels below the root, and part of one
constexpr uint32_t kRadix = 4;
constexpr uint32_t kPerNode = 3;

WorldCosts Costs() {
  WorldCosts costs;
  costs.latency_ns = 100'000;
  costs.call_ns = 50'000;
  costs.greeting_ns = 1'000'000;
  return costs;
}

struct Beginning {
  uint64_t complete_ns = 0;    // when the last of the daemons had heard that all have joined
  std::vector<size_t> relays;  // of the daemons on the way
  std::vector<size_t> ranks;   // of which they know facts
  std::vector<uint64_t> busy_ns;
};

Beginning Begin(World& world, bool has_stand_ins) {
  Beginning begun;
  EXPECT_TRUE(world.CreateJob(kRadix, kPerNode).ok());
  world.Run(200);
  const uint64_t began_ns = world.now_ns();
  for (WorldNode* const node : world.daemons()) {
    for (uint32_t rank = node->number * kPerNode; rank < (node->number + 1) * kPerNode; ++rank) {
      world.AfterNs(0, node, 0, [node, rank] { EXPECT_TRUE(node->Enter(rank).ok()); });
    }
  }
  EXPECT_TRUE(world.RunUntil([&] {
    return world.AllLiving([](WorldNode& node) { return node.job()->complete; });
  })) << (has_stand_ins ? "with stand-ins" : "daemons only");
  begun.complete_ns = world.now_ns() - began_ns;
  for (const uint32_t node : WayToLeaf(kNodes, kRadix)) {
    begun.relays.push_back(world[node].counts.relays);
    const std::vector<JobFact>& facts = world[node].job()->news->facts;
    begun.ranks.push_back(
        std::accumulate(facts.begin(), facts.end(), size_t{0},
                        [](size_t sum, const JobFact& fact) { return sum + fact.count; }));
    begun.busy_ns.push_back(world[node].counts.busy_ns);
  }
  return begun;
}

TEST(JobWorldTest, AddressesAreNumbers) {
  for (const uint32_t node : {0U, 1U, 254U, 255U, 256U, 65'535U, 9'999U, 1'000'000U}) {
    EXPECT_EQ(World::NumberOf(World::AddressOf(node)), node) << World::AddressOf(node);
  }
}

TEST(JobWorldTest, TheWayGoesToTheDeepestLeaf) {
  EXPECT_EQ(WayToLeaf(kNodes, kRadix), (std::vector<uint32_t>{0, 1, 5, 21, 85}));
  EXPECT_EQ(WayToLeaf(1, 16), std::vector<uint32_t>{0});
}

TEST(JobWorldTest, WorkOfADaemonWaitsUntilItIsFree) {
  World world(2, Costs(), World::UsualLimits(), {});
  std::vector<uint64_t> at_ns;
  const auto note = [&] { at_ns.push_back(world.now_ns()); };
  world.AfterNs(1000, &world[0], 500, note);
  world.AfterNs(1000, &world[0], 500, note);
  world.AfterNs(1000, &world[1], 0, note);
  EXPECT_TRUE(world.RunUntil([&] { return at_ns.size() == 3; }, 1));
  EXPECT_EQ(at_ns, (std::vector<uint64_t>{1500, 1000, 2000}));
  EXPECT_GE(world[0].counts.busy_ns, 1000U);
}

TEST(JobWorldTest, StandInsKeepTheDaemonsOnTheWayAsBusyAsDaemonsWould) {
  World all(kNodes, Costs(), World::UsualLimits(), {});
  const Beginning real = Begin(all, false);
  World few(kNodes, Costs(), World::UsualLimits(), WayToLeaf(kNodes, kRadix));
  const StandIns stand_ins(few, kRadix, kPerNode);
  const Beginning played = Begin(few, true);
  ASSERT_EQ(few.daemons().size(), 5U);
  EXPECT_EQ(played.ranks, real.ranks);
  EXPECT_EQ(real.ranks.front(), size_t{kNodes} * kPerNode);
  EXPECT_NEAR(static_cast<double>(played.complete_ns), static_cast<double>(real.complete_ns),
              0.15 * static_cast<double>(real.complete_ns));
  for (size_t level = 0; level < real.relays.size(); ++level) {
    EXPECT_NEAR(static_cast<double>(played.relays[level]), static_cast<double>(real.relays[level]),
                0.5 * static_cast<double>(real.relays[level]))
        << "level " << level;
    EXPECT_NEAR(static_cast<double>(played.busy_ns[level]),
                static_cast<double>(real.busy_ns[level]),
                0.6 * static_cast<double>(real.busy_ns[level]))
        << "level " << level;
  }
}

TEST(JobWorldTest, ADeathThatAStandInTellsReachesTheLeafOnTheWay) {
  World world(kNodes, Costs(), World::UsualLimits(), WayToLeaf(kNodes, kRadix));
  StandIns stand_ins(world, kRadix, kPerNode);
  (void)Begin(world, true);
  stand_ins.Hush();
  const uint32_t dead = 3 * kPerNode - 1;  // of node 2
  stand_ins.TellDeath(2);
  EXPECT_TRUE(world.RunUntil(
      [&] { return world.AllLiving([&](WorldNode& node) { return node.Heard(dead) == 1; }); },
      1000));
}

}  // namespace
}  // namespace ferry::daemon
