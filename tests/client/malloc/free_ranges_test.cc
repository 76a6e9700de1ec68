#include "client/malloc/free_ranges.h"

#include <gtest/gtest.h>

#include <memory>

namespace ferry::malloc_heap {
namespace {

constexpr uint64_t kPage = 4096;

TEST(FreeRangesTest, TakesTheLowestPlaceWithRoom) {
  FreeRanges ranges;
  ranges.Add(8 * kPage, 2 * kPage);
  ranges.Add(2 * kPage, kPage);
  EXPECT_EQ(ranges.Take(2 * kPage, kPage), 8 * kPage);
  EXPECT_EQ(ranges.Take(kPage, kPage), 2 * kPage);
  EXPECT_EQ(ranges.Take(kPage, kPage), FreeRanges::kNone);
}

TEST(FreeRangesTest, JoinsNeighbours) {
  FreeRanges ranges;
  ranges.Add(0, kPage);
  ranges.Add(2 * kPage, kPage);
  EXPECT_EQ(ranges.Take(3 * kPage, kPage), FreeRanges::kNone);
  ranges.Add(kPage, kPage);
  EXPECT_EQ(ranges.Take(3 * kPage, kPage), 0u);
}

TEST(FreeRangesTest, AlignsAndKeepsBothEnds) {
  FreeRanges ranges;
  ranges.Add(kPage, 8 * kPage);
  EXPECT_EQ(ranges.Take(2 * kPage, 4 * kPage), 4 * kPage);
  EXPECT_EQ(ranges.Take(3 * kPage, kPage), kPage);      // what lay before it
  EXPECT_EQ(ranges.Take(3 * kPage, kPage), 6 * kPage);  // and behind it
  EXPECT_EQ(ranges.Take(kPage, kPage), FreeRanges::kNone);
}

TEST(FreeRangesTest, NoAlignedPlaceInSmallRange) {
  FreeRanges ranges;
  ranges.Add(kPage, 2 * kPage);
  EXPECT_EQ(ranges.Take(kPage, 4 * kPage), FreeRanges::kNone);
}

TEST(FreeRangesTest, ForgetsWhatItHasNoRoomFor) {
  auto ranges = std::make_unique<FreeRanges>();
  for (uint64_t i = 0; i < 2000; ++i) {
    ranges->Add(2 * i * kPage, kPage);
  }
  uint64_t taken = 0;
  uint64_t last = 0;
  for (uint64_t at = 0; (at = ranges->Take(kPage, kPage)) != FreeRanges::kNone; ++taken) {
    EXPECT_EQ(at % (2 * kPage), 0u);
    EXPECT_TRUE(taken == 0 || at > last);
    last = at;
  }
  EXPECT_GT(taken, 100u);
  EXPECT_LT(taken, 2000u);
}

}  // namespace
}  // namespace ferry::malloc_heap
