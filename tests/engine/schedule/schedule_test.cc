#include "engine/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ferry::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepGraph Graph(const std::vector<std::vector<StepId>>& waits) {
  StepGraph graph;
  for (const std::vector<StepId>& of_step : waits) {
    graph.Add(of_step);
  }
  return graph;
}

// Begins the steps that are ready, and returns them.
std::vector<StepId> Begin(ScheduleRun* run) {
  std::vector<StepId> begun;
  for (StepId step = run->Next(); step != kNoStep; step = run->Next()) {
    begun.push_back(step);
  }
  return begun;
}

TEST(StepGraphTest, NumbersStepsAndKnowsWhatTheyWaitFor) {
  StepGraph graph;
  EXPECT_EQ(graph.size(), 0U);
  EXPECT_EQ(graph.Add({}), 0U);
  EXPECT_EQ(graph.Add(std::vector<StepId>{0}), 1U);
  EXPECT_EQ(graph.Add(std::vector<StepId>{1, 0}), 2U);
  EXPECT_EQ(graph.size(), 3U);
  EXPECT_THAT(graph.WaitsOf(0), IsEmpty());
  EXPECT_THAT(graph.WaitsOf(2), ElementsAre(1, 0));
}

TEST(StepGraphDeathTest, NoStepWaitsForItselfOrForALaterOne) {
  EXPECT_DEATH(Graph({{}, {1}}), "");
  EXPECT_DEATH(Graph({{}, {0, 2}, {}}), "");
}

TEST(ScheduleRunTest, AStepBeginsWhenAllThatItWaitsForHaveEnded) {
  ScheduleRun run(Graph({{}, {}, {0, 1}}));
  EXPECT_TRUE(run.is_done()) << "nobody has started it";
  EXPECT_THAT(Begin(&run), IsEmpty());
  run.Start();
  EXPECT_FALSE(run.is_done());
  EXPECT_THAT(Begin(&run), ElementsAre(0, 1));
  run.End(1);
  EXPECT_THAT(Begin(&run), IsEmpty());
  run.End(0);
  EXPECT_THAT(Begin(&run), ElementsAre(2));
  EXPECT_FALSE(run.is_done());
  run.End(2);
  EXPECT_TRUE(run.is_done());
}

// The one that is ready first is begun first, whatever its number.
TEST(ScheduleRunTest, StepsBeginInTheOrderInWhichTheyBecomeReady) {
  ScheduleRun run(Graph({{}, {}, {0}, {1}, {0}, {2, 3}}));
  run.Start();
  EXPECT_THAT(Begin(&run), ElementsAre(0, 1));
  run.End(1);
  run.End(0);
  EXPECT_THAT(Begin(&run), ElementsAre(3, 2, 4));
}

TEST(ScheduleRunTest, EndsMayComeBeforeOthersHaveBegun) {
  ScheduleRun run(Graph({{}, {}, {0}}));
  run.Start();
  EXPECT_EQ(run.Next(), 0U);
  run.End(0);
  EXPECT_THAT(Begin(&run), ElementsAre(1, 2));
}

TEST(ScheduleRunTest, AScheduleWithoutStepsIsDoneAtOnce) {
  ScheduleRun run{StepGraph()};
  run.Start();
  EXPECT_EQ(run.Next(), kNoStep);
  EXPECT_TRUE(run.is_done());
}

// A run does not refer to its graph, nor to the run that it is a copy of.
TEST(ScheduleRunTest, CopiesRunSideBySide) {
  ScheduleRun one(Graph({{}, {0}}));
  one.Start();
  ScheduleRun other = one;
  EXPECT_THAT(Begin(&one), ElementsAre(0));
  one.End(0);
  EXPECT_THAT(Begin(&other), ElementsAre(0));
  EXPECT_THAT(Begin(&other), IsEmpty());
  EXPECT_THAT(Begin(&one), ElementsAre(1));
}

// ---- Any schedule -------------------------------------------------------------------------------

