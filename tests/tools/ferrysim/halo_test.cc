#include "tools/ferrysim/halo.h"

#include <gtest/gtest.h>

#include "tools/ferrysim/scaling.h"

namespace ferry::sim {
namespace {

constexpr SendKind kKinds[] = {SendKind::kRegular, SendKind::kReady, SendKind::kBounce,
                               SendKind::kCpu};

HaloPlan Plan(SendKind send, uint32_t ranks) {
  HaloPlan plan;
  plan.send = send;
  plan.ranks = ranks;
  plan.cells = 4096;
  plan.warm_up = 3;
  plan.iterations = 5;
  return plan;
}

HaloResult MustRun(const HaloPlan& plan) {
  StatusOr<HaloResult> result = RunHalo(plan);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : HaloResult();
}

TEST(HaloTest, EveryStartEndsAndEveryMessageArrives) {
  for (const SendKind send : kKinds) {
    for (const uint32_t ranks : {1U, 2U, 6U, 64U}) {
      const HaloResult result = MustRun(Plan(send, ranks));
      EXPECT_EQ(result.counts.starts, 8U * ranks);
      EXPECT_EQ(result.counts.busy, 0U);
      EXPECT_EQ(result.counts.undelivered, 0U);
      EXPECT_EQ(result.counts.overflowed, 0U);
      // Each start's deferred steps, whatever triggers them, began in the NIC, once.
      const HaloProgram program = MakeHaloProgram(Plan(send, ranks).machine, send, 0,
                                                  NeighboursOf(GridOf(ranks), 0, 4096, 8));
      EXPECT_EQ(result.counts.begun[static_cast<size_t>(Placement::kNic)],
                uint64_t{program.deferred} * 8 * ranks);
    }
  }
}

TEST(HaloTest, TheSameSeedIsTheSameRun) {
  for (const SendKind send : kKinds) {
    HaloPlan plan = Plan(send, 16);
    const HaloResult first = MustRun(plan);
    const HaloResult again = MustRun(plan);
    EXPECT_EQ(first.iteration_us, again.iteration_us);
    EXPECT_EQ(first.events, again.events);
    plan.seed = 2;
    EXPECT_NE(first.iteration_us, MustRun(plan).iteration_us);
  }
}

TEST(HaloTest, ANicGivesNoMoreEntriesThanItHas) {
  for (const SendKind send : {SendKind::kRegular, SendKind::kReady}) {
    HaloPlan plan = Plan(send, 16);
    plan.iterations = 30;  // the last ones have no starts behind them, and more entries
    double slowest = 0;
    for (const uint32_t entries : {504U, 64U, 16U, 1U, 0U}) {
      plan.machine.entries = entries;
      const HaloResult result = MustRun(plan);
      EXPECT_LE(result.counts.peak_entries, entries);
      EXPECT_EQ(result.counts.busy, 0U);
      EXPECT_GE(result.iteration_us, slowest * 0.99) << entries;
      slowest = std::max(slowest, result.iteration_us);
      const uint64_t daemon = result.counts.begun[static_cast<size_t>(Placement::kDaemon)];
      EXPECT_EQ(daemon, result.counts.overflowed);
      EXPECT_EQ(entries == 504, daemon == 0) << entries;
    }
  }
}

// One rank with nothing but its GPU: what the stream does in turn, by hand. The CPU is ahead.
TEST(HaloTest, OneRanksIterationIsTheSumOfItsStream) {
  HaloPlan plan = Plan(SendKind::kReady, 1);
  plan.jitter_percent = 0;
  const Machine& machine = plan.machine;
  const HaloResult result = MustRun(plan);
  const double edges = 4 * 4096 * 8 + 4 * 8;
  const double kernels = ToMicroseconds(16 * machine.pack_kernel + machine.compute_kernel) +
                         2 * edges * machine.pack_ps_per_byte / 1e6 +
                         4096.0 * 4096.0 * plan.ps_per_cell / 1e6;
  // One trigger; the waits run through while the messages, all of one NIC to itself, are on their
  // way: one wait more when the last atomic is seen.
  const Time wire = machine.trigger_latency + machine.nic.latency + machine.switch_latency +
                    4 * machine.nic.Occupancy(4096 * 8) + 4 * machine.nic.Occupancy(8);
  const double least = kernels + ToMicroseconds(18 * machine.stream_operation);
  EXPECT_GT(result.iteration_us, least - ToMicroseconds(machine.stream_operation) - 0.1);
  EXPECT_LT(result.iteration_us, least + ToMicroseconds(wire + 4 * machine.atomic_latency));
}

TEST(HaloTest, ReadySendsAreNeverSlower) {
  for (const uint32_t ranks : {4U, 16U, 64U}) {
    EXPECT_LE(MustRun(Plan(SendKind::kReady, ranks)).iteration_us,
              MustRun(Plan(SendKind::kRegular, ranks)).iteration_us);
  }
}

TEST(HaloTest, RefusesWhatCannotBe) {
  const auto refusal = [](const auto& change) {
    HaloPlan plan = Plan(SendKind::kReady, 16);
    change(&plan);
    const StatusOr<HaloResult> result = RunHalo(plan);
    EXPECT_EQ(result.status().code(), ErrorCode::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_EQ(refusal([](HaloPlan* plan) { plan->ranks = 0; }),
            "0 ranks: 1 to 1048576 can be simulated");
  EXPECT_EQ(refusal([](HaloPlan* plan) { plan->cells = 3; }),
            "a grid of 3 by 3 cells cannot be cut into 4 by 4 blocks");
  EXPECT_EQ(refusal([](HaloPlan* plan) { plan->starts_ahead = 33; }),
            "33 starts ahead: 1 to 32 can be");
  EXPECT_EQ(refusal([](HaloPlan* plan) { plan->iterations = 0; }),
            "cells of 0 bytes and runs of 0 iterations say nothing");
}

TEST(ScalingTest, FittedCellsTakeTheMeasuredTime) {
  HaloPlan plan = Plan(SendKind::kCpu, 1);
  const StatusOr<double> ps_per_cell = FitCells(plan, 500);
  ASSERT_TRUE(ps_per_cell.ok());
  plan.ps_per_cell = *ps_per_cell;
  EXPECT_NEAR(MustRun(plan).iteration_us, 500, 0.5);
}

TEST(ScalingTest, TakesTheLayoutsThatThereAreNodesFor) {
  ScalingPlan plan{.base = Plan(SendKind::kReady, 1), .most_ranks = 16, .most_nodes = 4};
  const auto points = RunScaling(plan, SendKind::kReady, [](const std::string&) {});
  ASSERT_TRUE(points.ok());
  ASSERT_EQ(points->size(), 5U);
  EXPECT_EQ(points->back().ranks, 16U);
  EXPECT_GE(points->back().fastest_nodes, 2U);
  EXPECT_LE(points->back().fastest_nodes, 4U);
  EXPECT_LE(points->back().fastest_us, points->back().iteration_us);
}

// Table V and the published measurements speak of the same runs.
TEST(PublishedTest, TablesAgree) {
  for (const PublishedBest& best : TableFive()) {
    double one_rank_us = 0;
    for (const PublishedProblem& problem : PublishedProblems()) {
      one_rank_us = problem.cells == best.cells ? problem.one_rank_us : one_rank_us;
    }
    for (const PublishedIteration& iteration : PublishedIterations()) {
      if (iteration.cells == best.cells && iteration.ranks == best.ranks) {
        // The best layout against the mean of the layouts.
        const double ratio = best.speedup * iteration.Of(best.send) / one_rank_us;
        EXPECT_GT(ratio, 0.95);
        EXPECT_LT(ratio, 1.12);
      }
    }
  }
}

}  // namespace
}  // namespace ferry::sim
