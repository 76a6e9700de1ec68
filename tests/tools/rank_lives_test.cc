// How ferryrun judges its ranks' notices and ends.
#include "tools/ferryrun/rank_lives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>

#include "common/error_code.h"

namespace ferry::tools {
namespace {

using Kind = RankNotice::Kind;
using Weight = RankLives::Weight;
using testing::ElementsAre;
using testing::IsEmpty;

class RankLivesTest : public testing::Test {
 protected:
  RankLivesTest() {
    for (int rank = 0; rank < 4; ++rank) {
      lives_.Add();
    }
  }
  void Notice(Kind kind, uint32_t rank, ErrorCode cause = ErrorCode::kOk) {
    Send({.kind = kind, .rank = rank, .cause = static_cast<int32_t>(cause)});
  }
  // The notice of the rank's program with this number, which has met the others.
  void Meets(uint32_t rank, uint32_t program) {
    const uint32_t process = 100 + program;
    Send({.kind = Kind::kEnters, .rank = rank, .process = process});
    Send({.kind = Kind::kMeets, .rank = rank, .process = process, .program = program});
  }
  void Leaves(uint32_t rank, uint32_t program) {
    Send({.kind = Kind::kLeaves, .rank = rank, .process = 100 + program});
  }
  void Send(RankNotice notice) {
    std::strcpy(notice.entry, "MPI_Init");
    std::strcpy(notice.exit, "MPI_Finalize");
    lives_.OnNotice(notice);
  }

  RankLives lives_;
};

TEST_F(RankLivesTest, AProgramOfItsOwnMayEndAsItLikes) {
  lives_.OnEnd(0, {.exit_code = 0});
  lives_.OnEnd(1, {.exit_code = 3});
  EXPECT_FALSE(lives_.HasFailed(0));
  EXPECT_TRUE(lives_.HasFailed(1));
  EXPECT_EQ(lives_.Describe(1), "exited with code 3");
  EXPECT_EQ(lives_.ExitCode(1), 3);
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());  // no rank waits for them
}

TEST_F(RankLivesTest, CountsTheWaysInWhichRanksHaveEnded) {
  lives_.OnEnd(0, {.exit_code = 0});
  lives_.OnEnd(1, {.exit_code = 3});
  lives_.OnEnd(2, {.signal = SIGKILL});  // rank 3 runs on
  RankExits exits;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    lives_.CountExit(rank, &exits);
  }
  EXPECT_EQ(TextOf(exits), ";0*1,3*1;9*1");
}

TEST_F(RankLivesTest, ARankThatHasLeftMayToo) {
  Notice(Kind::kEnters, 0);
  Notice(Kind::kLeaves, 0);
  lives_.OnEnd(0, {.exit_code = 5});
  EXPECT_EQ(lives_.Describe(0), "exited with code 5");
  Notice(Kind::kEnters, 1);
  Notice(Kind::kLeaves, 1);
  lives_.OnEnd(1, {});
  EXPECT_FALSE(lives_.HasFailed(1));
}

TEST_F(RankLivesTest, OneThatOwesACallHasFailed) {
  Notice(Kind::kEnters, 0);
  lives_.OnEnd(0, {.exit_code = 0});
  EXPECT_TRUE(lives_.HasFailed(0));
  EXPECT_EQ(lives_.Describe(0), "exited with code 0 without MPI_Finalize");
  EXPECT_EQ(lives_.ExitCode(0), 1);
  Notice(Kind::kEnters, 1);
  lives_.OnEnd(1, {.signal = SIGSEGV});
  EXPECT_EQ(lives_.Describe(1), "was killed by SIGSEGV");
  EXPECT_EQ(lives_.ExitCode(1), 128 + SIGSEGV);
}

// A session is opened, closed and opened once more.
TEST_F(RankLivesTest, OneThatHasEnteredAgainOwesTheCallAgain) {
  Notice(Kind::kEnters, 0);
  Notice(Kind::kLeaves, 0);
  Notice(Kind::kEnters, 0);
  lives_.OnEnd(0, {});
  EXPECT_TRUE(lives_.HasFailed(0));
}

