#include "tools/ferrysim/halo_program.h"

#include <gtest/gtest.h>

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
