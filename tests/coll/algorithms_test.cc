// Every algorithm, on ranks that start and communicate in any order, is compared with a simple
// computation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coll/algorithms/algorithm.h"
#include "tests/coll/collective_case.h"
#include "tests/coll/simulated_world.h"
#include "tests/support/slice.h"

namespace ferry::collective {
namespace {

// Plays the case twice with the same runs: a schedule serves many starts. Returns an empty text if
// all is right.
std::string Check(const Algorithm& algorithm, const CaseSpec& spec) {
  SimulatedWorld world(spec.size, spec.seed);
  world.may_stall = spec.seed % 2 == 0;
  CaseReducer reducer(spec.commutative);
  std::vector<CaseRank> ranks = MakeCase(spec);
  for (const CaseRank& rank : ranks) {
    if (!Fits(algorithm, rank.problem)) {
      return "";
    }
  }
  const Runs runs = PrepareRuns(&world, algorithm, ranks);
  for (uint32_t round = 0; round < 2; ++round) {
    CaseSpec again = spec;
    again.seed += spec.has_blocks ? 0 : round * 1000;  // blocks would differ
    ranks = MakeCase(again);
    if (!PlayRuns(&world, runs, &ranks, &reducer, round)) {
      return "somebody waits for ever";
    }
    for (CaseRank& rank : ranks) {
      const std::string who = "rank " + std::to_string(rank.problem.rank);
      if (runs[rank.problem.rank]->failure().code != ErrorCode::kOk) {
        return who + " failed";
      }
      rank.output.resize(std::min(rank.output.size(), rank.expected.size()));
      if (rank.output != rank.expected) {
        return who + " has something else";
      }
    }
    if (world.left_over() != 0) {
      return "messages are left over";
    }
  }
  return "";
}

std::vector<int> Layout(int kind, int size) {
  std::vector<int> node_of;
  for (int i = 0; i < size && kind != 0; ++i) {
    node_of.push_back(kind == 1 ? i / 2 : kind == 2 ? i % 3 : 7 * (i < 2 ? 1 : 0) + i / 4);
  }
  return node_of;
}

class AlgorithmsTest : public testing::TestWithParam<std::tuple<Collective, int>> {
 protected:
  const Collective collective_ = std::get<0>(GetParam());
  const int size_ = std::get<1>(GetParam());

  std::set<int> Roots() const {
    return HasRoot(collective_) ? std::set<int>{0, size_ / 2, size_ - 1} : std::set<int>{0};
  }
  std::vector<bool> Both(bool applies) const {
    return applies ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }
  void CheckAll(const Algorithm& algorithm, CaseSpec spec) {
    for (const bool in_place : Both(HasInPlace(collective_))) {
      for (const bool ordered : Both(IsReduction(collective_))) {
        for (const bool blocks : Both(HasBlocks(collective_))) {
          spec.in_place = in_place;
          spec.commutative = !ordered;
          spec.has_blocks = blocks;
          spec.seed++;
          ASSERT_EQ(Check(algorithm, spec), "") << algorithm.name << ": " << spec.Text();
        }
      }
    }
  }
};

TEST_P(AlgorithmsTest, GiveWhatASimpleComputationGives) {
  for (const Algorithm& algorithm : AlgorithmsOf(collective_)) {
    for (const int root : Roots()) {
      for (int layout = 0; layout < 4; ++layout) {
        for (const size_t count : {0, 1, 3, 37, 600}) {
          for (const size_t segment : {size_t{0}, count > 100 ? size_t{1000} : size_t{64}}) {
            CaseSpec spec{.collective = collective_, .size = size_, .count = count, .root = root};
            spec.node_of = Layout(layout, size_);
            spec.segment_bytes = segment;
            spec.seed = static_cast<uint64_t>(layout) + count;
            const bool has_turn = size_ < 10 || layout % 2 == size_ % 2;  // many ranks take long
            if (has_turn && (layout == 0 || !spec.node_of.empty())) {
              CheckAll(algorithm, spec);
            }
            if (HasFatalFailure()) {
              return;
            }
          }
        }
      }
    }
  }
}

std::string TestName(const testing::TestParamInfo<std::tuple<Collective, int>>& info) {
  return std::string(CollectiveName(std::get<0>(info.param))) + "_" +
         std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    All, AlgorithmsTest,
    testing::Combine(testing::Values(Collective::kBcast, Collective::kGather, Collective::kScatter,
                                     Collective::kAllgather, Collective::kAlltoall,
                                     Collective::kReduce, Collective::kAllreduce,
                                     Collective::kReduceScatter, Collective::kScan,
                                     Collective::kExscan),
                     testing::ValuesIn(tests::Slice<int>({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16},
                                                         {10, 13, 14, 15, 17}))),
    TestName);

// ---- Barrier ------------------------------------------------------------------------------------

TEST(BarrierTest, NobodyLeavesBeforeAllHaveCome) {
  for (const Algorithm& algorithm : AlgorithmsOf(Collective::kBarrier)) {
    for (int size = 1; size <= 17; ++size) {
      for (int layout = 0; layout < 4; ++layout) {
        CaseSpec spec{.collective = Collective::kBarrier, .size = size};
        spec.node_of = Layout(layout, size);
        std::vector<CaseRank> ranks = MakeCase(spec);
        if (!Fits(algorithm, ranks[0].problem)) {
          continue;
        }
        SimulatedWorld world(size, static_cast<uint64_t>(size * 4 + layout));
        const Runs runs = PrepareRuns(&world, algorithm, ranks);
        int started = 0;
        std::set<int> has_started;
        const auto start = [&](int rank) {
          ++started;
          has_started.insert(rank);
          world.runner(rank).Start(runs[rank].get(), {}, 0);
        };
        const auto is_done = [&](int rank) { return runs[rank]->is_done(); };
        const auto look = [&] {
          for (const int rank : has_started) {
            ASSERT_TRUE(!is_done(rank) || started == size) << algorithm.name << " " << spec.Text();
          }
        };
        ASSERT_TRUE(world.Play(start, is_done, look)) << algorithm.name << " " << spec.Text();
        EXPECT_EQ(world.left_over(), 0u);
      }
    }
  }
}

// ---- The promises of the table of algorithms ----------------------------------------------------

TEST(AlgorithmTest, TheFirstOfEachCollectiveFitsEverything) {
  for (size_t i = 0; i < kCollectives; ++i) {
    const auto algorithms = AlgorithmsOf(static_cast<Collective>(i));
    ASSERT_FALSE(algorithms.empty());
    EXPECT_EQ(algorithms.front().fits, nullptr) << algorithms.front().name;
  }
}

TEST(AlgorithmTest, NamesAreUniqueAndFound) {
  for (size_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm& algorithm : AlgorithmsOf(collective)) {
      EXPECT_EQ(FindAlgorithm(collective, algorithm.name), &algorithm);
      EXPECT_EQ(algorithm.collective, collective);
    }
  }
  EXPECT_EQ(FindAlgorithm(Collective::kBcast, "none"), nullptr);
}

}  // namespace
}  // namespace ferry::collective
