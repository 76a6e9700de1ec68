// `ferryctl tune --collectives` works from times that are known exactly.
// tests/mpi/e2e/collective_tune_test.cc runs the program itself.
#include "tools/tune/collective_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coll/algorithms/algorithm.h"
#include "tools/tune/meter_text.h"

namespace ferry::tools {
namespace {

using collective::Collective;
using collective::NodeLayout;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kSegment = 128 << 10;

// Times of one collective on four ranks of a node, by size.
TrialResult Times(Collective collective, const Candidate& candidate,
                  const std::vector<std::pair<uint64_t, double>>& times,
                  const std::vector<int>& nodes = {0, 0, 0, 0}) {
  TrialResult result;
  result.trial.candidates = {{collective, candidate}};
  result.times.node_of_rank = {nodes};
  for (const auto& [size, microseconds] : times) {
    result.times.microseconds[{0, collective, size}] = microseconds;
  }
  return result;
}

TEST(PairTest, ComesBackAsItWas) {
  const StatusOr<PairTimes> times = ReadPair(PairLine({.few_us = 0.25, .many_us = 38.5}));
  ASSERT_TRUE(times.ok()) << times.status().ToString();
  EXPECT_EQ(times->few_us, 0.25);
  EXPECT_EQ(times->many_us, 38.5);
  for (const char* bad : {"", "pair", "pair 1 2", "pair 1 2 3\n", "pair 0 1\n", "pair nan 1\n"}) {
    EXPECT_EQ(ReadPair(bad).status().code(), ErrorCode::kCorrupt) << bad;
  }
}

// ---- Candidates ---------------------------------------------------------------------------------

TEST(CandidatesTest, PiecesAreTriedWhereTheyMakeADifference) {
  const std::vector<Candidate> bcast = CandidatesOf(Collective::kBcast);
  EXPECT_THAT(bcast, Contains(Candidate{"chain", 0}));
  EXPECT_THAT(bcast, Contains(Candidate{"chain", kSegment}));
  EXPECT_THAT(CandidatesOf(Collective::kBarrier), Not(Contains(Candidate{"linear", kSegment})));
}

TEST(TrialsTest, EachCandidateHasItsTurn) {
  const std::vector<Collective> collectives = {Collective::kBcast, Collective::kScan};
  std::set<std::string> tried;
  for (const Trial& trial : TrialsOf(collectives)) {
    std::set<Collective> here;
    for (const auto& [collective, candidate] : trial.candidates) {
      EXPECT_TRUE(here.insert(collective).second) << "once in a trial";
      EXPECT_TRUE(tried.insert(Trial{{{collective, candidate}}}.Names()).second);
    }
  }
  const std::vector<Collective> with_barrier = {Collective::kScan, Collective::kBarrier};
  for (const Trial& trial : TrialsOf(with_barrier)) {
    EXPECT_EQ(trial.candidates.size(), 1u) << trial.Names();
  }
  size_t wanted = 0;
  for (const Collective collective : collectives) {
    wanted += CandidatesOf(collective).size();
  }
  EXPECT_EQ(tried.size(), wanted);
  EXPECT_EQ(
      (Trial{{{Collective::kBcast, {"chain", 5}}, {Collective::kScan, {"linear", 0}}}}.Names()),
      "bcast=chain:5,scan=linear");
}

// ---- The choice ---------------------------------------------------------------------------------

TEST(CompareTest, TheFastestCountsIfItIsWorthIt) {
  // On so few ranks of several nodes the built-in choice is linear.
  const std::vector<int> nodes = {0, 0, 1, 1};
  const std::vector<TrialResult> results = {
      Times(Collective::kAlltoall, {"linear", 0}, {{8, 100}, {64, 100}}, nodes),
      Times(Collective::kAlltoall, {"bruck", 0}, {{8, 96}, {64, 50}}, nodes)};
  const std::vector<Comparison> found = Compare(results);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].built_in, (Candidate{"linear", 0}));
  EXPECT_EQ(found[0].best, (Candidate{"linear", 0})) << "4 % is noise";
  EXPECT_EQ(found[1].best, (Candidate{"bruck", 0}));
  EXPECT_EQ(found[1].best_us, 50);
  EXPECT_EQ(found[1].built_in_us, 100);
  EXPECT_EQ(found[1].ranks, 4u);
  EXPECT_EQ(found[1].layout, NodeLayout::kMixed);
}

TEST(CompareTest, OnOneNodeTheBoardIsBuiltIn) {
  const std::vector<TrialResult> results = {
      Times(Collective::kAlltoall, {"board", 0}, {{8, 100}, {64, 100}}),
      Times(Collective::kAlltoall, {"board", 0}, {{8, 1}}, {0, 1}),  // there is none
      Times(Collective::kAlltoall, {"linear", 0}, {{8, 300}, {64, 50}})};
  const std::vector<Comparison> found = Compare(results);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].built_in, (Candidate{"board", 0}));
  EXPECT_EQ(found[0].best, (Candidate{"board", 0}));
  EXPECT_EQ(found[1].best, (Candidate{"linear", 0}));
  EXPECT_EQ(found[1].built_in_us, 100);
}

