// The Game of Life: patterns, and blocks of cells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "examples/game_of_life/rle.h"
#include "examples/game_of_life/tile.h"

namespace life {
namespace {

using testing::HasSubstr;

// ---- Patterns

std::string Error(const std::string& text) {
  Pattern pattern;
  std::string error;
  return ReadRle(text, &pattern, &error) ? "" : error;
}

TEST(RleTest, ReadsRunsRowsAndComments) {
  Pattern pattern;
  std::string error;
  ASSERT_TRUE(ReadRle("#N a name\r\n\r\nX = 4, y = 4, rule = b36/S23\r\n2bo$\n3ob\n2$bo!ignored",
                      &pattern, &error))
      << error;
  EXPECT_EQ(pattern.width, 4);
  EXPECT_EQ(pattern.height, 4);
  EXPECT_EQ(pattern.rule.Text(), "B36/S23");
  EXPECT_THAT(pattern.cells, testing::ElementsAre(0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_EQ(pattern.Living(), 5U);
}

TEST(RleTest, WithoutARuleItIsConways) {
  Pattern pattern;
  std::string error;
  ASSERT_TRUE(ReadRle("x = 1, y = 1\no!", &pattern, &error)) << error;
  EXPECT_EQ(pattern.rule.Text(), "B3/S23");
}

TEST(RleTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Error(""), HasSubstr("no line with x and y"));
  EXPECT_THAT(Error("b2o!"), HasSubstr("line 1: the first line"));
  EXPECT_THAT(Error("x = 0, y = 3\n!"), HasSubstr("\"x=0\" is no number"));
  EXPECT_THAT(Error("x = 99999999999, y = 3\n!"), HasSubstr("is no number"));
  EXPECT_THAT(Error("x = 60000, y = 60000\n!"), HasSubstr("so many cells"));
  EXPECT_THAT(Error("x = 3, y = 3, rule = 23\n!"), HasSubstr("the rule \"23\""));
  EXPECT_THAT(Error("x = 3, y = 3, rule = B0/S23\n!"), HasSubstr("the rule"));
  EXPECT_THAT(Error("x = 3, y = 3, rule = B9/S23\n!"), HasSubstr("the rule"));
  EXPECT_THAT(Error("x = 3, y = 1\nbo\n2o!"), HasSubstr("line 3: row 1 goes beyond the 3 x 1"));
  EXPECT_THAT(Error("x = 3, y = 1\n$o!"), HasSubstr("row 2 goes beyond"));
  EXPECT_THAT(Error("x = 3, y = 1\nbz!"), HasSubstr("'z' is neither"));
  EXPECT_THAT(Error("x = 3, y = 1\n999999999999o!"), HasSubstr("longer than any row"));
  EXPECT_THAT(Error("x = 3, y = 1\n3o"), HasSubstr("no '!'"));
}

TEST(RleTest, WhatIsWrittenIsReadAgain) {
  Pattern pattern;
  pattern.width = 83;
  pattern.height = 40;
  pattern.cells.resize(83 * 40);
  uint32_t state = 7;
  for (size_t i = 0; i < pattern.cells.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const size_t row = i / 83;
    pattern.cells[i] = row % 7 < 4 && (state >> 28) < 6 ? 1 : 0;  // some rows are empty
  }
  const std::string text = WriteRle(pattern);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 70U);
  }
  Pattern again;
  std::string error;
  ASSERT_TRUE(ReadRle(text, &again, &error)) << error;
  EXPECT_EQ(again.width, 83);
  EXPECT_EQ(again.cells, pattern.cells);
}

TEST(RleTest, ReadsTheGliderGun) {
  std::ostringstream text;
  text << std::ifstream("examples/game_of_life/glider_gun.rle").rdbuf();
  Pattern pattern;
  std::string error;
  ASSERT_TRUE(ReadRle(text.str(), &pattern, &error)) << error;
  EXPECT_EQ(pattern.Living(), 36U);
  EXPECT_EQ(pattern.width, 36);
}

// ---- Blocks

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