// Random schedules, started several times, whose steps end in random order: each begins once for
// each start, as soon as all that it waits for have ended and no sooner, and nothing waits for
// ever.
TEST(ScheduleRunTest, RandomSchedulesRunEachStepOnce) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t limit) { return random() % limit; };
    std::vector<std::vector<StepId>> waits(1 + below(20));
    for (StepId step = 0; step < waits.size(); ++step) {
      for (size_t i = below(4); step != 0 && i != 0; --i) {
        waits[step].push_back(static_cast<StepId>(below(step)));  // perhaps one of them twice
      }
    }
    ScheduleRun run(Graph(waits));
    for (int starts = 0; starts < 3; ++starts) {
      run.Start();
      std::vector<StepId> under_way;
      std::vector<bool> has_begun(waits.size());
      std::vector<bool> has_ended(waits.size());
      for (size_t ended = 0; ended < waits.size(); ++ended) {
        ASSERT_FALSE(run.is_done());
        for (const StepId step : Begin(&run)) {
          ASSERT_FALSE(has_begun[step]) << step;
          has_begun[step] = true;
          under_way.push_back(step);
        }
        for (StepId step = 0; step < waits.size(); ++step) {
          const bool may_begin = std::all_of(waits[step].begin(), waits[step].end(),
                                             [&](StepId wait) { return has_ended[wait]; });
          ASSERT_EQ(has_begun[step], may_begin) << step;
        }
        ASSERT_FALSE(under_way.empty()) << "it stands still";
        std::swap(under_way[below(under_way.size())], under_way.back());
        run.End(under_way.back());
        has_ended[under_way.back()] = true;
        under_way.pop_back();
      }
      ASSERT_TRUE(run.is_done());
      ASSERT_EQ(run.Next(), kNoStep);
    }
  }
}

// All orders in which the steps of a pipeline of blocks may end.
class EveryOrder {
 public:
  // Copy in, move, copy out: each stage of a block waits for the one before.
  static constexpr uint32_t kBlocks = 3;
  static constexpr uint32_t kStages = 3;

  // Walks the tree of choices; a path is replayed from its beginning.
  void Walk() {
    std::vector<size_t> path;
    do {
      Play(&path);
      ++plays;
    } while (Next(&path));
  }

  uint64_t plays = 0;

 private:
  static StepGraph Pipeline() {
    StepGraph graph;
    for (StepId step = 0; step < kBlocks * kStages; ++step) {
      graph.Add(step % kStages == 0 ? std::vector<StepId>() : std::vector<StepId>{step - 1});
    }
    return graph;
  }

  // A choice says which of the steps under way ends.
  void Play(std::vector<size_t>* path) {
    run_.Start();
    choices_.clear();
    std::vector<StepId> under_way = Begin(&run_);
    while (!under_way.empty()) {
      const size_t at = choices_.size();
      if (at == path->size()) {
        path->push_back(0);
      }
      choices_.push_back(under_way.size());
      const StepId step = under_way[(*path)[at]];
      std::erase(under_way, step);
      run_.End(step);
      const std::vector<StepId> next = Begin(&run_);
      if (step % kStages + 1 < kStages) {
        ASSERT_THAT(next, ElementsAre(step + 1));
      } else {
        ASSERT_THAT(next, IsEmpty());
      }
      under_way.insert(under_way.end(), next.begin(), next.end());
    }
    ASSERT_TRUE(run_.is_done());
    ASSERT_EQ(choices_.size(), kBlocks * kStages);
  }

  // The next path in order; false after the last.
  bool Next(std::vector<size_t>* path) {
    while (!path->empty() && path->back() + 1 == choices_[path->size() - 1]) {
      path->pop_back();
    }
    if (path->empty()) {
      return false;
    }
    ++path->back();
    return true;
  }

  ScheduleRun run_{Pipeline()};
  std::vector<size_t> choices_;  // the number of them at each step of the last play
};

TEST(ScheduleRunTest, APipelineEndsInEveryOrder) {
  EveryOrder every;
  every.Walk();
  EXPECT_EQ(every.plays, 1680U);  // 9! / 3!^3
}

}  // namespace
}  // namespace ferry::engine
