// Every collective by a board: all counts and sizes around the limits, roots, in place or not,
// short and long ways, with any member slow.
#include "coll/board/board_run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/coll/board/limits.h"
#include "tests/coll/board/thread_node.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {
namespace {

const BoardLimits kBoth = Limits(20000, 20000);

constexpr Collective kCollectivesOfBoards[] = {
    Collective::kBarrier,   Collective::kBcast,         Collective::kGather, Collective::kScatter,
    Collective::kAllgather, Collective::kAlltoall,      Collective::kReduce, Collective::kAllreduce,
    Collective::kScan,      Collective::kReduceScatter, Collective::kExscan};

struct RunSpec {
  const char* name;
  int members;
  BoardLimits limits;
  bool crowded;
  bool has_pauses = false;
};

class BoardRunTest : public ::testing::TestWithParam<RunSpec> {
 protected:
  // Runs the case on the node, as its collective `number`. Returns how many members could.
  int Run(ThreadNode& node, uint64_t number, const CaseSpec& spec) {
    std::vector<CaseRank> ranks = MakeCase(spec);
    std::vector<char> ran(ranks.size());
    node.Run([&](int member) {
      CaseRank& rank = ranks[static_cast<size_t>(member)];
      CaseReducer reducer(spec.commutative);
      if (!CanRunOnBoard(rank.problem, GetParam().limits)) {
        return;
      }
      RunFailure failure;
      EXPECT_EQ(RunOnBoard(&node.board(member), number, rank.problem,
                           {rank.input.data(), rank.output.data(), &reducer}, GetParam().limits,
                           &failure),
                BoardResult::kDone);
      EXPECT_EQ(failure.code, ErrorCode::kOk) << spec.Text();
      ran[static_cast<size_t>(member)] = 1;
    });
    int count = 0;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ran[i] != 0) {
        ranks[i].output.resize(ranks[i].expected.size());  // in place, the rest belongs to no rank
        EXPECT_EQ(ranks[i].output, ranks[i].expected) << spec.Text() << " rank " << i;
        count++;
      }
    }
    return count;
  }
};

TEST_P(BoardRunTest, EveryCollectiveGivesWhatItShould) {
  ThreadNode node(GetParam().members, GetParam().crowded, GetParam().has_pauses);
  uint64_t number = 0;
  int ran = 0;
  for (const Collective collective : kCollectivesOfBoards) {
    for (const size_t count : {0, 1, 3, 6, 7, 100, 512, 513, 1400, 4000, 9000}) {
      for (const bool in_place : {false, true}) {
        for (const bool commutative : {true, false}) {
          CaseSpec spec{.collective = collective,
                        .size = GetParam().members,
                        .count = count,
                        .root = static_cast<int>(number) % GetParam().members,
                        .in_place = in_place,
                        .commutative = commutative,
                        .seed = number};
          const int members = Run(node, ++number, spec);
          ASSERT_TRUE(members == 0 || members == GetParam().members) << spec.Text();
          ran += members == 0 ? 0 : 1;
          if (HasFailure()) {
            return;
          }
        }
      }
    }
  }
  EXPECT_GE(ran, 200);
}

