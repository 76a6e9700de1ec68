#include "examples/mpi_jacobi/tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace mpi_jacobi {
namespace {

using examples::Range;
using examples::RangeOf;

constexpr Plane kPlane = {7, 6};

TEST(TileTest, StartsWithItsPartOfThePlane) {
  Tile tile(kPlane, {3, 2}, {1, 3});
  ASSERT_EQ(tile.stride(), 4);
  ASSERT_EQ(tile.points().size(), 4U * 5U);
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 4; ++column) {
      EXPECT_EQ(*tile.At(column, row), StartOf(kPlane, 2 + column, row));
    }
  }
  EXPECT_NE(StartOf(kPlane, 3, 0), 0);
  EXPECT_NE(StartOf(kPlane, 6, 3), 0);
  EXPECT_EQ(StartOf(kPlane, 3, 3), 0);
}

TEST(TileTest, ASweepTakesMeansAndSaysWhatChangedMost) {
  Tile tile(kPlane, {1, 2}, {1, 1});
  const std::vector<double> points = {0, 4, 8, 0,  //
                                      2, 0, 1, 6,  //
                                      0, 1, 1, 0};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      *tile.At(column, row) = points[static_cast<size_t>(row * 4 + column)];
    }
  }
  EXPECT_EQ(tile.Sweep(), 2.75);
  EXPECT_EQ(*tile.At(1, 1), (4 + 1 + 2 + 1) / 4.0);
  EXPECT_EQ(*tile.At(2, 1), (8 + 1 + 0 + 6) / 4.0);
}

// Does the ranks' work without messages: rims are updated from the whole plane.
TEST(TileTest, TilesSweepAsTheWholePlaneDoes) {
  Tile whole(kPlane);
  std::vector<Tile> tiles;
  std::vector<Range> columns;
  std::vector<Range> rows;
  for (int part = 0; part < 6; ++part) {
    columns.push_back(RangeOf(kPlane.width, 2, part % 2));
    rows.push_back(RangeOf(kPlane.height, 3, part / 2));
    tiles.emplace_back(kPlane, columns.back(), rows.back());
  }
  for (int step = 0; step < 20; ++step) {
    double change = 0;
    for (size_t part = 0; part < tiles.size(); ++part) {
      Tile& tile = tiles[part];
      for (int row = 0; row < tile.rows() + 2; ++row) {
        for (int column = 0; column < tile.columns() + 2; ++column) {
          const bool inside =
              row > 0 && row <= tile.rows() && column > 0 && column <= tile.columns();
          if (!inside) {
            *tile.At(column, row) =
                *whole.At(columns[part].first + column - 1, rows[part].first + row - 1);
          }
        }
      }
      change = std::max(change, tile.Sweep());
    }
    EXPECT_EQ(whole.Sweep(), change);
    for (const Tile& tile : tiles) {
      EXPECT_EQ(tile.DifferenceFrom(whole.points(), kPlane), 0);
    }
  }
  EXPECT_GT(*whole.At(3, 3), 0);
}

TEST(TileTest, SeesADifferenceAtAnyOfItsPoints) {
  const Tile whole(kPlane);
  Tile tile(kPlane, {2, 3}, {2, 2});
  *tile.At(3, 2) += 0.5;
  EXPECT_EQ(tile.DifferenceFrom(whole.points(), kPlane), 0.5);
  *tile.At(3, 2) -= 0.5;
  *tile.At(0, 2) += 0.5;  // the rim is not its own
  EXPECT_EQ(tile.DifferenceFrom(whole.points(), kPlane), 0);
}

}  // namespace
}  // namespace mpi_jacobi
