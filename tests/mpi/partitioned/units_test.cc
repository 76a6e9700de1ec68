// The arithmetic of transfer units: bits that are counted by rounds.
#include "mpi/partitioned/units.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_EQ(units.BitsOf(9), 2u);
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

TEST(UnitsTest, CutsLargePartitionsIntoPieces) {
  EXPECT_EQ(Units::Pieces(1, 100'000, 32 << 10), 3u);
  EXPECT_EQ(Units::Pieces(1, (32 << 10) - 1, 32 << 10), 1u);
  EXPECT_EQ(Units::Pieces(1, 0, 32 << 10), 1u);
  EXPECT_EQ(Units::Pieces(1, 1 << 30, 32 << 10), kPartitionsPerUnit);
  EXPECT_EQ(Units::Pieces(2, 1 << 30, 32 << 10), 1u);  // a bit for each partition
}

// Each piece is some bytes of its partition, and together they are all of it.
TEST(UnitsTest, CountsAPieceByABitOfItsOwn) {
  for (const uint64_t bytes : {1u, 64u, 1000u, 4096u, 100'000u, 131'072u, 999'999u}) {
    for (const uint32_t pieces : {1u, 2u, 3u, 31u, kPartitionsPerUnit}) {
      const Units units{.partitions = 3, .partition_bytes = bytes, .pieces = pieces};
      EXPECT_EQ(units.count(), 3u);
      EXPECT_EQ(units.FullOf(2), FullMask(pieces));
      EXPECT_EQ(units.BitsOf(2), FullMask(pieces));
      EXPECT_EQ(units.BitsOf(1, 0, 2), FullMask(pieces));
      uint64_t next = 2 * bytes;
      for (uint32_t piece = 0; piece < pieces; ++piece) {
        const auto [offset, size] = units.BytesOf(2, {piece, 1});
        EXPECT_EQ(offset, next);
        EXPECT_LE(size, units.part_bytes());
        next += size;
      }
      EXPECT_EQ(next, 3 * bytes);
      const auto [offset, size] = units.BytesOf(1, {0, pieces});
      EXPECT_EQ(offset, bytes);
      EXPECT_EQ(size, bytes);
    }
  }
}

TEST(UnitsTest, FindsTheBytesOfPartitions) {
  const Units units{.partitions = 10, .per_unit = 4, .partition_bytes = 8};
  const auto [offset, size] = units.BytesOf(2, {1, 1});
  EXPECT_EQ(offset, 72u);
  EXPECT_EQ(size, 8u);
  EXPECT_EQ(units.BytesOf(1, {1, 3}).offset, 40u);
  EXPECT_EQ(units.BytesOf(1, {1, 3}).size, 24u);
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

TEST(UnitsTest, TakesSoManyFromEitherEnd) {
  constexpr uint64_t kBits = 0b1101'0110;
  EXPECT_EQ(Units::FirstRun(kBits).bits(), 0b110u);
  EXPECT_EQ(Units::FirstRun(kBits, 1).bits(), 0b10u);
  EXPECT_EQ(Units::LastRun(kBits).bits(), 0b1100'0000u);
  EXPECT_EQ(Units::LastRun(kBits, 1).bits(), 0b1000'0000u);
  EXPECT_EQ(Units::LastRun(~uint64_t{0}).bits(), ~uint64_t{0});
  EXPECT_EQ(Units::LastRun(1).bits(), 1u);
  uint64_t bits = kBits;
  EXPECT_EQ(Units::TakeRun(&bits, 1).bits(), 0b10u);
  EXPECT_EQ(bits, 0b1101'0100u);
}

// A part by its number among all.
Units::Bytes BytesOfPart(const Units& units, uint64_t part) {
  const uint32_t unit = units.UnitOfPart(part);
  const auto first = static_cast<uint32_t>(part - uint64_t{unit} * units.per_unit * units.pieces);
  EXPECT_EQ(units.BitsOfParts(unit, {part, part}), uint64_t{1} << first);
  return units.BytesOf(unit, {first, 1});
}

// A receiver's partition needs those parts of the sender's that it has bytes of, and no others.
void ExpectNeeds(const Units& units, uint32_t receiver) {
  const uint64_t bytes = units.total_bytes() / receiver;
  for (uint32_t p = 0; p < receiver; ++p) {
    const Units::Needed needed = units.NeededFor(p, receiver);
    const uint64_t begin = p * bytes;
    const Units::Bytes first = BytesOfPart(units, needed.first);
    const Units::Bytes last = BytesOfPart(units, needed.last);
    EXPECT_LE(first.offset, begin);
    EXPECT_GT(first.offset + first.size, begin);
    EXPECT_LT(last.offset, begin + bytes);
    EXPECT_GE(last.offset + last.size, begin + bytes);
  }
}

TEST(UnitsTest, FindsWhatAReceiversPartitionNeeds) {
  const uint32_t counts[] = {1, 2, 3, 5, 7, 12, 64, 65, 210};
  for (const uint32_t sender : counts) {
    for (const uint32_t receiver : counts) {
      const uint64_t bytes = receiver * 3;
      ExpectNeeds({.partitions = sender, .per_unit = 1, .partition_bytes = bytes}, receiver);
      ExpectNeeds({.partitions = sender, .per_unit = 4, .partition_bytes = bytes}, receiver);
      for (const uint32_t pieces : {2u, 5u, kPartitionsPerUnit}) {  // of 64 bytes or more
        ExpectNeeds({.partitions = sender, .partition_bytes = 2048 * bytes, .pieces = pieces},
                    receiver);
      }
    }
  }
}

// Of a receive that is longer than the message: parts are those of the bytes that come, or all.
TEST(UnitsTest, FindsWhatBytesOfALongerReceiveNeed) {
  for (const Units& units : {Units{.partitions = 5, .per_unit = 4, .partition_bytes = 12},
                             Units{.partitions = 3, .partition_bytes = 640, .pieces = 5}}) {
    const uint64_t all = units.partitions * units.pieces;
    const uint64_t total = units.total_bytes();
    for (uint64_t begin = 0; begin < total + 3; ++begin) {
      for (uint64_t end = begin + 1; end < total + 5; ++end) {
        const Units::Needed needed = units.NeededForBytes(begin, end);
        if (begin >= total) {
          EXPECT_EQ(needed.first, 0u);
          EXPECT_EQ(needed.last, all - 1);
          continue;
        }
        const Units::Bytes first = BytesOfPart(units, needed.first);
        const Units::Bytes last = BytesOfPart(units, needed.last);
        EXPECT_LE(first.offset, begin);
        EXPECT_GT(first.offset + first.size, begin);
        EXPECT_LT(last.offset, end);
        EXPECT_GE(last.offset + last.size, std::min(end, total));
      }
    }
  }
  const Units empty{.partitions = 4, .per_unit = 4, .partition_bytes = 0};
  EXPECT_EQ(empty.NeededForBytes(0, 7).last, 3u);
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
