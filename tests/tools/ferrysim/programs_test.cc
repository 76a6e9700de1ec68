// The programs that are simulated.
#include <gtest/gtest.h>

#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/selection.h"
#include "tools/ferrysim/allreduce.h"
#include "tools/ferrysim/halo.h"
#include "tools/ferrysim/halo_program.h"
#include "tools/ferrysim/scaling.h"

namespace ferry::sim {
namespace {

// ---- Sums of all ranks

AllreducePlan Plan(uint32_t ranks, uint64_t bytes) {
  AllreducePlan plan;
  plan.ranks = ranks;
  plan.bytes = bytes;
  plan.machine.ranks_per_node = 2;
  plan.machine.nics_per_node = 1;
  return plan;
}

// Two ranks on two nodes double recursively: each sends once, matches once and reduces once.
TEST(AllreduceTest, TwoRanksTakeTheClosedForm) {
  AllreducePlan plan = Plan(2, 64);
  plan.machine.ranks_per_node = 1;
  plan.machine.topology.nodes_per_switch = 1;
  plan.algorithm = "recursive_doubling";
  const StatusOr<AllreduceResult> result = RunAllreduce(plan);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Machine& machine = plan.machine;
  const Time expected = machine.nic.overhead + machine.nic.OneWay(64, 2 * machine.switch_latency) +
                        machine.match_cost + machine.reduce_cost + 64 * machine.reduce_ps_per_byte;
  EXPECT_NEAR(result->iteration_us, ToMicroseconds(expected), 0.02);
}

TEST(AllreduceTest, EveryAlgorithmEndsOnBothPlacements) {
  for (const collective::Algorithm& algorithm :
       collective::AlgorithmsOf(collective::Collective::kAllreduce)) {
    for (const uint32_t ranks : {2U, 6U, 16U}) {
      for (const uint64_t bytes : {8U, 4096U, 65536U}) {
        for (const bool on_nic : {false, true}) {
          AllreducePlan plan = Plan(ranks, bytes);
          plan.algorithm = algorithm.name;
          plan.on_nic = on_nic;
          plan.machine.entries = 3;
          const StatusOr<AllreduceResult> result = RunAllreduce(plan);
          if (!result.ok()) {
            EXPECT_EQ(result.status().message().find("the algorithm"), 0U)
                << result.status().message();
            continue;
          }
          EXPECT_EQ(result->counts.busy, 0U);
          EXPECT_EQ(result->counts.starts, 4U * ranks);
          EXPECT_LE(result->counts.peak_entries, 3U);
          EXPECT_GT(result->iteration_us, 0);
        }
      }
    }
  }
}

TEST(AllreduceTest, ChoosesAsFerrysMpiDoes) {
  for (const uint64_t bytes : {8U, 65536U, 1U << 20}) {
    collective::Problem problem;
    problem.collective = collective::Collective::kAllreduce;
    problem.size = 16;
    problem.block_bytes = bytes;
    problem.element_bytes = 8;
    problem.node_of = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
    EXPECT_EQ(RunAllreduce(Plan(16, bytes))->algorithm,
              collective::SelectionTable().Choose(problem).algorithm->name);
  }
}

TEST(AllreduceTest, GrowsWithTheLogarithmOfTheRanks) {
  AllreducePlan plan = Plan(16, 8);
  plan.machine.ranks_per_node = 1;
  const double sixteen = RunAllreduce(plan)->iteration_us;
  plan.ranks = 256;
  const double many = RunAllreduce(plan)->iteration_us;
  EXPECT_GT(many, 1.8 * sixteen);
  EXPECT_LT(many, 2.6 * sixteen);  // 8 steps, not 4, and longer ways
}

TEST(AllreduceTest, RefusesWhatCannotBe) {
  EXPECT_EQ(RunAllreduce(Plan(1, 8)).status().message(), "1 rank: 2 to 1048576 can be simulated");
  EXPECT_EQ(RunAllreduce(Plan(2, 12)).status().message(),
            "a vector of 12 bytes: it must be of whole 8-byte elements, and of one at least");
  AllreducePlan plan = Plan(4, 8);
  plan.algorithm = "magic";
  EXPECT_EQ(RunAllreduce(plan).status().message().find("there is no algorithm \"magic\""), 0U);
  plan.algorithm = "hierarchical";
  plan.machine.ranks_per_node = 4;
  EXPECT_EQ(RunAllreduce(plan).status().message(),
            "the algorithm hierarchical cannot be used among 4 ranks, 4 on a node");
  plan = Plan(8192, 1 << 20);
  plan.algorithm = "ring";
  EXPECT_NE(RunAllreduce(plan).status().message().find("more than can be simulated"),
            std::string::npos);
}

// ---- Halo exchanges

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

// ---- The steps of a halo exchange

HaloProgram ProgramOf(SendKind kind, uint64_t cells) {
  return MakeHaloProgram(Machine(), kind, 5, NeighboursOf(GridOf(64), 5, cells, 8));
}

TEST(HaloProgramTest, EveryProgramMakesSense) {
  for (const SendKind kind : kKinds) {
    for (const uint64_t cells : {64U, 8000U, 100000U}) {
      SCOPED_TRACE(testing::Message() << SendKindName(kind) << " " << cells);
      const HaloProgram halo = ProgramOf(kind, cells);
      const Program& program = halo.program;
      EXPECT_EQ(program.works.size(), program.graph.size());
      EXPECT_EQ(halo.done_per_start, 16U);  // eight sends and eight receives
      // An event that others add to is waited for, and the other way round.
      std::vector<bool> is_awaited(HaloEvents::kCount);
      for (StepId step = HaloEvents::kCount; step < program.graph.size(); ++step) {
        ASSERT_EQ(program.graph.WaitsOf(step).size(), 1U);
        if (const StepId wait = program.graph.WaitsOf(step)[0]; wait < HaloEvents::kCount) {
          is_awaited[wait] = true;
        }
      }
      for (StepId event = 0; event < HaloEvents::kCount; ++event) {
        EXPECT_EQ(program.works[event].move, Move::kEvent);
        EXPECT_EQ(program.works[event].adds != 0, is_awaited[event]) << event;
      }
    }
  }
}

TEST(HaloProgramTest, CountsItsDeferredWork) {
  EXPECT_EQ(ProgramOf(SendKind::kReady, 8000).deferred, 24U);
  EXPECT_EQ(ProgramOf(SendKind::kRegular, 8000).deferred, 32U);  // and clear-to-send
  EXPECT_EQ(ProgramOf(SendKind::kCpu, 8000).deferred, 0U);
}

TEST(HaloProgramTest, BounceCellsTakeShortMessagesOnly) {
  EXPECT_TRUE(ProgramOf(SendKind::kBounce, 8000).regular.empty());  // edges of 8,000 bytes
  const HaloProgram long_edges = ProgramOf(SendKind::kBounce, 16000);
  EXPECT_EQ(long_edges.regular.size(), 4U);
  EXPECT_TRUE(long_edges.has_ready);  // the corners
}

TEST(HaloProgramTest, RegularSendsWaitForAnEvenCount) {
  const HaloProgram program = ProgramOf(SendKind::kRegular, 8000);
  EXPECT_EQ(program.regular.size(), 8U);
  for (const StepId event : program.regular) {
    EXPECT_EQ(program.program.works[event].adds, 2U);
  }
}

TEST(HaloProgramTest, OfTheCpuLongMessagesAreFetched) {
  const auto fetched = [](const HaloProgram& program) {
    uint32_t count = 0;
    for (const Work& work : program.program.works) {
      count += work.move == Move::kGet ? 1 : 0;
    }
    return count;
  };
  // Rank 5 of 8 rows of 8 lies beside ranks 4 and 6 on its node: two edges go through memory.
  EXPECT_EQ(fetched(ProgramOf(SendKind::kCpu, 8000)), 0U);
  EXPECT_EQ(fetched(ProgramOf(SendKind::kCpu, 16000)), 2U);
}

}  // namespace
}  // namespace ferry::sim
