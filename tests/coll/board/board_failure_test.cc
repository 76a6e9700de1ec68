// Failures on boards: no member waits for ever, and the next calls work.
#include <gtest/gtest.h>

#include <vector>

#include "coll/board/board_run.h"
#include "tests/coll/board/thread_node.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {
namespace {

BoardLimits Limits() {
  BoardLimits limits;
  limits.direct_min_bytes.fill(50000);
  return limits;
}
const BoardLimits kLimits = Limits();

struct Call {
  Collective collective = Collective::kAllreduce;
  size_t count = 8;
  int root = 0;
};

class BoardFailureTest : public ::testing::Test {
 protected:
  // Each member makes the call calls[member].
  void Run(const std::vector<Call>& calls, const std::vector<int>& without = {}) {
    number_++;
    failures_.assign(calls.size(), {});
    node_.Run([&](int member) { CallOne(member, calls[static_cast<size_t>(member)]); }, without);
  }
  // One member's part in the latest call.
  void CallOne(int member, const Call& call) {
    std::vector<CaseRank> ranks = MakeCase({.collective = call.collective,
                                            .size = node_.members(),
                                            .count = call.count,
                                            .root = call.root});
    CaseRank& rank = ranks[static_cast<size_t>(member)];
    CaseReducer reducer(true);
    (void)RunOnBoard(&node_.board(member), number_, rank.problem,
                     {rank.input.data(), rank.output.data(), &reducer}, kLimits,
                     &failures_[static_cast<size_t>(member)]);
  }
  const RunFailure& failure(int member) const { return failures_[static_cast<size_t>(member)]; }
  void ExpectThatAllWorks() {
    for (const size_t count : {1, 3000, 9000}) {
      Run({{.count = count}, {.count = count}, {.count = count}});
      for (int member = 0; member < 3; ++member) {
        EXPECT_EQ(failure(member).code, ErrorCode::kOk);
      }
    }
  }