TEST_F(RankLivesTest, TheCauseIsOneThatHasNotHeardOfAnother) {
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Notice(Kind::kEnters, rank);
  }
  Notice(Kind::kHeardOfEnd, 1);
  Notice(Kind::kHeardOfEnd, 2);
  Notice(Kind::kHeardOfEnd, 3);
  lives_.OnEnd(0, {.exit_code = 3});
  lives_.OnEnd(1, {.exit_code = 58});
  lives_.OnEnd(2, {.exit_code = 0});
  lives_.OnEnd(3, {.signal = SIGABRT});
  EXPECT_EQ(lives_.WeightOf(0), Weight::kByItself);
  EXPECT_EQ(lives_.WeightOf(1), Weight::kConsequence);
  EXPECT_FALSE(lives_.HasFailed(2)) << "it knew why it ended so";
  EXPECT_EQ(lives_.WeightOf(3), Weight::kConsequence);
}

// ferryrun need not look for another cause, nor call that daemon.
TEST_F(RankLivesTest, TheDaemonThatHangsIsTheCause) {
  Notice(Kind::kHeardOfEnd, 1, ErrorCode::kPeerDied);
  EXPECT_FALSE(lives_.has_lost_daemon());
  Notice(Kind::kHeardOfEnd, 2, ErrorCode::kDaemonDied);
  EXPECT_TRUE(lives_.has_lost_daemon());
}

TEST_F(RankLivesTest, AKilledOneIsTheCauseOfOthersThatExit) {
  lives_.OnEnd(0, {.exit_code = 1});
  lives_.OnEnd(1, {.signal = SIGKILL});
  EXPECT_LT(lives_.WeightOf(1), lives_.WeightOf(0));
}

TEST_F(RankLivesTest, WhoEndsWithoutAWordIsAskedAboutOnce) {
  lives_.OnEnd(2, {.exit_code = 0});
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
  Notice(Kind::kEnters, 0);
  EXPECT_THAT(lives_.TakeSilent(), ElementsAre(2));
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
  EXPECT_FALSE(lives_.HasFailed(2)) << "it may have closed its descriptors";
  lives_.MarkAbsent(2);
  EXPECT_TRUE(lives_.HasFailed(2));
  EXPECT_EQ(lives_.Describe(2),
            "exited with code 0 without MPI_Init, in which other ranks wait for it");
  EXPECT_EQ(lives_.ExitCode(2), 1);
}

// Of the programs that follow each other, it had fewer than the others.
TEST_F(RankLivesTest, WhoHasHadNoSecondProgramIsAskedAboutForThat) {
  for (const uint32_t rank : {0U, 1U, 2U}) {
    Meets(rank, 1);
    Leaves(rank, 1);
  }
  EXPECT_EQ(lives_.program(), 1U);
  lives_.OnEnd(2, {.exit_code = 0});
  lives_.OnEnd(3, {.exit_code = 0});
  EXPECT_THAT(lives_.TakeSilent(), ElementsAre(3)) << "rank 2 was in that program";
  Meets(0, 2);
  EXPECT_EQ(lives_.program(), 2U);
  EXPECT_THAT(lives_.TakeSilent(), ElementsAre(2, 3)) << "3 may have closed its descriptors";
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
  Meets(1, 2);
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
  lives_.MarkAbsent(2);
  EXPECT_EQ(lives_.Describe(2),
            "exited with code 0 without another MPI_Init, in which other ranks wait for it");
}

// Only a shell, or the rank itself, can start another: both are refused, and it owes its call.
TEST_F(RankLivesTest, AProgramWithinOneThatHasNotLeftChangesNothing) {
  Meets(0, 1);
  for (const Kind kind : {Kind::kEnters, Kind::kHeardOfEnd, Kind::kLeaves}) {
    Send({.kind = kind,
          .rank = 0,
          .cause = static_cast<int32_t>(ErrorCode::kPeerDied),
          .process = 200});
  }
  lives_.OnEnd(0, {.exit_code = 0});
  EXPECT_TRUE(lives_.HasFailed(0));
  EXPECT_EQ(lives_.Describe(0), "exited with code 0 without MPI_Finalize");
  Meets(1, 1);
  Send({.kind = Kind::kEnters, .rank = 1, .process = 200});
  Send({.kind = Kind::kLeaves, .rank = 1, .process = 200});
  Leaves(1, 1);
  lives_.OnEnd(1, {.exit_code = 0});
  EXPECT_FALSE(lives_.HasFailed(1));
}

TEST_F(RankLivesTest, NoticesOfOthersAreLeftAlone) {
  Notice(Kind::kEnters, 4);
  lives_.OnEnd(0, {});
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
}

}  // namespace
}  // namespace ferry::tools
