#include <algorithm>
#include <numeric>

#include "client/mpi/topology/cartesian.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

Cartesian Grid(const std::vector<int>& dims, bool is_periodic = false) {
  Cartesian grid;
  const std::vector<int> periods(dims.size(), is_periodic ? 1 : 0);
  const Failure failure = Cartesian::Make(dims, periods, 1 << 20, &grid);
  EXPECT_TRUE(failure.ok()) << failure.text;
  return grid;
}

// `each` processes on each node, one node after the other.
std::vector<int> Nodes(int count, int each) {
  std::vector<int> node_of(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    node_of[static_cast<size_t>(i)] = i / each;
  }
  return node_of;
}

std::vector<int> InOrder(int count) {
  std::vector<int> processes(static_cast<size_t>(count));
  std::iota(processes.begin(), processes.end(), 0);
  return processes;
}

TEST(NodeBlocksTest, NodesGetTheBlocksWithTheFewestNeighboursOutside) {
  const Cartesian grid = Grid({4, 4});
  const std::vector<int> node_of = Nodes(16, 4);
  const std::vector<int> process_at = PlaceByNodes(grid, node_of);
  EXPECT_EQ(process_at, (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_EQ(CrossingNeighbours(grid, InOrder(16), node_of), 24);
  EXPECT_EQ(CrossingNeighbours(grid, process_at, node_of), 16);
}

// Ranks are dealt out to the nodes in turn.
TEST(NodeBlocksTest, ProcessesOfANodeNeedNotFollowEachOther) {
  const std::vector<int> node_of = {0, 1, 0, 1, 0, 1, 0, 1};
  const std::vector<int> process_at = PlaceByNodes(Grid({8}), node_of);
  EXPECT_EQ(process_at, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(NodeBlocksTest, EveryProcessGetsOnePlace) {
  for (const std::vector<int>& dims :
       {std::vector<int>{6, 4}, {2, 3, 4}, {24}, {1, 24}, {2, 2, 2, 3}}) {
    for (const int each : {1, 2, 3, 4, 6, 8, 12, 24}) {
      for (const bool is_periodic : {false, true}) {
        const Cartesian grid = Grid(dims, is_periodic);
        const std::vector<int> node_of = Nodes(30, each);
        std::vector<int> process_at = PlaceByNodes(grid, node_of);
        EXPECT_LE(CrossingNeighbours(grid, process_at, node_of),
                  CrossingNeighbours(grid, InOrder(24), node_of));
        std::sort(process_at.begin(), process_at.end());
        EXPECT_EQ(process_at, InOrder(24));
      }
    }
  }
}

TEST(NodeBlocksTest, WhereNothingIsGainedTheOrderStays) {
  EXPECT_EQ(PlaceByNodes(Grid({4, 4}), Nodes(16, 16)), InOrder(16)) << "one node";
  EXPECT_EQ(PlaceByNodes(Grid({4, 4}), Nodes(16, 1)), InOrder(16)) << "one process each";
  EXPECT_EQ(PlaceByNodes(Grid({4, 4}), Nodes(16, 5)), InOrder(16)) << "nodes differ";
  EXPECT_EQ(PlaceByNodes(Grid({2, 2}), Nodes(4, 2)), InOrder(4)) << "rows are as good as columns";
  EXPECT_EQ(PlaceByNodes(Grid({}), Nodes(3, 1)), InOrder(1));
  // A node's processes cannot be a block.
  EXPECT_EQ(PlaceByNodes(Grid({5, 3}), {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}).size(), 15U);
}

}  // namespace
}  // namespace ferry::mpi
