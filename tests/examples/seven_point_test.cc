#include "examples/stencil3d/seven_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace stencil3d {
namespace {

std::vector<double> Pattern(const Triple& extent) {
  std::vector<double> field;
  for (size_t i = 0; i < Box{{0, 0, 0}, extent}.points(); ++i) {
    field.push_back(std::fmod(static_cast<double>(i) * 0.618, 1.0));
  }
  return field;
}

TEST(SevenPointTest, TakesTheMeanOfSixNeighbours) {
  const Triple extent = {3, 3, 3};
  std::vector<double> field(27, 100);
  field[IndexOf(extent, 0, 1, 1)] = 1;
  field[IndexOf(extent, 2, 1, 1)] = 2;
  field[IndexOf(extent, 1, 0, 1)] = 3;
  field[IndexOf(extent, 1, 2, 1)] = 4;
  field[IndexOf(extent, 1, 1, 0)] = 5;
  field[IndexOf(extent, 1, 1, 2)] = 15;
  std::vector<double> next = field;
  JacobiBox(field.data(), next.data(), extent, {{1, 1, 1}, {2, 2, 2}});
  field[IndexOf(extent, 1, 1, 1)] = 5;
  EXPECT_EQ(next, field);
}

TEST(SevenPointTest, WritesNothingOutsideItsBox) {
  const Triple extent = {6, 5, 7};
  const std::vector<double> field = Pattern(extent);
  std::vector<double> next(field.size(), -1);
  const Box box{{2, 1, 3}, {5, 3, 6}};
  JacobiBox(field.data(), next.data(), extent, box);
  size_t written = 0;
  for (const double value : next) {
    written += value != -1;
  }
  EXPECT_EQ(written, box.points());
  EXPECT_EQ(box.points(), 18U);
}

TEST(SevenPointTest, LayersCoverABoxOnce) {
  for (const Triple& last :
       {Triple{2, 2, 2}, {3, 2, 2}, {2, 3, 5}, {3, 3, 3}, {4, 4, 4}, {7, 5, 6}}) {
    const Box box{{1, 1, 1}, last};
    const Triple extent = {last[0] + 1, last[1] + 1, last[2] + 1};
    Layers layers = LayersOf(box);
    std::vector<int> seen(Box{{0, 0, 0}, extent}.points());
    layers.shell.push_back(layers.inside);
    for (const Box& layer : layers.shell) {
      for (int z = layer.first[2]; z < layer.last[2]; ++z) {
        for (int y = layer.first[1]; y < layer.last[1]; ++y) {
          for (int x = layer.first[0]; x < layer.last[0]; ++x) {
            EXPECT_EQ(++seen[IndexOf(extent, x, y, z)], 1);
          }
        }
      }
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), size_t{0}), box.points());
    for (size_t axis = 0; axis < 3 && !layers.inside.empty(); ++axis) {
      EXPECT_EQ(layers.inside.first[axis], 2);
      EXPECT_EQ(layers.inside.last[axis], last[axis] - 1);
    }
  }
}

TEST(SevenPointTest, PiecesInAnyOrderGiveTheSameBits) {
  const Triple extent = {9, 8, 7};
  const std::vector<double> field = Pattern(extent);
  const Box interior{{1, 1, 1}, {8, 7, 6}};
  std::vector<double> whole = field;
  JacobiBox(field.data(), whole.data(), extent, interior);
  std::vector<double> pieces = field;
  const Layers layers = LayersOf(interior);
  JacobiBox(field.data(), pieces.data(), extent, layers.inside);
  for (const Box& layer : layers.shell) {
    JacobiBox(field.data(), pieces.data(), extent, layer);
  }
  EXPECT_EQ(pieces, whole);
}

TEST(SevenPointTest, WhatIsGatheredIsScattered) {
  const Triple extent = {5, 6, 4};
  const std::vector<double> field = Pattern(extent);
  const Box box{{3, 1, 1}, {4, 5, 3}};
  std::vector<double> values(box.points());
  Gather(field.data(), extent, box, values.data());
  EXPECT_EQ(values[0], field[IndexOf(extent, 3, 1, 1)]);
  EXPECT_EQ(values[1], field[IndexOf(extent, 3, 2, 1)]);
  EXPECT_EQ(values[7], field[IndexOf(extent, 3, 4, 2)]);
  std::vector<double> copy(field.size(), 0);
  Scatter(values.data(), extent, box, copy.data());
  for (size_t i = 0; i < copy.size(); ++i) {
    EXPECT_TRUE(copy[i] == 0 || copy[i] == field[i]);
  }
  std::vector<double> again(box.points());
  Gather(copy.data(), extent, box, again.data());
  EXPECT_EQ(again, values);
}

}  // namespace
}  // namespace stencil3d
