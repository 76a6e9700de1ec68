#include "client/core/byte_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace ferry::client {
namespace {

TEST(ByteRangesTest, HoldsNothingAtFirst) {
  const ByteRanges ranges;
  EXPECT_EQ(ranges.FirstMissing(0, 10), 0U);
  EXPECT_EQ(ranges.FirstMissing(7, 7), 7U);
}

TEST(ByteRangesTest, RangesThatTouchAreOne) {
  ByteRanges ranges;
  ranges.Add(0, 10);
  ranges.Add(20, 30);
  EXPECT_EQ(ranges.FirstMissing(5, 25), 10U);
  ranges.Add(10, 20);
  EXPECT_EQ(ranges.FirstMissing(0, 30), 30U);
  EXPECT_EQ(ranges.FirstMissing(0, 31), 30U);
}

TEST(ByteRangesTest, AHoleInTheMiddleLeavesBothSides) {
  ByteRanges ranges;
  ranges.Add(0, 100);
  ranges.Remove(40, 60);
  EXPECT_EQ(ranges.FirstMissing(0, 100), 40U);
  EXPECT_EQ(ranges.FirstMissing(40, 41), 40U);
  EXPECT_EQ(ranges.FirstMissing(60, 100), 100U);
}

TEST(ByteRangesTest, EmptyRangesChangeNothing) {
  ByteRanges ranges;
  ranges.Add(5, 5);
  EXPECT_EQ(ranges.FirstMissing(5, 6), 5U);
  ranges.Add(0, 10);
  ranges.Remove(5, 5);
  EXPECT_EQ(ranges.FirstMissing(0, 10), 10U);
}

// Against a set of single bytes, with the same random calls.
TEST(ByteRangesTest, IsASetOfBytes) {
  constexpr uint64_t kBytes = 64;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::bitset<kBytes> bytes;
    for (int step = 0; step < 40; ++step) {
      uint64_t begin = random() % (kBytes + 1);
      uint64_t end = random() % (kBytes + 1);
      if (begin > end) {
        std::swap(begin, end);
      }
      const bool add = random() % 2 == 0;
      add ? ranges.Add(begin, end) : ranges.Remove(begin, end);
      for (uint64_t i = begin; i < end; ++i) {
        bytes[i] = add;
      }
      begin = random() % kBytes;
      uint64_t missing = begin;
      while (missing < kBytes && bytes[missing]) {
        ++missing;
      }
      ASSERT_EQ(ranges.FirstMissing(begin, kBytes), missing) << round << " " << step;
    }
  }
}

}  // namespace
}  // namespace ferry::client
