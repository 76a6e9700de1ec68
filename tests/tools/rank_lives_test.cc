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
    RankNotice notice{};
    notice.cause = static_cast<int32_t>(cause);
    notice.kind = kind;
    notice.rank = rank;
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

TEST_F(RankLivesTest, NoticesOfOthersAreLeftAlone) {
  Notice(Kind::kEnters, 4);
  lives_.OnEnd(0, {});
  EXPECT_THAT(lives_.TakeSilent(), IsEmpty());
}

}  // namespace
}  // namespace ferry::tools
