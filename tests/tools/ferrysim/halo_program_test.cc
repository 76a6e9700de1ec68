#include "tools/ferrysim/halo_program.h"

#include <gtest/gtest.h>

#include "engine/program/program_check.h"

namespace ferry::sim {
namespace {

constexpr SendKind kKinds[] = {SendKind::kRegular, SendKind::kReady, SendKind::kBounce,
                               SendKind::kCpu};

HaloProgram ProgramOf(SendKind kind, uint64_t cells) {
  return MakeHaloProgram(Machine(), kind, 5, NeighboursOf(GridOf(64), 5, cells, 8));
}

TEST(HaloProgramTest, EveryProgramMakesSense) {
  for (const SendKind kind : kKinds) {
    for (const uint64_t cells : {64U, 8000U, 100000U}) {
      const HaloProgram program = ProgramOf(kind, cells);
      std::vector<shm::CounterLayout> words(program.counters_per_start.size());
      engine::ProgramSpec spec;
      spec.operations = program.operations;
      for (size_t i = 0; i < words.size(); ++i) {
        spec.counters.push_back({.word = &words[i], .per_start = program.counters_per_start[i]});
      }
      EXPECT_EQ(engine::CheckProgram(spec).message(), "") << SendKindName(kind) << " " << cells;
      EXPECT_EQ(program.works.size(), program.operations.size());
      EXPECT_EQ(program.done_per_start, 16U);  // eight sends and eight receives
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
  for (const uint32_t counter : program.regular) {
    EXPECT_EQ(program.counters_per_start[counter], 2U);
  }
}

TEST(HaloProgramTest, OfTheCpuLongMessagesAreFetched) {
  const auto fetched = [](const HaloProgram& program) {
    uint32_t count = 0;
    for (const Work& work : program.works) {
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
