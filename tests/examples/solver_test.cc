#include "examples/heat2d/solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "examples/common/five_point.h"

namespace heat2d {
namespace {

Image Pattern(int width, int height) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    image.values.push_back(std::fmod(i * 0.618, 1.0));
  }
  return image;
}

TEST(SolverTest, TakesTheMeanOfFourNeighbours) {
  const Image image{3, 3, {9, 1, 9, 2, 9, 3, 9, 6, 9}};
  const Image result = SolveSerially(image, 1);
  EXPECT_EQ(result.values, (std::vector<double>{9, 1, 9, 2, 3, 3, 9, 6, 9}));
}

TEST(SolverTest, KeepsTheEdge) {
  const Image image = Pattern(7, 5);
  const Image result = SolveSerially(image, 40);
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 7; ++column) {
      if (row == 0 || row == 4 || column == 0 || column == 6) {
        EXPECT_EQ(result.values[row * 7 + column], image.values[row * 7 + column]);
      }
    }
  }
}

TEST(SolverTest, NoStepsChangeNothing) {
  const Image image = Pattern(4, 4);
  EXPECT_EQ(SolveSerially(image, 0).values, image.values);
}

TEST(SolverTest, RowsInAnyOrderGiveTheSameBits) {
  const Image image = Pattern(33, 20);
  std::vector<double> pieces = image.values;
  for (const auto& [first, last] : {std::pair{10, 19}, {1, 2}, {2, 10}}) {
    examples::JacobiRows(image.values.data(), pieces.data(), 33, first, last);
  }
  EXPECT_EQ(pieces, SolveSerially(image, 1).values);
}

}  // namespace
}  // namespace heat2d
