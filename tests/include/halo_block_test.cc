// The geometry of ferry/halo.h. tests/e2e/halos_test.cc tests exchanges with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ferry/halo/block.h"

namespace ferry::halo {
namespace {

HaloBlock Cube() {
  HaloBlock block;
  block.cells = {4, 5, 6};
  block.ghost = 2;
  block.ranks = {3, 3, 3};
  return block;
}

std::string Refusal(const HaloBlock& block, int size) {
  try {
    CheckBlock(block, size);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(HaloBlockTest, RefusesWhatCannotBe) {
  const auto expect = [](const char* text, auto change) {
    HaloBlock block = Cube();
    change(block);
    EXPECT_THAT(Refusal(block, 27), testing::HasSubstr(text));
  };
  EXPECT_EQ(Refusal(Cube(), 27), "");
  expect("dimensions is 4", [](HaloBlock& block) { block.dimensions = 4; });
  expect("ghost is 0", [](HaloBlock& block) { block.ghost = 0; });
  expect("element_bytes is 0", [](HaloBlock& block) { block.element_bytes = 0; });
  expect("tag is -1", [](HaloBlock& block) { block.tag = -1; });
  expect("tag is 1073741823", [](HaloBlock& block) { block.tag = FERRY_TAG_MAX; });
  expect("neither faces", [](HaloBlock& b) { b.faces = b.edges = b.corners = false; });
  expect("ranks[1] is 0", [](HaloBlock& block) { block.ranks[1] = 0; });
  expect("axis 2 is used", [](HaloBlock& block) { block.dimensions = 2; });
  expect("cells[0] is 1, but neighbours have ghosts of 2",
         [](HaloBlock& block) { block.cells[0] = 1; });
  expect("a box of 18, but the job has 27 ranks", [](HaloBlock& block) { block.ranks[2] = 2; });
}

TEST(HaloBlockTest, StepsHaveNumbersThatOppositesShareOut) {
  std::set<int> numbers;
  for (int z = -1; z <= 1; ++z) {
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        const Triple step = {x, y, z};
        EXPECT_EQ(NumberOf(step) + NumberOf(Opposite(step)), 26);
        numbers.insert(NumberOf(step));
      }
    }
  }
  EXPECT_EQ(numbers.size(), 27U);
}

TEST(HaloBlockTest, CountsNeighboursByKind) {
  HaloBlock block = Cube();
  const auto count = [&](int rank, bool faces, bool edges, bool corners) {
    block.faces = faces;
    block.edges = edges;
    block.corners = corners;
    return NeighboursOf(block, rank).size();
  };
  EXPECT_EQ(count(13, true, true, true), 26U);
  EXPECT_EQ(count(13, true, false, false), 6U);
  EXPECT_EQ(count(13, false, true, false), 12U);
  EXPECT_EQ(count(13, false, false, true), 8U);
  EXPECT_EQ(count(0, true, true, true), 7U);
  block.periodic = {true, true, true};
  EXPECT_EQ(count(0, true, true, true), 26U);
}

TEST(HaloBlockTest, InAPlaneTwoAxesAreACorner) {
  HaloBlock block;
  block.dimensions = 2;
  block.cells = {2, 2, 1};
  block.ranks = {3, 3, 1};
  block.faces = false;
  block.edges = true;
  block.corners = false;
  EXPECT_EQ(NeighboursOf(block, 4).size(), 0U);
  block.corners = true;
  EXPECT_EQ(NeighboursOf(block, 4).size(), 4U);
}

TEST(HaloBlockTest, GhostsAndOwnedCellsOfNeighboursMeet) {
  const HaloBlock block = Cube();
  for (const Neighbour& neighbour : NeighboursOf(block, 13)) {
    const Neighbour back = NeighbourAt(block, 13, Opposite(neighbour.step));
    EXPECT_EQ(neighbour.ghost.count, back.owned.count);
    for (size_t axis = 0; axis < 3; ++axis) {
      // In the neighbour's coordinates, the ghosts here are its owned cells.
      EXPECT_EQ(neighbour.ghost.first[axis] - neighbour.step[axis] * block.cells[axis],
                back.owned.first[axis]);
    }
  }
}

TEST(HaloBlockTest, ARankAloneOnAPeriodicAxisIsItsOwnNeighbourAndComesLast) {
  HaloBlock block;
  block.dimensions = 2;
  block.cells = {3, 3, 1};
  block.ranks = {1, 2, 1};
  block.periodic = {true, false, false};
  const std::vector<Neighbour> found = NeighboursOf(block, 0);
  ASSERT_EQ(found.size(), 5U);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].rank, i < 3 ? 1 : 0);
  }
}

}  // namespace
}  // namespace ferry::halo