TEST(CompareTest, OfRepeatedTrialsTheShortestTimeCounts) {
  const std::vector<TrialResult> results = {
      Times(Collective::kScan, {"linear", 0}, {{8, 300}}),
      Times(Collective::kScan, {"recursive_doubling", 0}, {{8, 100}}),
      Times(Collective::kScan, {"linear", 0}, {{8, 20}})};
  const std::vector<Comparison> found = Compare(results);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].best.algorithm, "linear");
  EXPECT_EQ(found[0].best_us, 20);
}

// Where an algorithm does not fit, the time is that of another one.
TEST(CompareTest, WhatWasNotMeasuredDoesNotCount) {
  const std::vector<int> three = {0, 0, 0};
  const std::vector<TrialResult> results = {
      Times(Collective::kAllgather, {"linear", 0}, {{8, 10}}, three),
      Times(Collective::kAllgather, {"recursive_doubling", 0}, {{8, 1}}, three),  // powers of 2
      Times(Collective::kBcast, {"binomial", 0}, {{64, 10}}),
      Times(Collective::kBcast, {"chain", kSegment}, {{64, 1}})};  // one piece
  const std::vector<Comparison> found = Compare(results);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].best.algorithm, "binomial");
  EXPECT_EQ(found[1].best.algorithm, "linear");
}

TEST(RulesTest, LimitsLieBetweenSizesAndTheLastRuleHasNone) {
  const auto at = [](uint64_t size, const char* algorithm, uint32_t ranks) {
    Comparison comparison;
    comparison.collective = Collective::kBcast;
    comparison.layout = NodeLayout::kSpread;
    comparison.ranks = ranks;
    comparison.size_bytes = size;
    comparison.best.algorithm = algorithm;
    return comparison;
  };
  const std::vector<Comparison> cases = {at(16, "binomial", 2), at(64, "binomial", 2),
                                         at(1024, "chain", 2),  at(4096, "chain", 2),
                                         at(16, "binomial", 4), at(64, "binomial", 4)};
  const std::vector<collective::SelectionRule> rules = RulesFrom(cases);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].algorithm, "binomial");
  EXPECT_EQ(rules[0].max_bytes, 256u);
  EXPECT_EQ(rules[0].max_ranks, 2u);
  EXPECT_EQ(rules[0].layout, NodeLayout::kSpread);
  EXPECT_EQ(rules[1].algorithm, "chain");
  EXPECT_EQ(rules[1].max_bytes, UINT64_MAX);
  EXPECT_EQ(rules[2].max_ranks, 4u);
  EXPECT_EQ(rules[2].max_bytes, UINT64_MAX);
}

// Each measured case takes what was best there.
TEST(RulesTest, TheTableSaysWhatWasBest) {
  std::vector<TrialResult> results;
  for (const Candidate& candidate : CandidatesOf(Collective::kAllreduce)) {
    const double first = candidate.algorithm == "ring" ? 1 : 10;
    const double second = candidate.algorithm == "reduce_bcast" ? 1 : 10;
    results.push_back(Times(Collective::kAllreduce, candidate, {{64, first}, {1 << 20, second}}));
  }
  const collective::SelectionTable table(RulesFrom(Compare(results)));
  collective::Problem problem;
  problem.collective = Collective::kAllreduce;
  problem.size = 4;
  problem.element_bytes = 8;
  problem.block_bytes = 64;
  EXPECT_STREQ(table.Choose(problem).algorithm->name, "ring");
  problem.block_bytes = 1 << 20;
  EXPECT_STREQ(table.Choose(problem).algorithm->name, "reduce_bcast");
  problem.size = 3;
  EXPECT_STREQ(table.Choose(problem).algorithm->name, "reduce_bcast");
  problem.size = 5;  // was not measured
  EXPECT_STREQ(table.Choose(problem).algorithm->name,
               collective::SelectionTable().Choose(problem).algorithm->name);
}

// ---- The meter's words --------------------------------------------------------------------------

TEST(MeterTextTest, ReadsWhatItWrites) {
  const MeterKey key{1, Collective::kReduceScatter, 4096};
  const auto result =
      ReadMeter(CommunicatorLine(0, {0, 0}) + CommunicatorLine(1, {0, 3, 3}) + TimeLine(key, 12.5) +
                TimeLine({0, Collective::kBarrier, 0}, 0.125));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_THAT(result->node_of_rank, ElementsAre(ElementsAre(0, 0), ElementsAre(0, 3, 3)));
  EXPECT_EQ(result->microseconds.at(key), 12.5);
  EXPECT_EQ(result->microseconds.size(), 2u);
}

TEST(MeterTextTest, RefusesOtherWords) {
  for (const char* text :
       {"hello", "communicator 1 0,0", "communicator 0 ", "communicator 0 0,x", "communicator 0 -1",
        "time 0 bcast 8 1.0", "communicator 0 0\ntime 0 bcast 8",
        "communicator 0 0\ntime 0 boast 8 1", "communicator 0 0\ntime x bcast 8 1", "\n"}) {
    EXPECT_EQ(ReadMeter(text).status().code(), ErrorCode::kCorrupt) << text;
  }
}

TEST(MeterTextTest, NamesWhatCanBeMeasured) {
  EXPECT_EQ(*MeasuredCollective("allreduce"), Collective::kAllreduce);
  EXPECT_THAT(MeasuredCollective("neighbor_alltoall").status().message(),
              HasSubstr("these are: barrier, bcast, "));
}

}  // namespace
}  // namespace ferry::tools
