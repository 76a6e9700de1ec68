// Broadcasts and allgathers of memory that only streams reach, in part or as a whole: how many
// copies they take, and how they end where the memory cannot be imported, or a rank dies.
#include <gtest/gtest.h>

#include <vector>

#include "coll/board/board_run.h"
#include "tests/coll/board/limits.h"
#include "tests/coll/board/thread_node.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {
namespace {

constexpr int kMembers = 4;

// Elements: a line, a cell, several.
constexpr size_t kCounts[] = {1, 100, 5000};
// Of an allgather that is too long for one kernel.
constexpr size_t kLong = 40'000;

class DevicesTest : public ::testing::Test {
 protected:
  void Make(Collective collective, size_t count, bool in_place = false) {
    ranks_ = MakeCase({.collective = collective,
                       .size = kMembers,
                       .count = count,
                       .root = collective == Collective::kBcast ? 1 : 0,
                       .in_place = in_place});
  }
  // All buffers of these members are memory that only streams reach.
  void SetDevices(const std::vector<int>& members) {
    node_.SetByStream(nullptr, 0);
    for (const int member : members) {
      const CaseRank& rank = ranks_[static_cast<size_t>(member)];
      node_.AddByStream(rank.input.data(), rank.input.size());
      node_.AddByStream(rank.output.data(), rank.output.size());
    }
  }
  // Runs it once; all end in the same way.
  BoardResult Run(const BoardLimits& limits) {
    ++number_;
    copies_ = node_.copies();
    moves_ = node_.moves();
    spreads_ = node_.spreads();
    std::vector<BoardResult> results(kMembers);
    node_.Run([&](int member) {
      RunFailure failure;
      results[static_cast<size_t>(member)] = RunOne(member, limits, &failure);
      EXPECT_EQ(failure.code, ErrorCode::kOk);
    });
    for (const BoardResult result : results) {
      EXPECT_EQ(result, results[0]);
    }
    return results[0];
  }
  BoardResult RunOne(int member, const BoardLimits& limits, RunFailure* failure) {
    CaseRank& rank = ranks_[static_cast<size_t>(member)];
    CaseReducer reducer(true);
    return RunOnBoard(&node_.board(member), number_, rank.problem,
                      {rank.input.data(), rank.output.data(), &reducer}, limits, failure);
  }
  void ExpectRight() {
    for (const CaseRank& rank : ranks_) {
      EXPECT_EQ(rank.output, rank.expected);
    }
  }
  uint64_t copies() const { return node_.copies() - copies_; }
  uint64_t moves() const { return node_.moves() - moves_; }
  uint64_t spreads() const { return node_.spreads() - spreads_; }

  ThreadNode node_{kMembers, true};
  std::vector<CaseRank> ranks_;
  uint64_t number_ = 0;
  uint64_t copies_ = 0;
  uint64_t moves_ = 0;
  uint64_t spreads_ = 0;
};

TEST_F(DevicesTest, ABroadcastIsReadFromTheRoot) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const size_t count : kCounts) {
      Make(Collective::kBcast, count);
      SetDevices({0, 1, 2, 3});
      EXPECT_EQ(Run(limits), BoardResult::kDone);
      ExpectRight();
      EXPECT_EQ(copies(), 0U);
      EXPECT_EQ(moves(), 3U);
      Make(Collective::kBcast, count);
      SetDevices({1, 3});
      EXPECT_EQ(Run(limits), BoardResult::kDone);
      ExpectRight();
      EXPECT_EQ(copies(), 0U);
      EXPECT_EQ(moves(), 3U);
    }
  }
}

TEST_F(DevicesTest, ABroadcastFromHostMemoryIsBroughtToDevices) {
  for (const size_t count : kCounts) {
    Make(Collective::kBcast, count);
    SetDevices({0, 2});
    EXPECT_EQ(Run(kSlicesOnly), BoardResult::kDone);
    ExpectRight();
    EXPECT_EQ(copies(), 2U);
    EXPECT_EQ(moves(), 0U);
  }
}

TEST_F(DevicesTest, AShortAllgatherIsOneKernelOfTheFirst) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const size_t count : {size_t{1}, size_t{100}, size_t{2000}}) {
      for (const bool in_place : {false, true}) {
        Make(Collective::kAllgather, count, in_place);
        SetDevices({0, 1, 2, 3});
        EXPECT_EQ(Run(limits), BoardResult::kDone);
        ExpectRight();
        EXPECT_EQ(spreads(), 1U);
        EXPECT_EQ(copies() + moves(), 0U);
      }
    }
  }
}