  ThreadNode node_{3, true};
  uint64_t number_ = 0;
  std::vector<RunFailure> failures_{3};
};

TEST_F(BoardFailureTest, OtherCountsAreToldOnAllRanks) {
  Run({{.count = 2}, {.count = 2}, {.count = 3}});
  for (int member = 0; member < 3; ++member) {
    EXPECT_NE(failure(member).code, ErrorCode::kOk) << member;
  }
  EXPECT_EQ(failure(2).mismatch, RunFailure::Mismatch::kSize);
  EXPECT_EQ(failure(2).expected_bytes, 24U);
  EXPECT_EQ(failure(2).received_bytes, 16U);
  ExpectThatAllWorks();
}

// The first member has noticed it, and already sleeps in the next call.
TEST(Board, WhatDiffersIsToldByMembersThatHaveGoneOn) {
  constexpr uint64_t kOurs = 7;
  constexpr uint64_t kTheirs = 8;
  ThreadNode node(2, true);
  RunFailure failure;
  node.Run([&](int member) {
    Board& board = node.board(member);
    if (member == 0) {
      board.Begin(1, kTheirs);
      board.Fail({.code = ErrorCode::kTruncated, .peer = 1});
      EXPECT_FALSE(board.End());
      board.Begin(2, kOurs);
      EXPECT_NE(board.Await(1, 0, Board::Slot::kLine), nullptr);
    } else {
      node.AwaitSleep(0);
      board.Begin(1, kOurs);
      EXPECT_EQ(board.Await(0, 0, Board::Slot::kLine), nullptr);
      failure = board.failure();
      EXPECT_FALSE(board.End());
      board.Begin(2, kOurs);
      EXPECT_NE(board.Reserve(0, Board::Slot::kLine, Board::kAll), nullptr);
      board.Post(0, Board::Slot::kLine);
    }
    EXPECT_TRUE(board.End());
  });
  EXPECT_EQ(failure.mismatch, RunFailure::Mismatch::kSize);
  EXPECT_EQ(failure.received_bytes, kTheirs);
}

TEST_F(BoardFailureTest, OtherCountsAreToldThoughTheyTravelInOtherWays) {
  Run({{.count = 2}, {.count = 1000}, {.count = 100000}});
  for (int member = 0; member < 3; ++member) {
    EXPECT_EQ(failure(member).code, ErrorCode::kTruncated) << member;
  }
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, NoCountAgainstSomeIsTold) {
  Run({{.count = 0}, {.count = 2}, {.count = 2}});
  for (int member = 0; member < 3; ++member) {
    EXPECT_NE(failure(member).code, ErrorCode::kOk) << member;
  }
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, AnotherCollectiveIsTold) {
  Run({{.collective = Collective::kAlltoall}, {}, {}});
  EXPECT_EQ(failure(0).mismatch, RunFailure::Mismatch::kCollective);
  EXPECT_EQ(failure(0).other, static_cast<int>(Collective::kAllreduce) + 1);
  EXPECT_NE(failure(1).code, ErrorCode::kOk);
  EXPECT_NE(failure(2).code, ErrorCode::kOk);
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, AnotherRootIsTold) {
  Run({{.collective = Collective::kBcast, .root = 0},
       {.collective = Collective::kBcast, .root = 2},
       {.collective = Collective::kBcast, .root = 0}});
  EXPECT_EQ(failure(0).code, ErrorCode::kOk);  // it only sends
  EXPECT_NE(failure(1).code, ErrorCode::kOk);
  EXPECT_EQ(failure(2).code, ErrorCode::kOk);
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, WhoRenouncesIsNotWaitedFor) {
  number_++;
  RunFailure failures[3];
  node_.Run([&](int member) {
    if (member == 1) {
      node_.board(member).Renounce(number_);
      return;
    }
    std::vector<CaseRank> ranks = MakeCase({.collective = Collective::kAllgather, .size = 3});
    CaseRank& rank = ranks[static_cast<size_t>(member)];
    (void)RunOnBoard(&node_.board(member), number_, rank.problem,
                     {rank.input.data(), rank.output.data(), nullptr}, kLimits, &failures[member]);
  });
  EXPECT_EQ(failures[0].code, ErrorCode::kCancelled);
  EXPECT_EQ(failures[0].peer, 1);
  EXPECT_EQ(failures[2].code, ErrorCode::kCancelled);
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, WhoTakesAnotherWayIsNotWaitedFor) {
  number_++;
  RunFailure failure;
  node_.Run([&](int member) {
    if (member != 0) {
      node_.board(member).Skip(number_);
      return;
    }
    std::vector<CaseRank> ranks = MakeCase({.collective = Collective::kAllgather, .size = 3});
    (void)RunOnBoard(&node_.board(member), number_, ranks[0].problem,
                     {ranks[0].input.data(), ranks[0].output.data(), nullptr}, kLimits, &failure);
  });
  EXPECT_EQ(failure.code, ErrorCode::kCancelled);
  EXPECT_EQ(failure.peer, 1);
  ExpectThatAllWorks();
}

TEST_F(BoardFailureTest, TheDeadAreNotWaitedFor) {
  for (const size_t count : {2, 3000, 9000}) {
    node_.Kill(1);
    Run({{.count = count}, {}, {.count = count}}, {1});
    EXPECT_EQ(failure(0).code, ErrorCode::kPeerDied) << count;
    EXPECT_EQ(failure(0).peer, 1);
    EXPECT_NE(failure(2).code, ErrorCode::kOk);
  }
}

// A root that only sends waits when its slots are full.
TEST_F(BoardFailureTest, ReadersThatDieDoNotStopTheRoot) {
  node_.Kill(2);
  const Call bcast{.collective = Collective::kBcast, .count = 100};
  ErrorCode last = ErrorCode::kOk;
  for (size_t i = 0; i < 100; ++i) {
    Run({bcast, bcast, bcast}, {2});
    last = failure(0).code;
  }
  EXPECT_EQ(last, ErrorCode::kPeerDied);
}

TEST_F(BoardFailureTest, MemoryThatCannotBeReadFailsAllRanks) {
  node_.Protect(1);
  Run({{.count = 9000}, {.count = 9000}, {.count = 9000}});
  EXPECT_EQ(failure(0).code, ErrorCode::kInvalidBuffer);
  EXPECT_EQ(failure(0).peer, 1);
  EXPECT_NE(failure(1).code, ErrorCode::kOk);
  EXPECT_NE(failure(2).code, ErrorCode::kOk);
  Run({{.count = 3}, {.count = 3}, {.count = 3}});
  EXPECT_EQ(failure(1).code, ErrorCode::kOk);
}

// A member that has failed must not return while others still write to its memory.
TEST_F(BoardFailureTest, NobodyIsWrittenToAfterwards) {
  node_.Protect(0);  // members that read from the root fail; the root writes to the others
  for (int round = 0; round < 50; ++round) {
    number_++;
    std::vector<CaseRank> ranks =
        MakeCase({.collective = Collective::kBcast, .size = 3, .count = 40000});
    std::vector<std::vector<uint8_t>> after(3);
    node_.Run([&](int member) {
      CaseRank& rank = ranks[static_cast<size_t>(member)];
      RunFailure failure;
      (void)RunOnBoard(&node_.board(member), number_, rank.problem,
                       {nullptr, rank.output.data(), nullptr}, kLimits, &failure);
      EXPECT_NE(failure.code, ErrorCode::kOk);
      after[static_cast<size_t>(member)] = rank.output;  // ThreadSanitizer sees a late write
    });
    for (size_t i = 1; i < 3; ++i) {
      EXPECT_EQ(after[i], ranks[i].output);
    }
  }
}

TEST_F(BoardFailureTest, TheLastToLeaveKnows) {
  EXPECT_FALSE(node_.board(1).Leave());
  EXPECT_FALSE(node_.board(0).Leave());
  EXPECT_TRUE(node_.board(2).Leave());
}

TEST(CallMark, SurvivesItsWord) {
  const CallMark signature{.collective = 7, .root = 63, .size_bytes = 123456789};
  const CallMark back = CallMark::Of(signature.Word());
  EXPECT_EQ(back.collective, 7);
  EXPECT_EQ(back.root, 63);
  EXPECT_EQ(back.size_bytes, 123456789U);
}

// Waking a rank that is not there yet would make ranks map each other for nothing.
TEST_F(BoardFailureTest, OnlyWhoSleepsIsWoken) {
  const Call bcast{.collective = Collective::kBcast};
  number_++;
  node_.Run(
      [&](int member) {
        if (member == 0) {
          node_.AwaitSleep(1);
        }
        CallOne(member, bcast);
        if (member == 0) {
          EXPECT_GE(node_.Wakes(1), 1U);
          EXPECT_EQ(node_.Wakes(2), 0U);
        }
      },
      {2});
  CallOne(2, bcast);
  EXPECT_EQ(failure(2).code, ErrorCode::kOk);
  ExpectThatAllWorks();
}

}  // namespace
}  // namespace ferry::collective
