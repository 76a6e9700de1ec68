// Which calls of a window may come when, by the calls of one process.
#include "mpi/rma/epochs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

using testing::HasSubstr;

constexpr int kSize = 4;

void ExpectWrong(const Failure& failure, const char* text) {
  EXPECT_EQ(failure.error_class, MPI_ERR_RMA_SYNC);
  EXPECT_THAT(failure.text, HasSubstr(text));
}

TEST(EpochsTest, NothingIsOpenAtFirst) {
  const Epochs epochs(kSize);
  for (int target = 0; target < kSize; ++target) {
    EXPECT_FALSE(epochs.MayAccess(target));
    ExpectWrong(epochs.CheckAccess(target), "no epoch is open");
    ExpectWrong(epochs.CheckPassive(target), "is not locked");
  }
  ExpectWrong(epochs.CheckPassive(Epochs::kAnyTarget), "no lock is held");
  EXPECT_TRUE(epochs.CheckFence().ok());
  EXPECT_TRUE(epochs.CheckFree().ok());
}

TEST(EpochsTest, AFenceOpensToAllUntilOneThatDoesNot) {
  Epochs epochs(kSize);
  epochs.Fence(true);
  EXPECT_TRUE(epochs.CheckAccess(kSize - 1).ok());
  ExpectWrong(epochs.CheckPassive(0), "is not locked");
  epochs.Fence(false);
  EXPECT_FALSE(epochs.MayAccess(0));
}

TEST(EpochsTest, OtherEpochsEndThatOfAFence) {
  Epochs epochs(kSize);
  epochs.Fence(true);
  ASSERT_TRUE(epochs.Lock(1, LockKind::kShared).ok());
  EXPECT_TRUE(epochs.MayAccess(1));
  EXPECT_FALSE(epochs.MayAccess(0));
  epochs.Unlock(1);
  EXPECT_FALSE(epochs.MayAccess(1));
  epochs.Fence(true);
  ASSERT_TRUE(epochs.Start({2}).ok());
  EXPECT_TRUE(epochs.MayAccess(2));
  EXPECT_FALSE(epochs.MayAccess(0));
  epochs.Complete();
  epochs.Fence(true);
  ASSERT_TRUE(epochs.Post({2}).ok());
  EXPECT_FALSE(epochs.MayAccess(2));
}

TEST(EpochsTest, OnlyAnExclusiveLockKeepsAllOthersOut) {
  Epochs epochs(kSize);
  for (const LockKind kind : {LockKind::kShared, LockKind::kUnchecked, LockKind::kExclusive}) {
    ASSERT_TRUE(epochs.Lock(1, kind).ok());
    EXPECT_EQ(epochs.IsAlone(1), kind == LockKind::kExclusive);
    EXPECT_FALSE(epochs.IsAlone(0));
    epochs.Unlock(1);
    EXPECT_FALSE(epochs.IsAlone(1));
  }
  ASSERT_TRUE(epochs.LockAll(LockKind::kShared).ok());
  EXPECT_FALSE(epochs.IsAlone(1));
}

TEST(EpochsTest, LocksAreOfOneTargetEach) {
  Epochs epochs(kSize);
  ASSERT_TRUE(epochs.Lock(1, LockKind::kExclusive).ok());
  ASSERT_TRUE(epochs.Lock(3, LockKind::kShared).ok());
  ExpectWrong(epochs.Lock(1, LockKind::kShared), "already");
  ExpectWrong(epochs.LockAll(LockKind::kShared), "MPI_Win_unlock first");
  ExpectWrong(epochs.CheckFence(), "MPI_Win_unlock first");
  ExpectWrong(epochs.CheckFree(), "MPI_Win_unlock first");
  ExpectWrong(epochs.Start({0}), "MPI_Win_unlock first");
  EXPECT_TRUE(epochs.CheckPassive(3).ok());
  EXPECT_TRUE(epochs.CheckPassive(Epochs::kAnyTarget).ok());
  ExpectWrong(epochs.CheckPassive(0), "is not locked");
  LockKind kind{};
  ASSERT_TRUE(epochs.FindLock(1, &kind).ok());
  EXPECT_EQ(kind, LockKind::kExclusive);
  epochs.Unlock(1);
  ExpectWrong(epochs.FindLock(1, &kind), "not locked");
  EXPECT_TRUE(epochs.MayAccess(3));
  epochs.Unlock(3);
  EXPECT_TRUE(epochs.CheckFree().ok());
}

TEST(EpochsTest, LockAllOpensToAll) {
  Epochs epochs(kSize);
  ASSERT_TRUE(epochs.LockAll(LockKind::kUnchecked).ok());
  EXPECT_TRUE(epochs.MayAccess(2));
  EXPECT_TRUE(epochs.CheckPassive(2).ok());
  ExpectWrong(epochs.Lock(2, LockKind::kShared), "MPI_Win_lock_all");
  ExpectWrong(epochs.LockAll(LockKind::kShared), "MPI_Win_unlock_all");
  LockKind kind{};
  ASSERT_TRUE(epochs.FindLockAll(&kind).ok());
  EXPECT_EQ(kind, LockKind::kUnchecked);
  epochs.UnlockAll();
  ExpectWrong(epochs.FindLockAll(&kind), "was not called");
  EXPECT_FALSE(epochs.MayAccess(2));
}

TEST(EpochsTest, GroupsAreStartedAndPostedOnceAtATime) {
  Epochs epochs(kSize);
  std::vector<int> ranks;
  ExpectWrong(epochs.FindStarted(&ranks), "MPI_Win_start");
  ExpectWrong(epochs.FindPosted(&ranks), "MPI_Win_post");
  ASSERT_TRUE(epochs.Post({0, 1}).ok());
  ASSERT_TRUE(epochs.Start({2, 3}).ok());  // exposed and accessing at the same time
  ExpectWrong(epochs.Post({1}), "before");
  ExpectWrong(epochs.Start({1}), "MPI_Win_complete");
  ExpectWrong(epochs.Lock(0, LockKind::kShared), "MPI_Win_complete");
  ASSERT_TRUE(epochs.FindStarted(&ranks).ok());
  EXPECT_THAT(ranks, testing::ElementsAre(2, 3));
  ASSERT_TRUE(epochs.FindPosted(&ranks).ok());
  EXPECT_THAT(ranks, testing::ElementsAre(0, 1));
  epochs.Complete();
  EXPECT_FALSE(epochs.MayAccess(2));
  ExpectWrong(epochs.CheckFree(), "MPI_Win_wait");
  epochs.Wait();
  EXPECT_TRUE(epochs.CheckFree().ok());
}

}  // namespace
}  // namespace ferry::mpi
