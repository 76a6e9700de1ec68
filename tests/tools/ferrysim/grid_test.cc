#include "tools/ferrysim/grid.h"

#include <gtest/gtest.h>

namespace ferry::sim {
namespace {

TEST(GridTest, IsAsSquareAsCanBe) {
  for (const auto& [ranks, rows, columns] :
       {std::tuple{1U, 1U, 1U}, {8U, 2U, 4U}, {64U, 8U, 8U}, {7U, 1U, 7U}, {8192U, 64U, 128U}}) {
    const Grid grid = GridOf(ranks);
    EXPECT_EQ(grid.rows, rows);
    EXPECT_EQ(grid.columns, columns);
  }
}

TEST(GridTest, EightNeighboursAround) {
  const auto around = NeighboursOf({.rows = 3, .columns = 4}, 5, 12, 8);
  const uint32_t ranks[] = {0, 1, 2, 4, 6, 8, 9, 10};
  for (uint32_t d = 0; d < kDirections; ++d) {
    EXPECT_EQ(around[d].rank, ranks[d]);
  }
  EXPECT_EQ(around[0].bytes, 8U);   // a corner
  EXPECT_EQ(around[1].bytes, 24U);  // 3 cells wide
  EXPECT_EQ(around[3].bytes, 32U);  // 4 cells high
}

// A rank sends in one direction, and the other rank receives from the opposite one, also if both
// are the same rank.
TEST(GridTest, NeighboursAgree) {
  for (const uint32_t ranks : {1U, 2U, 4U, 6U, 12U, 64U}) {
    const Grid grid = GridOf(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto own = NeighboursOf(grid, rank, 100, 8);
      for (uint32_t d = 0; d < kDirections; ++d) {
        const auto theirs = NeighboursOf(grid, own[d].rank, 100, 8);
        EXPECT_EQ(theirs[own[d].direction].rank, rank);
        EXPECT_EQ(theirs[own[d].direction].bytes, own[d].bytes);
      }
    }
  }
}

TEST(GridTest, BlocksAndEdges) {
  EXPECT_DOUBLE_EQ(CellsOf({.rows = 2, .columns = 4}, 16), 32.0);
  EXPECT_DOUBLE_EQ(MeanEdgeBytes(1024, 16384, 8), 4096.0);
}

}  // namespace
}  // namespace ferry::sim
