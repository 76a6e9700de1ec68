#include <gtest/gtest.h>

#include "examples/game_of_life/tile.h"

namespace life {
namespace {

Pattern Board(int width, int height, std::initializer_list<std::pair<int, int>> living) {
  Pattern board;
  board.width = width;
  board.height = height;
  board.cells.resize(static_cast<size_t>(width) * static_cast<size_t>(height));
  for (const auto& [x, y] : living) {
    board.At(x, y) = 1;
  }
  return board;
}

TEST(LifeTest, ABlinkerBlinks) {
  const Pattern across = Board(5, 5, {{1, 2}, {2, 2}, {3, 2}});
  const Pattern down = Board(5, 5, {{2, 1}, {2, 2}, {2, 3}});
  EXPECT_EQ(RunSerially(across, 1, false).cells, down.cells);
  EXPECT_EQ(RunSerially(across, 2, false).cells, across.cells);
}

// Four generations move it by a cell: after four times the side of a torus it is where it was.
TEST(LifeTest, AGliderComesBackOnATorusButNotOnAPlane) {
  const Pattern glider = Board(8, 8, {{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}});
  EXPECT_EQ(RunSerially(glider, 32, true).cells, glider.cells);
  EXPECT_NE(RunSerially(glider, 32, false).cells, glider.cells);
}

TEST(LifeTest, SpansCoverAll) {
  for (int parts = 1; parts <= 7; ++parts) {
    int next = 0;
    for (int i = 0; i < parts; ++i) {
      const Span span = SpanOf(7, parts, i);
      EXPECT_EQ(span.first, next);
      EXPECT_GT(span.last, span.first);
      next = span.last;
    }
    EXPECT_EQ(next, 7);
  }
}

}  // namespace
}  // namespace life
