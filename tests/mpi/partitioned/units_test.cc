// The arithmetic of transfer units: bits that are counted by rounds.
#include "client/mpi/partitioned/units.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::mpi {
namespace {

TEST(UnitsTest, CutsPartitionsIntoUnits) {
  const Units units{.partitions = 10, .per_unit = 4, .partition_bytes = 8};
  EXPECT_EQ(units.count(), 3u);
  EXPECT_EQ(units.PartitionsIn(0), 4u);
  EXPECT_EQ(units.PartitionsIn(2), 2u);
  EXPECT_EQ(units.FullOf(2), 3u);
  EXPECT_EQ(units.UnitOf(9), 2u);
  EXPECT_EQ(units.BitOf(9), 2u);
  EXPECT_EQ(units.total_bytes(), 80u);
}

TEST(UnitsTest, FindsTheBitsOfARangeInEachUnit) {
  const Units units{.partitions = 10, .per_unit = 4, .partition_bytes = 8};
  EXPECT_EQ(units.BitsOf(0, 2, 9), 0b1100u);
  EXPECT_EQ(units.BitsOf(1, 2, 9), 0b1111u);
  EXPECT_EQ(units.BitsOf(2, 2, 8), 0b01u);
  EXPECT_EQ(units.BitsOf(1, 5, 5), 0b0010u);
}

TEST(UnitsTest, KnowsTheLargestUnits) {
  const Units units{.partitions = 66, .per_unit = kPartitionsPerUnit, .partition_bytes = 1};
  EXPECT_EQ(units.count(), 3u);
  EXPECT_EQ(units.FullOf(0), 0xffff'ffffu);
  EXPECT_EQ(units.BitsOf(0, 0, 65), 0xffff'ffffu);
  EXPECT_EQ(units.FullOf(2), 3u);
}

TEST(UnitsTest, MakesUnitsOfTheLeastSize) {
  EXPECT_EQ(Units::PerUnit(100, 1000, 16384, UINT32_MAX), 32u);  // for 17
  EXPECT_EQ(Units::PerUnit(100, 16384, 16384, UINT32_MAX), 1u);
  EXPECT_EQ(Units::PerUnit(100, 1 << 20, 16384, UINT32_MAX), 1u);
  EXPECT_EQ(Units::PerUnit(1000, 8, 16384, UINT32_MAX), 32u);  // no more than 32
  EXPECT_EQ(Units::PerUnit(5, 8, 16384, UINT32_MAX), 8u);      // all of them
  EXPECT_EQ(Units::PerUnit(100, 0, 16384, UINT32_MAX), 32u);
  EXPECT_EQ(Units::PerUnit(100, 1 << 20, 1, 10), 16u);  // for 10
  EXPECT_EQ(Units::PerUnit(1000, 1 << 20, 1, 1), 32u);
}

TEST(UnitsTest, TakesRunsOfNeighbours) {
  uint64_t bits = 0b1101'0110;
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  while (bits != 0) {
    const Units::Run run = Units::TakeRun(&bits);
    runs.emplace_back(run.first, run.count);
  }
  EXPECT_EQ(runs, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}, {4, 1}, {6, 2}}));
  bits = ~uint64_t{0};
  const Units::Run all = Units::TakeRun(&bits);
  EXPECT_EQ(all.count, 64u);
  EXPECT_EQ(all.bits(), ~uint64_t{0});
  EXPECT_EQ(bits, 0u);
}

// A receiver's partition needs those of the sender's that it has bytes of, and no others.
TEST(UnitsTest, FindsWhatAReceiversPartitionNeeds) {
  const uint32_t counts[] = {1, 2, 3, 5, 7, 12, 64, 65, 210};
  for (const uint32_t sender : counts) {
    for (const uint32_t receiver : counts) {
      const uint64_t total = uint64_t{sender} * receiver * 3;
      const Units units{.partitions = sender, .per_unit = 1, .partition_bytes = total / sender};
      for (uint32_t p = 0; p < receiver; ++p) {
        const Units::Needed needed = units.NeededFor(p, receiver);
        const uint64_t begin = p * (total / receiver);
        const uint64_t end = begin + total / receiver;
        EXPECT_LE(needed.first * units.partition_bytes, begin);
        EXPECT_GT((needed.first + 1) * units.partition_bytes, begin);
        EXPECT_LT(needed.last * units.partition_bytes, end);
        EXPECT_GE((needed.last + 1) * units.partition_bytes, end);
      }
    }
  }
}

TEST(UnitsTest, SharesOutEmptyPartitions) {
  for (uint32_t sender = 1; sender < 20; ++sender) {
    for (uint32_t receiver = 1; receiver < 20; ++receiver) {
      const Units units{.partitions = sender, .per_unit = 1, .partition_bytes = 0};
      uint32_t next = 0;
      for (uint32_t p = 0; p < receiver; ++p) {
        const Units::Needed needed = units.NeededFor(p, receiver);
        EXPECT_LE(needed.first, needed.last);
        EXPECT_LE(needed.first, next);  // none is left out
        EXPECT_GE(needed.last + 1, next);
        next = needed.last + 1;
      }
      EXPECT_EQ(next, sender);
    }
  }
}

// Whatever the round, also where words wrap around.
TEST(UnitsTest, CountsBitsByRounds) {
  for (const uint32_t partitions : {1u, 2u, 63u, 64u}) {
    const uint64_t full = FullMask(partitions);
    uint64_t word = 0;
    for (uint64_t round = 1; round < 300; ++round) {
      EXPECT_EQ(word, BaseOf(round, full));
      EXPECT_EQ(BitsIn(word, round, full), 0u);
      for (uint32_t i = 0; i < partitions; ++i) {
        const uint32_t bit = static_cast<uint32_t>((i * 7 + round) % partitions);
        if (partitions % 7 == 0) {  // 7 would not reach all of them
          word += uint64_t{1} << i;
        } else {
          word += uint64_t{1} << bit;
        }
      }
      EXPECT_EQ(BitsIn(word, round, full), full);
    }
  }
}

}  // namespace
}  // namespace ferry::mpi
