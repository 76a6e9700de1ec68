#include "daemon/placement/spare_cores.h"

#include <gtest/gtest.h>

namespace ferry::daemon {
namespace {

using topology::CpuSet;

const CpuSet kAll = {0, 1, 2, 3};

TEST(SpareCoresTest, RanksThatRunAnywhereLeaveNothingToKeepOff) {
  SpareCores cores(kAll, {});
  EXPECT_FALSE(cores.Add({"job", 0}, kAll));
  EXPECT_FALSE(cores.Add({"job", 1}, {0, 1, 2, 3, 4}));
  EXPECT_FALSE(cores.Remove({"job", 0}));
  EXPECT_EQ(cores.Choose({1}).others, kAll);  // other jobs are others' daemons'
}

TEST(SpareCoresTest, ThreadsKeepOffTheCoresOfBoundRanks) {
  SpareCores cores(kAll, {});
  EXPECT_TRUE(cores.Add({"job", 0}, {0}));
  EXPECT_EQ(cores.Choose({0, 1}).others, (CpuSet{2, 3}));
  EXPECT_EQ(cores.Choose({0, 1}).progress, (CpuSet{2, 3}));
  EXPECT_FALSE(cores.Add({"job", 1}, {1}));  // was claimed before it came
  EXPECT_TRUE(cores.Add({"job", 2}, {2}));
  EXPECT_EQ(cores.Choose({}).others, CpuSet{3});
}

TEST(SpareCoresTest, TheyRunAnywhereWhereNoCoreIsLeft) {
  SpareCores cores(kAll, {0, 1});
  EXPECT_TRUE(cores.Add({"job", 0}, {0, 1}));
  EXPECT_TRUE(cores.Add({"job", 1}, {2, 3}));
  EXPECT_EQ(cores.Choose({}).others, kAll);
  EXPECT_EQ(cores.Choose({}).progress, (CpuSet{0, 1}));
}

TEST(SpareCoresTest, TheProgressThreadStaysNearItsNicIfItCan) {
  SpareCores cores(kAll, {0, 1});
  EXPECT_TRUE(cores.Add({"job", 0}, {0}));
  EXPECT_EQ(cores.Choose({}).progress, CpuSet{1});
  EXPECT_EQ(cores.Choose({}).others, (CpuSet{1, 2, 3}));
  EXPECT_TRUE(cores.Add({"job", 1}, {1}));
  EXPECT_EQ(cores.Choose({}).progress, (CpuSet{2, 3}));
}

TEST(SpareCoresTest, TheyComeBackWhenTheLastRankHasGone) {
  SpareCores cores(kAll, {});
  cores.Add({"job", 0}, {0});
  cores.Add({"job", 1}, {1});
  EXPECT_FALSE(cores.Remove({"job", 0}));
  EXPECT_TRUE(cores.Remove({"job", 1}));
  EXPECT_EQ(cores.Choose({}).others, kAll);
}

}  // namespace
}  // namespace ferry::daemon
