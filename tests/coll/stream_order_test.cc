// Every algorithm, run by one stream for each rank, in the order that OrderForStream gives.
#include "coll/stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coll/algorithms/algorithm.h"
#include "coll/schedule_builder.h"
#include "tests/coll/stream_world.h"

namespace ferry::collective {
namespace {

Range Output(size_t offset, size_t size) { return {Place::kOutput, offset, size}; }

std::vector<std::pair<StreamAction, StepId>> OrderOf(const Schedule& schedule) {
  std::vector<std::pair<StreamAction, StepId>> order;
  for (const OrderedStep& step : OrderForStream(schedule)) {
    order.emplace_back(step.action, step.step);
  }
  return order;
}

TEST(StreamOrderTest, StartsReceivesThenSendsThenComputes) {
  ScheduleBuilder builder;
  builder.Copy(Output(0, 8), Output(64, 8));
  builder.Send(1, Output(8, 8));
  builder.Receive(1, Output(16, 8));
  using enum StreamAction;
  EXPECT_THAT(
      OrderOf(builder.Finish()),
      testing::ElementsAre(std::pair(kStart, 2), std::pair(kStart, 1), std::pair(kCompute, 0),
                           std::pair(kWait, 1), std::pair(kWait, 2)));
}

TEST(StreamOrderTest, WaitsOnlyForWhatComesNext) {
  ScheduleBuilder builder;
  builder.Receive(1, Output(0, 8));
  builder.Receive(2, Output(8, 8));
  builder.Send(3, Output(8, 8));
  using enum StreamAction;
  EXPECT_THAT(OrderOf(builder.Finish()),
              testing::ElementsAre(std::pair(kStart, 0), std::pair(kStart, 1), std::pair(kWait, 1),
                                   std::pair(kStart, 2), std::pair(kWait, 0), std::pair(kWait, 2)));
}

std::vector<std::pair<StreamAction, StepId>> ChainedOrderOf(const Schedule& schedule,
                                                            std::vector<StepId>* follows) {
  std::vector<std::pair<StreamAction, StepId>> order;
  const ChainRules rules{
      .may_chain = [&schedule](StepId id) { return schedule.steps[id].peer != 9; },
      .most_followed = 2,
      .most_followers = 2};
  for (const OrderedStep& step : OrderForStream(schedule, rules)) {
    order.emplace_back(step.action, step.step);
    if (!step.follows.empty()) {
      *follows = step.follows;
    }
  }
  return order;
}

TEST(StreamOrderTest, ASendFollowsWhatItPassesOn) {
  ScheduleBuilder builder;
  builder.Receive(1, Output(0, 8));
  builder.Send(2, Output(0, 8));
  builder.Send(9, Output(0, 8));  // by no rank's chain
  std::vector<StepId> follows;
  using enum StreamAction;
  EXPECT_THAT(ChainedOrderOf(builder.Finish(), &follows),
              testing::ElementsAre(std::pair(kStart, 0), std::pair(kStart, 1), std::pair(kWait, 0),
                                   std::pair(kStart, 2), std::pair(kWait, 1), std::pair(kWait, 2)));
  EXPECT_THAT(follows, testing::ElementsAre(0));
}

// The stream itself waits for data that it reads, writes or reduces, and for all earlier steps.
TEST(StreamOrderTest, AComputationWaitsForTheWholeChain) {
  ScheduleBuilder builder;
  builder.Receive(1, Output(0, 8));
  builder.Send(2, Output(0, 8));
  builder.Fence();
  builder.Copy(Output(64, 8), Output(0, 8));
  std::vector<StepId> follows;
  using enum StreamAction;
  EXPECT_THAT(ChainedOrderOf(builder.Finish(), &follows),
              testing::ElementsAre(std::pair(kStart, 0), std::pair(kStart, 1), std::pair(kWait, 0),
                                   std::pair(kWait, 1), std::pair(kCompute, 3)));
}

TEST(StreamOrderTest, ASendWithTooMuchToFollowWaits) {
  ScheduleBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.Receive(1, Output(8 * static_cast<size_t>(i), 8));
  }
  builder.Send(2, Output(0, 24));
  std::vector<StepId> follows;
  EXPECT_THAT(ChainedOrderOf(builder.Finish(), &follows).back().second, 3U);
  EXPECT_THAT(follows, testing::IsEmpty());
}

// Between the start and the end of a barrier's rounds the stream has nothing to do.
TEST(StreamOrderTest, BarriersAndBroadcastsAreOneChain) {
  for (const Collective collective : {Collective::kBarrier, Collective::kBcast}) {
    for (const int size : {2, 3, 8, 17}) {
      Problem problem;
      problem.collective = collective;
      problem.rank = size / 2;
      problem.size = size;
      problem.block_bytes = 8;
      const Schedule schedule = MakeSchedule(AlgorithmsOf(collective).front(), problem);
      bool waits = false;
      const ChainRules rules{
          .may_chain = [](StepId) { return true; }, .most_followed = 7, .most_followers = 64};
      for (const OrderedStep& step : OrderForStream(schedule, rules)) {
        waits |= step.action == StreamAction::kWait;
        EXPECT_EQ(waits, step.action == StreamAction::kWait)
            << CollectiveName(collective) << " of " << size;
      }
    }
  }
}

TEST(StreamOrderTest, OfNothingIsNothing) {
  EXPECT_THAT(OrderForStream(ScheduleBuilder().Finish()), testing::IsEmpty());
}

// A rank that no other can serve waits for ever, and the world says so: the tests could not pass
// otherwise.
TEST(StreamWorldTest, FindsWhoWaitsForEver) {
  std::vector<CaseRank> ranks(2);
  std::vector<Schedule> schedules;
  for (const int peer : {1, 0}) {
    ScheduleBuilder builder;
    builder.Await(peer);
    builder.Fence();
    builder.Notify(peer);
    schedules.push_back(builder.Finish());
  }
  CaseReducer reducer(true);
  EXPECT_NE(StreamWorld(schedules, &ranks, &reducer, 1, false).Play(), "");
}

// ---- All algorithms -----------------------------------------------------------------------------

std::string Check(const Algorithm& algorithm, const CaseSpec& spec, bool may_leave_ahead,
                  const StreamWorld::Nodes& chained = {}) {
  std::vector<CaseRank> ranks = MakeCase(spec);
  std::vector<Schedule> schedules;
  for (const CaseRank& rank : ranks) {
    if (!Fits(algorithm, rank.problem)) {
      return "";
    }
    schedules.push_back(MakeSchedule(algorithm, rank.problem));
  }
  CaseReducer reducer(spec.commutative);
  StreamWorld world(schedules, &ranks, &reducer, spec.seed, may_leave_ahead, chained);
  if (std::string wrong = world.Play(); !wrong.empty()) {
    return wrong;
  }
  for (CaseRank& rank : ranks) {
    rank.output.resize(std::min(rank.output.size(), rank.expected.size()));
    if (rank.output != rank.expected) {
      return "rank " + std::to_string(rank.problem.rank) + " has something else";
    }
  }
  return "";
}

class StreamOrdersTest : public testing::TestWithParam<std::tuple<Collective, int>> {
 protected:
  const Collective collective_ = std::get<0>(GetParam());
  const int size_ = std::get<1>(GetParam());

