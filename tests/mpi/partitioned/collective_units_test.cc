#include "mpi/partitioned/collective_units.h"

#include <gtest/gtest.h>

#include <climits>

namespace ferry::mpi {
namespace {

Units Cut(int partitions, uint64_t partition_bytes, const UnitLimits& limits = {}) {
  return CutCollective(partitions, partition_bytes, kUnitBytesOfCollectives, limits);
}

TEST(CutCollectiveTest, SmallPartitionsTravelTogether) {
  EXPECT_EQ(Cut(8, 16384).per_unit, 1u);
  EXPECT_EQ(Cut(8, 16383).per_unit, 2u);
  EXPECT_EQ(Cut(8, 4096).per_unit, 4u);
  EXPECT_EQ(Cut(8, 8).per_unit, 8u);
}

TEST(CutCollectiveTest, ThereAreOnlySoManyUnits) {
  EXPECT_EQ(Cut(64, 1 << 20).count(), 64u);
  EXPECT_EQ(Cut(65, 1 << 20).per_unit, 2u);
  EXPECT_EQ(Cut(2048, 1 << 20).count(), 64u);
}

TEST(CutCollectiveTest, AUnitHasOnlySoManyPartitions) {
  EXPECT_EQ(Cut(100, 8).per_unit, 32u);
  EXPECT_EQ(Cut(100, 8, {.max_units = 1}).count(), 4u);
  EXPECT_EQ(Cut(100000, 1 << 20).per_unit, 32u);
  EXPECT_EQ(Cut(INT_MAX, 8).per_unit, 32u);
}

TEST(CutCollectiveTest, EmptyPartitionsStayApart) { EXPECT_EQ(Cut(20, 0).per_unit, 1u); }

TEST(CutCollectiveTest, HintsDecide) {
  EXPECT_EQ(Cut(8, 8, {.min_bytes = 1}).per_unit, 1u);
  EXPECT_EQ(Cut(8, 8, {.min_bytes = 17}).per_unit, 3u);
  EXPECT_EQ(Cut(8, 1 << 20, {.max_units = 3}).per_unit, 3u);
  EXPECT_EQ(Cut(40000, 1 << 20, {.max_units = 1000000}).count(), 4000u);
}

}  // namespace
}  // namespace ferry::mpi
