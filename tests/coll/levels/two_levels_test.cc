// Collectives in two levels: all layouts of ranks on nodes, roots anywhere, in place or not, nodes
// without a board; and what goes wrong in each of their parts.
#include "coll/levels/two_levels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/coll/collective_case.h"
#include "tests/coll/levels/thread_nodes.h"

namespace ferry::collective {
namespace {

constexpr Collective kAllOfThem[] = {Collective::kBarrier, Collective::kBcast, Collective::kReduce,
                                     Collective::kAllreduce, Collective::kAllgather};

// All sizes go in two levels.
SelectionTable ForAllSizes() {
  std::vector<SelectionRule> rules;
  for (const Collective collective : kAllOfThem) {
    rules.push_back({.collective = collective, .algorithm = kBoardName});
  }
  return SelectionTable(std::move(rules));
}

struct Layout {
  const char* name;
  std::vector<int> node_of;
  std::map<int, bool> has_board = {};
};

class TwoLevelsTest : public ::testing::TestWithParam<Layout> {
 protected:
  // Returns whether it went in two levels.
  bool Run(ThreadNodes& nodes, const CaseSpec& spec) {
    static const SelectionTable table = ForAllSizes();
    std::vector<CaseRank> ranks = MakeCase(spec);
    std::vector<char> took(ranks.size());
    nodes.RunAll([&](int i) {
      CaseRank& rank = ranks[static_cast<size_t>(i)];
      CaseReducer reducer(spec.commutative);
      if (!nodes.Takes(i, rank.problem, table)) {
        nodes.Skip(i);
        return;
      }
      took[static_cast<size_t>(i)] = 1;
      const RunFailure failure =
          nodes.Run(i, rank.problem, {rank.input.data(), rank.output.data(), &reducer});
      EXPECT_EQ(failure.code, ErrorCode::kOk) << spec.Text();
    });
    for (size_t i = 0; i < ranks.size(); ++i) {
      EXPECT_EQ(took[i], took[0]) << spec.Text();
      if (took[i] != 0) {
        EXPECT_EQ(ranks[i].output, ranks[i].expected) << spec.Text() << " rank " << i;
      }
    }
    EXPECT_EQ(nodes.left_over(), 0U);
    return took[0] != 0;
  }
};

TEST_P(TwoLevelsTest, GiveWhatTheyShould) {
  ThreadNodes nodes(GetParam().node_of, GetParam().has_board);
  int ran = 0;
  for (const Collective collective : kAllOfThem) {
    for (const size_t count : {0, 1, 600, 5000}) {
      for (const bool in_place : {false, true}) {
        for (const bool commutative : {true, false}) {
          for (int root = 0; root < (HasRoot(collective) ? nodes.size() : 1); ++root) {
            const CaseSpec spec{.collective = collective,
                                .size = nodes.size(),
                                .count = count,
                                .root = root,
                                .in_place = in_place,
                                .commutative = commutative,
                                .seed = static_cast<uint64_t>(ran)};
            ran += Run(nodes, spec) ? 1 : 0;
            if (HasFailure()) {
              return;
            }
          }
        }
      }
    }
  }
  EXPECT_GE(ran, 100);
}

TEST_P(TwoLevelsTest, NobodyLeavesABarrierEarly) {
  ThreadNodes nodes(GetParam().node_of, GetParam().has_board);
  std::vector<CaseRank> ranks = MakeCase({.size = nodes.size()});
  std::atomic<int> came{0};
  for (int round = 1; round <= 100; ++round) {
    nodes.RunAll([&](int i) {
      came++;
      EXPECT_EQ(nodes.Run(i, ranks[static_cast<size_t>(i)].problem, {}).code, ErrorCode::kOk);
      EXPECT_EQ(came, round * nodes.size());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, TwoLevelsTest,
    ::testing::Values(Layout{"two_by_two", {0, 0, 1, 1}}, Layout{"in_turn", {0, 1, 0, 1}},
                      Layout{"uneven", {3, 3, 3, 1, 2, 2}}, Layout{"mixed_up", {1, 0, 0, 1, 2, 1}},
                      Layout{"one_node_without_a_board", {0, 0, 0, 1, 1, 1}, {{1, false}}},
                      Layout{"no_boards", {0, 0, 1, 1, 1}, {{0, false}, {1, false}}}),
    [](const auto& layout) { return layout.param.name; });

// ---- Failures -----------------------------------------------------------------------------------

// Ranks 0 to 2 are on one node, 3 and 4 on another; 0 and 3 are leaders.
class TwoLevelsFailureTest : public ::testing::Test {
 protected:
  using Moment = ThreadNodes::Moment;

  struct Call {
    Collective collective = Collective::kAllreduce;
    size_t count = 8;
    int root = 0;
  };

  RunFailure CallOne(int rank, const Call& call) {
    std::vector<CaseRank> ranks = MakeCase({.collective = call.collective,
                                            .size = nodes_.size(),
                                            .count = call.count,
                                            .root = call.root});
    CaseRank& own = ranks[static_cast<size_t>(rank)];
    CaseReducer reducer(true);
    return nodes_.Run(rank, own.problem, {own.input.data(), own.output.data(), &reducer});
  }
  void RunAll(const Call& call, const std::vector<int>& without = {}) {
    failures_.assign(5, {});
    nodes_.RunAll([&](int rank) { failures_[static_cast<size_t>(rank)] = CallOne(rank, call); },
                  without);
  }
  void ExpectThatAllFailBut(int dead) {
    bool is_named = false;
    for (int rank = 0; rank < 5; ++rank) {
      const RunFailure& failure = failures_[static_cast<size_t>(rank)];
      if (rank != dead) {
        EXPECT_NE(failure.code, ErrorCode::kOk) << "rank " << rank << " without " << dead;
        is_named = is_named || (failure.code == ErrorCode::kPeerDied && failure.peer == dead);
      }
    }
    EXPECT_TRUE(is_named) << dead;
  }
  void ExpectThatAllWorks() {
    for (const Collective collective : kAllOfThem) {
      RunAll({.collective = collective, .count = 5000, .root = 4});
      for (int rank = 0; rank < 5; ++rank) {
        EXPECT_EQ(failures_[static_cast<size_t>(rank)].code, ErrorCode::kOk) << rank;
      }
    }
    EXPECT_EQ(nodes_.left_over(), 0U);
  }

  ThreadNodes nodes_{{0, 0, 0, 1, 1}};
  std::vector<RunFailure> failures_;
};

class DeadRankTest : public TwoLevelsFailureTest,
                     public ::testing::WithParamInterface<std::tuple<Collective, size_t>> {
 protected:
  Call call() const { return {std::get<0>(GetParam()), std::get<1>(GetParam()), 1}; }
};

TEST_P(DeadRankTest, BeforeItComes) {
  for (const int dead : {0, 2, 3, 4}) {
    ThreadNodes fresh({0, 0, 0, 1, 1});
    std::vector<RunFailure> failures(5);
    fresh.Kill(dead);
    failures_.clear();
    std::vector<CaseRank> ranks =
        MakeCase({.collective = call().collective, .size = 5, .count = call().count, .root = dead});
    fresh.RunAll(
        [&](int rank) {
          CaseRank& own = ranks[static_cast<size_t>(rank)];
          CaseReducer reducer(true);
          failures[static_cast<size_t>(rank)] =
              fresh.Run(rank, own.problem, {own.input.data(), own.output.data(), &reducer});
        },
        {dead});
    if (call().collective == Collective::kReduce) {
      continue;  // the others only give
    }
    failures_ = std::move(failures);
    ExpectThatAllFailBut(dead);
  }
}

// A leader dies before the leaders' part, or before it gives its node the result. The other node
// may have it by then.
TEST_P(DeadRankTest, OfALeaderBetweenTheParts) {
  nodes_.KillAt(3, Moment::kBeforeMessages);
  RunAll(call());
  if (call().collective != Collective::kBcast && call().collective != Collective::kReduce) {
    ExpectThatAllFailBut(3);
  } else if (call().collective == Collective::kReduce) {
    EXPECT_EQ(failures_[1].code, ErrorCode::kPeerDied);
    EXPECT_EQ(failures_[1].peer, 3);
  } else {
    EXPECT_EQ(failures_[4].code, ErrorCode::kPeerDied);
  }
}

TEST_P(DeadRankTest, OfALeaderAfterItsPart) {
  nodes_.KillAt(3, Moment::kAfterMessages);
  RunAll(call());
  if (call().collective == Collective::kReduce) {
    EXPECT_EQ(failures_[1].code, ErrorCode::kOk);
  } else {
    EXPECT_EQ(failures_[4].code, ErrorCode::kPeerDied);
    EXPECT_EQ(failures_[4].peer, 3);
    EXPECT_EQ(failures_[2].code, ErrorCode::kOk);
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, DeadRankTest,
                         ::testing::Combine(::testing::ValuesIn(kAllOfThem),
                                            ::testing::Values(8, 5000)),
                         [](const auto& info) {
                           return std::string(CollectiveName(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_F(TwoLevelsFailureTest, OtherCountsAreToldOnAllRanks) {
  for (const int odd : {0, 1, 3, 4}) {
    nodes_.RunAll([&](int rank) {
      const RunFailure failure = CallOne(rank, {.count = rank == odd ? 9U : 8U});
      EXPECT_NE(failure.code, ErrorCode::kOk) << "rank " << rank << ", " << odd << " is odd";
      if (rank == 3 && odd == 0) {  // the other leader
        EXPECT_EQ(failure.mismatch, RunFailure::Mismatch::kSize);
      }
    });
    ExpectThatAllWorks();
  }
}

TEST_F(TwoLevelsFailureTest, AnotherCollectiveOnANodeIsToldByTheProgramsName) {
  nodes_.RunAll([&](int rank) {
    const RunFailure failure =
        CallOne(rank, {.collective = rank == 4 ? Collective::kAllgather : Collective::kBarrier});
    EXPECT_NE(failure.code, ErrorCode::kOk) << rank;
    if (rank == 3) {
      EXPECT_EQ(failure.mismatch, RunFailure::Mismatch::kCollective);
      EXPECT_EQ(failure.other, static_cast<int>(Collective::kAllgather) + 1);
      EXPECT_EQ(failure.peer, 4);
    }
  });
  ExpectThatAllWorks();
}

TEST_F(TwoLevelsFailureTest, WhoRenouncesOrSkipsIsNotWaitedFor) {
  for (const bool skips : {false, true}) {
    for (const int rank_without : {1, 4}) {
      nodes_.RunAll([&](int rank) {
        if (rank == rank_without) {
          skips ? nodes_.Skip(rank) : nodes_.Renounce(rank);
        } else {
          EXPECT_NE(CallOne(rank, {}).code, ErrorCode::kOk) << rank;
        }
      });
      ExpectThatAllWorks();
    }
  }
}

}  // namespace
}  // namespace ferry::collective
