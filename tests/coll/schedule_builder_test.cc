#include "coll/schedule_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ferry::collective {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Range Output(size_t offset, size_t size) { return {Place::kOutput, offset, size}; }

TEST(ScheduleBuilderTest, ReaderWaitsForWriter) {
  ScheduleBuilder builder;
  builder.Receive(1, Output(0, 8));
  builder.Send(2, Output(4, 8));
  const Schedule schedule = builder.Finish();
  EXPECT_THAT(schedule.graph.WaitsOf(0), IsEmpty());
  EXPECT_THAT(schedule.graph.WaitsOf(1), ElementsAre(0));
}

TEST(ScheduleBuilderTest, WriterWaitsForReadersAndForTheLastWriter) {
  ScheduleBuilder builder;
  builder.Send(1, Output(0, 4));
  builder.Send(2, Output(2, 4));
  builder.Receive(3, Output(0, 8));
  builder.Receive(3, Output(6, 4));
  const Schedule schedule = builder.Finish();
  EXPECT_THAT(schedule.graph.WaitsOf(2), ElementsAre(0, 1));
  EXPECT_THAT(schedule.graph.WaitsOf(3), ElementsAre(2));
}

TEST(ScheduleBuilderTest, ReadersAndStrangersDoNotWait) {
  ScheduleBuilder builder;
  const Range scratch = builder.Scratch(8);
  builder.Send(1, Output(0, 8));
  builder.Send(2, Output(0, 8));
  builder.Receive(1, Output(8, 8));
  builder.Receive(1, scratch);
  const Schedule schedule = builder.Finish();
  for (StepId step = 0; step < schedule.graph.size(); ++step) {
    EXPECT_THAT(schedule.graph.WaitsOf(step), IsEmpty());
  }
}

TEST(ScheduleBuilderTest, WhatIsImpliedIsNotSaid) {
  ScheduleBuilder builder;
  const Range scratch = builder.Scratch(8);
  builder.Receive(1, scratch);
  builder.Reduce(scratch, Output(0, 8), Output(0, 8));
  builder.Copy(Output(0, 8), scratch);  // waits for the reduction only
  const Schedule schedule = builder.Finish();
  EXPECT_THAT(schedule.graph.WaitsOf(2), ElementsAre(1));
}

TEST(ScheduleBuilderTest, FenceParts) {
  ScheduleBuilder builder;
  builder.Notify(1);
  builder.Await(1);
  builder.Fence();
  builder.Fence();
  builder.Notify(2);
  builder.Send(2, Output(0, 4));
  const Schedule schedule = builder.Finish();
  ASSERT_EQ(schedule.steps.size(), 5u);  // the second fence has nothing to separate
  EXPECT_THAT(schedule.graph.WaitsOf(2), ElementsAre(0, 1));
  EXPECT_THAT(schedule.graph.WaitsOf(3), ElementsAre(2));
  EXPECT_THAT(schedule.graph.WaitsOf(4), ElementsAre(2));
}

TEST(ScheduleBuilderTest, NumbersTheMessagesOfEachPairAndWay) {
  ScheduleBuilder builder;
  builder.Send(1, Output(0, 1));
  builder.Send(2, Output(0, 1));
  builder.Send(1, Output(0, 1));
  builder.Receive(1, Output(8, 1));
  const Schedule schedule = builder.Finish();
  EXPECT_EQ(schedule.steps[0].tag, 0u);
  EXPECT_EQ(schedule.steps[1].tag, 0u);
  EXPECT_EQ(schedule.steps[2].tag, 1u);
  EXPECT_EQ(schedule.steps[3].tag, 0u);
}

TEST(ScheduleBuilderTest, EmptyRangesMakeNoSteps) {
  ScheduleBuilder builder;
  builder.Send(1, Output(3, 0));
  builder.Receive(1, Output(3, 0));
  builder.Copy(Output(3, 0), Output(9, 0));
  builder.Reduce(Output(3, 0), Output(3, 0), Output(3, 0));
  EXPECT_THAT(builder.Finish().steps, IsEmpty());
}

TEST(ScheduleBuilderTest, ScratchIsAligned) {
  ScheduleBuilder builder;
  builder.Scratch(3);
  EXPECT_EQ(builder.Scratch(70).offset_bytes, 64u);
  EXPECT_EQ(builder.Finish().scratch_bytes, 192u);
}

// ---- Any program --------------------------------------------------------------------------------

bool Overlap(const Range& a, const Range& b) {
  return a.place == b.place && a.size_bytes != 0 && b.size_bytes != 0 &&
         a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

bool Conflict(const Step& a, const Step& b) {
  return Overlap(a.to, b.to) || Overlap(a.to, b.left) || Overlap(a.to, b.right) ||
         Overlap(b.to, a.left) || Overlap(b.to, a.right);
}

TEST(ScheduleBuilderTest, OrdersAllConflictsOfRandomPrograms) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    ScheduleBuilder builder;
    const auto range = [&] {
      return Range{static_cast<Place>(random() % kPlaces), random() % 40, random() % 12};
    };
    std::vector<size_t> fences;
    for (int i = 0; i < 40; ++i) {
      switch (random() % 8) {
        case 0:
        case 1:
          builder.Send(1, range());
          break;
        case 2:
        case 3:
          builder.Receive(1, range());
          break;
        case 4:
          builder.Fence();
          break;
        default:
          builder.Reduce(range(), range(), range());
      }
    }
    const Schedule schedule = builder.Finish();
    const size_t count = schedule.steps.size();
    // before[b][a]: b waits for a, directly or not.
    std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
    for (StepId b = 0; b < count; ++b) {
      for (const StepId a : schedule.graph.WaitsOf(b)) {
        ASSERT_LT(a, b);
        before[b][a] = true;
        for (size_t i = 0; i < a; ++i) {
          before[b][i] = before[b][i] || before[a][i];
        }
      }
      for (StepId a = 0; a < b; ++a) {
        const bool is_fenced =
            schedule.steps[a].kind == StepKind::kJoin || schedule.steps[b].kind == StepKind::kJoin;
        ASSERT_TRUE(before[b][a] || !(is_fenced || Conflict(schedule.steps[a], schedule.steps[b])))
            << "seed " << seed << ": step " << b << " does not wait for " << a;
      }
    }
  }
}

}  // namespace
}  // namespace ferry::collective
