#include "examples/common/process_grid.h"

#include <gtest/gtest.h>

#include <set>

namespace examples {
namespace {

TEST(ProcessGridTest, RangesCoverTheInteriorOnce) {
  for (const int points : {3, 4, 10, 17, 512}) {
    for (int parts = 1; parts <= points - 2 && parts <= 7; ++parts) {
      int next = 1;
      for (int part = 0; part < parts; ++part) {
        const Range range = RangeOf(points, parts, part);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, 1);
        EXPECT_LE(range.count, (points - 2) / parts + 1);
        next += range.count;
      }
      EXPECT_EQ(next, points - 1);
    }
  }
}

Triple Chosen(int ranks, const Triple& points) {
  const auto grid = ProcessGrid::Choose(ranks, points);
  return grid ? grid->counts() : Triple{0, 0, 0};
}

TEST(ProcessGridTest, ChoosesTheGridThatExchangesTheLeast) {
  EXPECT_EQ(Chosen(1, {66, 66, 66}), (Triple{1, 1, 1}));
  EXPECT_EQ(Chosen(8, {66, 66, 66}), (Triple{2, 2, 2}));
  EXPECT_EQ(Chosen(7, {66, 66, 66}), (Triple{1, 1, 7}));
  EXPECT_EQ(Chosen(4, {1002, 12, 12}), (Triple{4, 1, 1}));
  EXPECT_EQ(Chosen(27, {32, 32, 32}), (Triple{3, 3, 3}));
}

TEST(ProcessGridTest, AmongEqualsSplitsTheSlowestAxis) {
  EXPECT_EQ(Chosen(2, {10, 10, 10}), (Triple{1, 1, 2}));
}

TEST(ProcessGridTest, GivesEachRankAPointOrNothing) {
  EXPECT_EQ(Chosen(8, {3, 4, 6}), (Triple{1, 2, 4}));
  EXPECT_EQ(Chosen(2, {3, 3, 3}), (Triple{0, 0, 0}));
  EXPECT_EQ(Chosen(5, {6, 6, 6}), (Triple{0, 0, 0}));
  EXPECT_TRUE(ProcessGrid({2, 1, 1}).Fits({4, 3, 3}));
  EXPECT_FALSE(ProcessGrid({2, 1, 1}).Fits({3, 9, 9}));
}

TEST(ProcessGridTest, PlacesAreDistinct) {
  const ProcessGrid grid({2, 3, 4});
  std::set<Triple> places;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    places.insert(grid.PlaceOf(rank));
  }
  EXPECT_EQ(places.size(), 24U);
  EXPECT_EQ(grid.PlaceOf(0), (Triple{0, 0, 0}));
  EXPECT_EQ(grid.PlaceOf(1), (Triple{1, 0, 0}));
  EXPECT_EQ(grid.PlaceOf(23), (Triple{1, 2, 3}));
}

TEST(ProcessGridTest, NeighboursAreOneStepAway) {
  const ProcessGrid grid({2, 3, 4});
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    for (const int axis : {0, 1, 2}) {
      for (const int step : {-1, 1}) {
        Triple wanted = grid.PlaceOf(rank);
        int& place = wanted[static_cast<size_t>(axis)];
        place += step;
        const int neighbour = grid.Neighbour(rank, axis, step);
        if (place < 0 || place >= grid.counts()[static_cast<size_t>(axis)]) {
          EXPECT_EQ(neighbour, -1);
        } else {
          EXPECT_EQ(grid.PlaceOf(neighbour), wanted);
        }
      }
    }
  }
}

}  // namespace
}  // namespace examples