  std::set<int> Roots() const {
    return HasRoot(collective_) ? std::set<int>{0, size_ - 1} : std::set<int>{0};
  }
  // In place or not, with and without blocks of their own sizes, ordered or not.
  void CheckAll(const Algorithm& algorithm, CaseSpec spec) {
    for (int form = 0; form < 8; ++form) {
      spec.in_place = (form & 1) != 0 && HasInPlace(collective_);
      spec.has_blocks = (form & 2) != 0 && HasBlocks(collective_);
      spec.commutative = (form & 4) == 0;
      spec.seed++;
      for (const bool ahead : {false, true}) {
        ASSERT_EQ(Check(algorithm, spec, ahead), "") << algorithm.name << ": " << spec.Text();
      }
      if (form % 3 != 0) {
        continue;
      }
      StreamWorld::Nodes nodes = spec.node_of;  // where they are not said, each rank has its own
      for (int i = static_cast<int>(nodes.size()); i < size_; ++i) {
        nodes.push_back(i);
      }
      ASSERT_EQ(Check(algorithm, spec, false, nodes), "")
          << "chained " << algorithm.name << ": " << spec.Text();
    }
  }
  static std::vector<int> Nodes(int kind, int size) {
    std::vector<int> node_of;
    for (int i = 0; i < size && kind != 0; ++i) {
      node_of.push_back(kind == 1 ? i / 2 : i % 3);
    }
    return node_of;
  }
};

TEST_P(StreamOrdersTest, GiveWhatASimpleComputationGives) {
  for (const Algorithm& algorithm : AlgorithmsOf(collective_)) {
    for (const int root : Roots()) {
      for (int nodes = 0; nodes < 3; ++nodes) {
        for (const size_t count : {0, 1, 37, 300}) {
          CaseSpec spec{.collective = collective_, .size = size_, .count = count, .root = root};
          spec.node_of = Nodes(nodes, size_);
          spec.segment_bytes = count > 100 ? 500 : 0;
          spec.seed = static_cast<uint64_t>(nodes) + count;
          CheckAll(algorithm, spec);
          if (HasFatalFailure()) {
            return;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StreamOrdersTest,
    testing::Combine(testing::Values(Collective::kBarrier, Collective::kBcast, Collective::kGather,
                                     Collective::kScatter, Collective::kAllgather,
                                     Collective::kAlltoall, Collective::kReduce,
                                     Collective::kAllreduce, Collective::kReduceScatter,
                                     Collective::kScan, Collective::kExscan),
                     testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17)),
    [](const auto& info) {
      return std::string(CollectiveName(std::get<0>(info.param))) + "_" +
             std::to_string(std::get<1>(info.param));
    });

}  // namespace
}  // namespace ferry::collective
