#include "tools/ferrysim/allreduce.h"

#include <gtest/gtest.h>

#include "client/mpi/collective/algorithms/algorithm.h"
#include "client/mpi/collective/algorithms/selection.h"

namespace ferry::sim {
namespace {

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
  for (const mpi::Algorithm& algorithm : mpi::AlgorithmsOf(mpi::Collective::kAllreduce)) {
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
    mpi::Problem problem;
    problem.collective = mpi::Collective::kAllreduce;
    problem.size = 16;
    problem.block_bytes = bytes;
    problem.element_bytes = 8;
    problem.node_of = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
    EXPECT_EQ(RunAllreduce(Plan(16, bytes))->algorithm,
              mpi::SelectionTable().Choose(problem).algorithm->name);
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
  EXPECT_EQ(RunAllreduce(Plan(1, 8)).status().message(), "1 ranks: 2 to 1048576 can be simulated");
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

}  // namespace
}  // namespace ferry::sim