TEST_F(DevicesTest, ALongAllgatherIsGatheredWithTheFirst) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const bool in_place : {false, true}) {
      Make(Collective::kAllgather, kLong, in_place);
      SetDevices({0, 1, 2, 3});
      EXPECT_EQ(Run(limits), BoardResult::kDone);
      ExpectRight();
      EXPECT_EQ(copies(), in_place ? 0U : 1U);
      EXPECT_EQ(moves(), 6U);
      EXPECT_EQ(spreads(), 0U);
    }
  }
}

// It is tried once.
TEST_F(DevicesTest, AnAllgatherWhoseBlocksNoKernelReachesIsGathered) {
  node_.RefuseSpreads();
  for (const uint64_t tries : {1U, 0U, 0U}) {
    for (const bool in_place : {false, true}) {
      Make(Collective::kAllgather, 100, in_place);
      SetDevices({0, 1, 2, 3});
      EXPECT_EQ(Run(kSlicesOnly), BoardResult::kDone);
      ExpectRight();
      EXPECT_EQ(spreads(), in_place ? 0U : tries);
      EXPECT_EQ(copies(), in_place ? 0U : 1U);
      EXPECT_EQ(moves(), 6U);
    }
  }
}

// Whichever ranks have which memory, all agree.
TEST_F(DevicesTest, AnAllgatherOfBothKindsGoesElsewhere) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const std::vector<int>& devices : {std::vector{0}, {3}, {1, 2}, {0, 1, 2}}) {
      for (const size_t count : kCounts) {
        Make(Collective::kAllgather, count);
        SetDevices(devices);
        EXPECT_EQ(Run(limits), BoardResult::kElsewhere);
        EXPECT_EQ(copies() + moves() + spreads(), 0U);
      }
      Make(Collective::kAllgather, 100);
      SetDevices({});
      EXPECT_EQ(Run(limits), BoardResult::kDone);  // and the board works on
      ExpectRight();
    }
  }
}

// Then it goes by the host: at once the first time, and from the beginning later.
TEST_F(DevicesTest, WhoReachesNobodysMemoryGetsACopy) {
  node_.SetApart(2);
  node_.RefuseSpreads();
  for (const size_t count : kCounts) {
    for (const Collective collective : {Collective::kBcast, Collective::kAllgather}) {
      Make(collective, count);
      SetDevices({0, 1, 2, 3});
      EXPECT_EQ(Run(kSlicesOnly), BoardResult::kDone);
      ExpectRight();
    }
  }
  Make(Collective::kAllgather, 100);
  SetDevices({0, 1, 2, 3});
  EXPECT_EQ(Run(kSlicesOnly), BoardResult::kDone);
  ExpectRight();
  EXPECT_EQ(moves(), 0U);
  EXPECT_EQ(copies(), 8U);
}

// Long ones are left to messages, once it is known.
TEST_F(DevicesTest, WhoReachesNobodysMemoryGetsACopyOfALongVector) {
  node_.SetApart(2);
  node_.RefuseSpreads();
  for (const Collective collective : {Collective::kBcast, Collective::kAllgather}) {
    for (const BoardResult wanted : {BoardResult::kDone, BoardResult::kElsewhere}) {
      Make(collective, 5000);
      SetDevices({0, 1, 2, 3});
      EXPECT_EQ(Run(kDirectOnly), wanted);
      if (wanted == BoardResult::kDone) {
        ExpectRight();
      }
    }
  }
}

// The others hear of it, and the dead member's memory is not waited for.
TEST_F(DevicesTest, TheDeathOfAMemberIsTold) {
  for (const Collective collective : {Collective::kAllgather, Collective::kBcast}) {
    for (const int dead : {0, 1, 3}) {
      ThreadNode node(kMembers, true);
      Make(collective, 100);
      for (const CaseRank& rank : ranks_) {
        node.AddByStream(rank.input.data(), rank.input.size());
        node.AddByStream(rank.output.data(), rank.output.size());
      }
      node.Kill(dead);
      node.Run(
          [&](int member) {
            CaseRank& rank = ranks_[static_cast<size_t>(member)];
            CaseReducer reducer(true);
            RunFailure failure;
            EXPECT_EQ(RunOnBoard(&node.board(member), 1, rank.problem,
                                 {rank.input.data(), rank.output.data(), &reducer}, kSlicesOnly,
                                 &failure),
                      BoardResult::kDone);
            const bool must_hear = collective == Collective::kAllgather || dead == 1 || member == 1;
            EXPECT_TRUE(failure.code != ErrorCode::kOk || !must_hear) << member;
          },
          {dead});
    }
  }
}

}  // namespace
}  // namespace ferry::collective