// Members do not wait for each other between collectives: some are far ahead, others far behind.
TEST_P(BoardRunTest, MembersMayBeAheadAndBehind) {
  constexpr int kRounds = 300;
  const int members = GetParam().members;
  ThreadNode node(members, GetParam().crowded, GetParam().has_pauses);
  std::vector<std::vector<CaseRank>> rounds;
  for (int i = 0; i < kRounds; ++i) {
    rounds.push_back(MakeCase({.collective = kCollectivesOfBoards[i % 11],
                               .size = members,
                               .count = static_cast<size_t>(i * 37 % 1500),
                               .root = i / 7 % members,
                               .seed = static_cast<uint64_t>(i)}));
  }
  node.Run([&](int member) {
    CaseReducer reducer(true);
    for (int i = 0; i < kRounds; ++i) {
      CaseRank& rank = rounds[static_cast<size_t>(i)][static_cast<size_t>(member)];
      RunFailure failure;
      if (CanRunOnBoard(rank.problem, GetParam().limits)) {
        (void)RunOnBoard(&node.board(member), static_cast<uint64_t>(i) + 1, rank.problem,
                         {rank.input.data(), rank.output.data(), &reducer}, GetParam().limits,
                         &failure);
        EXPECT_EQ(failure.code, ErrorCode::kOk);
        EXPECT_EQ(rank.output, rank.expected) << "round " << i << " rank " << member;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, BoardRunTest,
    ::testing::Values(RunSpec{"pieces_2", 2, kSlicesOnly, false},
                      RunSpec{"pieces_5_crowded", 5, kSlicesOnly, true},
                      RunSpec{"both_3_with_pauses", 3, kBoth, false, true},
                      RunSpec{"both_4_crowded_with_pauses", 4, kBoth, true, true},
                      RunSpec{"direct_2", 2, kDirectOnly, false},
                      RunSpec{"direct_3_crowded", 3, kDirectOnly, true},
                      RunSpec{"both_4_crowded", 4, kBoth, true},
                      RunSpec{"as_it_comes_3", 3, LimitsFor(3, false, true), false},
                      RunSpec{"as_it_comes_2_crowded", 2, LimitsFor(2, true, false), true}),
    [](const auto& run) { return run.param.name; });

// ---- Problems that a board refuses, and memory that CPUs cannot load from ----------------------

TEST(BoardRun, RefusesWhatItCannotDo) {
  Problem problem;
  problem.collective = Collective::kAlltoall;
  problem.size = 2;
  problem.block_bytes = 100;
  EXPECT_TRUE(CanRunOnBoard(problem, kSlicesOnly));
  problem.has_blocks = true;
  EXPECT_FALSE(CanRunOnBoard(problem, kSlicesOnly));
  EXPECT_FALSE(CanRunOnBoard(problem, kDirectOnly));
  problem.has_blocks = false;
  problem.block_bytes = size_t{1} << 20;
  EXPECT_FALSE(CanRunOnBoard(problem, kSlicesOnly));
  EXPECT_TRUE(CanRunOnBoard(problem, kDirectOnly));
  problem.in_place = true;
  EXPECT_FALSE(CanRunOnBoard(problem, kDirectOnly));
  problem.collective = Collective::kNeighbourAlltoall;
  problem.block_bytes = 8;
  EXPECT_FALSE(CanRunOnBoard(problem, kSlicesOnly));
  // An element that does not fill a cell.
  Problem reduction;
  reduction.collective = Collective::kAllreduce;
  reduction.size = 2;
  reduction.block_bytes = 10000;
  reduction.element_bytes = 5000;
  EXPECT_FALSE(CanRunOnBoard(reduction, kSlicesOnly));
  EXPECT_TRUE(CanRunOnBoard(reduction, kDirectOnly));
}

class StreamMemoryTest : public ::testing::Test {
 protected:
  // Runs a collective in which rank 0's own data are memory that only streams reach.
  bool RunFrom(Collective collective, size_t count, const BoardLimits& limits) {
    ranks_ = MakeCase({.collective = collective, .size = 2, .count = count});
    std::vector<uint8_t>& own =
        collective == Collective::kBcast ? ranks_[0].output : ranks_[0].input;
    node_.SetByStream(own.data(), own.size());
    return RunCase(limits);
  }
  // An allreduce of `count` words in which rank 1's output is memory that only streams reach.
  // Returns whether the board took part.
  bool Run(size_t count, const BoardLimits& limits) {
    ranks_ = MakeCase({.collective = Collective::kAllreduce, .size = 2, .count = count});
    node_.SetByStream(ranks_[1].output.data(), ranks_[1].output.size());
    return RunCase(limits);
  }
  // `device` reduces.
  bool RunCase(const BoardLimits& limits, int device = kHostMemory) {
    std::vector<BoardResult> results(2);
    node_.Run([&](int member) {
      CaseRank& rank = ranks_[static_cast<size_t>(member)];
      CaseReducer reducer(true);
      RunFailure failure;
      results[static_cast<size_t>(member)] =
          RunOnBoard(&node_.board(member), ++numbers_[member], rank.problem,
                     {rank.input.data(), rank.output.data(), &reducer, device}, limits, &failure);
      EXPECT_EQ(failure.code, ErrorCode::kOk);
    });
    EXPECT_EQ(results[0], results[1]);
    EXPECT_NE(results[0], BoardResult::kNotForBoards);
    return results[0] == BoardResult::kDone;
  }

  ThreadNode node_{2, true};
  std::vector<CaseRank> ranks_;
  uint64_t numbers_[2] = {};
};

TEST_F(StreamMemoryTest, IsCopiedWhereBuffersAreShort) {
  ASSERT_TRUE(Run(2000, kSlicesOnly));
  EXPECT_EQ(ranks_[0].output, ranks_[0].expected);
  EXPECT_EQ(ranks_[1].output, ranks_[1].expected);
  EXPECT_EQ(node_.copies(), 1U);  // the result, copied once
}

TEST_F(StreamMemoryTest, IsLeftToMessagesWhereBuffersAreLong) {
  const std::vector<uint8_t> before =
      MakeCase({.collective = Collective::kAllreduce, .size = 2, .count = 2000})[1].output;
  ASSERT_FALSE(Run(2000, kDirectOnly));
  EXPECT_EQ(ranks_[1].output, before);
  ASSERT_TRUE(Run(2000, kSlicesOnly));  // and the board works on
}

TEST_F(StreamMemoryTest, IsLeftToMessagesWhereItIsSentOn) {
  for (const Collective collective :
       {Collective::kBcast, Collective::kAllgather, Collective::kAlltoall}) {
    EXPECT_TRUE(RunFrom(collective, 20000, kSlicesOnly)) << CollectiveName(collective);
    EXPECT_EQ(ranks_[1].output, ranks_[1].expected);
    // A broadcast is read from the root's memory.
    EXPECT_EQ(RunFrom(collective, 90000, kSlicesOnly), collective == Collective::kBcast)
        << CollectiveName(collective);
  }
}

// A reduction that a device had better do; with two ranks, whose root sees the other's first slice.
TEST_F(StreamMemoryTest, IsLeftToMessagesWhereADeviceReduces) {
  for (const size_t count : {20000, 50000}) {
    for (const int device : {kHostMemory, 0}) {
      ranks_ = MakeCase({.collective = Collective::kReduce, .size = 2, .count = count});
      node_.SetByStream(ranks_[1].input.data(), ranks_[1].input.size());
      const bool on_board = RunCase(kSlicesOnly, device);
      EXPECT_EQ(on_board, device == kHostMemory || count == 20000) << count;
      EXPECT_EQ(ranks_[0].output == ranks_[0].expected, on_board) << count;
    }
  }
}

}  // namespace
}  // namespace ferry::collective
