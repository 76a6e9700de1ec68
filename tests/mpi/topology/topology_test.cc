// Grids and graphs.
#include "mpi/topology/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/topology/cartesian.h"
#include "mpi/topology/graph.h"

namespace ferry::mpi {
namespace {

using Ints = std::vector<int>;

constexpr int kNone = MPI_PROC_NULL;

Cartesian Grid(const Ints& dims, const Ints& periods) {
  Cartesian grid;
  EXPECT_TRUE(Cartesian::Make(dims, periods, 1 << 20, &grid).ok());
  return grid;
}

TEST(CartesianTest, NumbersPlacesInRowMajorOrder) {
  Cartesian grid = Grid({2, 3, 4}, {0, 0, 0});
  ASSERT_EQ(grid.size(), 24);
  int rank = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k, ++rank) {
        Ints coords(3);
        grid.CoordsOf(rank, coords);
        EXPECT_EQ(coords, (Ints{i, j, k}));
        int found = -1;
        ASSERT_TRUE(grid.RankAt(coords, &found).ok());
        EXPECT_EQ(found, rank);
      }
    }
  }
}

TEST(CartesianTest, WritesNoMoreCoordinatesThanThereIsRoomFor) {
  Cartesian grid = Grid({2, 3, 4}, {0, 0, 0});
  Ints coords = {-1, -1, -1};
  grid.CoordsOf(23, std::span(coords).first(2));
  EXPECT_EQ(coords, (Ints{1, 2, -1}));
}

TEST(CartesianTest, WrapsPeriodicCoordinatesOnly) {
  Cartesian grid = Grid({3, 4}, {1, 0});
  int rank = -1;
  ASSERT_TRUE(grid.RankAt(Ints{-1, 2}, &rank).ok());
  EXPECT_EQ(rank, 2 * 4 + 2);
  ASSERT_TRUE(grid.RankAt(Ints{7, 0}, &rank).ok());
  EXPECT_EQ(rank, 4);
  Failure failure = grid.RankAt(Ints{0, 4}, &rank);
  EXPECT_EQ(failure.error_class, MPI_ERR_ARG);
  EXPECT_NE(failure.text.find("coords[1] is 4"), std::string::npos) << failure.text;
  EXPECT_EQ(grid.RankAt(Ints{0, -1}, &rank).error_class, MPI_ERR_ARG);
}

TEST(CartesianTest, ShiftsRoundOrOverTheEdge) {
  Cartesian grid = Grid({3, 4}, {1, 0});
  auto shift = [&](int rank, int direction, int64_t by) {
    Cartesian::Shifted shifted = grid.Shift(rank, direction, by);
    return std::pair(shifted.source, shifted.destination);
  };
  EXPECT_EQ(shift(5, 0, 1), std::pair(1, 9));
  EXPECT_EQ(shift(1, 0, 1), std::pair(9, 5));
  EXPECT_EQ(shift(1, 0, -1), std::pair(5, 9));
  EXPECT_EQ(shift(1, 0, 3), std::pair(1, 1));
  EXPECT_EQ(shift(1, 0, 2147483647), std::pair(9, 5));  // 2147483647 is 1 modulo 3
  EXPECT_EQ(shift(5, 1, 1), std::pair(4, 6));
  EXPECT_EQ(shift(4, 1, 1), std::pair(kNone, 5));
  EXPECT_EQ(shift(7, 1, 1), std::pair(6, kNone));
  EXPECT_EQ(shift(5, 1, 0), std::pair(5, 5));
  EXPECT_EQ(shift(5, 1, -2147483648LL), std::pair(kNone, kNone));
}

TEST(CartesianTest, CutsIntoGridsOfTheDimensionsKept) {
  Cartesian grid = Grid({2, 3, 4}, {0, 1, 0});
  const Ints keep = {1, 0, 1};
  Cartesian part = grid.Cut(keep);
  EXPECT_EQ(part.dims(), (Ints{2, 4}));
  EXPECT_EQ(part.periodic(), (std::vector<bool>{false, false}));
  std::set<std::pair<int, int>> places;
  for (int rank = 0; rank < grid.size(); ++rank) {
    Ints coords(3);
    grid.CoordsOf(rank, coords);
    Cartesian::Part of = grid.PartOf(rank, keep);
    EXPECT_EQ(of.color, coords[1]);
    Ints within(2);
    part.CoordsOf(of.key, within);
    EXPECT_EQ(within, (Ints{coords[0], coords[2]}));
    places.insert({of.color, of.key});
  }
  EXPECT_EQ(places.size(), 24u);
}

TEST(CartesianTest, CutsIntoSinglePlacesWhenNothingIsKept) {
  Cartesian grid = Grid({2, 3}, {0, 0});
  Cartesian part = grid.Cut(Ints{0, 0});
  EXPECT_EQ(part.dimensions(), 0);
  EXPECT_EQ(part.size(), 1);
  EXPECT_EQ(grid.PartOf(4, Ints{0, 0}).color, 4);
}

TEST(CartesianTest, ListsNeighboursBeforeAndBehind) {
  EXPECT_EQ(Grid({3, 4}, {1, 0}).Neighbours(0), (Ints{8, 4, MPI_PROC_NULL, 1}));
  EXPECT_EQ(Grid({1}, {1}).Neighbours(0), (Ints{0, 0}));
  EXPECT_EQ(Grid({2}, {1}).Neighbours(1), (Ints{0, 0}));
  EXPECT_TRUE(Grid({}, {}).Neighbours(0).empty());
}

TEST(CartesianTest, RefusesGridsThatDoNotFit) {
  Cartesian grid;
  EXPECT_EQ(Cartesian::Make(Ints{2, 0}, Ints{0, 0}, 8, &grid).error_class, MPI_ERR_DIMS);
  EXPECT_EQ(Cartesian::Make(Ints{-2}, Ints{0}, 8, &grid).error_class, MPI_ERR_DIMS);
  EXPECT_EQ(Cartesian::Make(Ints{3, 3}, Ints{0, 0}, 8, &grid).error_class, MPI_ERR_DIMS);
  EXPECT_EQ(Cartesian::Make(Ints(8, 65536), Ints(8), 8, &grid).error_class, MPI_ERR_DIMS);
  EXPECT_TRUE(Cartesian::Make(Ints{2, 4}, Ints{0, 0}, 8, &grid).ok());
}

Ints Created(int processes, Ints dims) {
  EXPECT_TRUE(CreateDims(processes, dims).ok());
  return dims;
}

TEST(DimsTest, GivesTheExtentsOfTheStandardsTable) {
  EXPECT_EQ(Created(6, {0, 0}), (Ints{3, 2}));
  EXPECT_EQ(Created(7, {0, 0}), (Ints{7, 1}));
  EXPECT_EQ(Created(6, {0, 3, 0}), (Ints{2, 3, 1}));
  Ints dims = {0, 3, 0};
  EXPECT_EQ(CreateDims(7, dims).error_class, MPI_ERR_DIMS);
}

// Greedy division by prime factors would go wrong here.
TEST(DimsTest, IsAsBalancedAsCanBe) {
  EXPECT_EQ(Created(12, {0, 0}), (Ints{4, 3}));
  EXPECT_EQ(Created(36, {0, 0}), (Ints{6, 6}));
  EXPECT_EQ(Created(90, {0, 0}), (Ints{10, 9}));
  EXPECT_EQ(Created(60, {0, 0, 0}), (Ints{5, 4, 3}));
  EXPECT_EQ(Created(1 << 30, Ints(30)), Ints(30, 2));
  EXPECT_EQ(Created(2147483647, {0, 0, 0}), (Ints{2147483647, 1, 1}));
  EXPECT_EQ(Created(735134400, {0, 0, 0, 0, 0, 0}).size(), 6u);
}

// The least difference is found by trying everything.
TEST(DimsTest, AgreesWithAnExhaustiveSearch) {
  for (int product = 1; product <= 240; ++product) {
    for (int count = 1; count <= 4; ++count) {
      Ints best;
      Ints chosen;
      std::function<void(int)> choose = [&](int left) {
        if (static_cast<int>(chosen.size()) == count) {
          if (left == 1 &&
              (best.empty() || chosen.front() - chosen.back() < best.front() - best.back())) {
            best = chosen;
          }
          return;
        }
        for (int factor = 1; factor <= (chosen.empty() ? left : chosen.back()); ++factor) {
          if (left % factor == 0) {
            chosen.push_back(factor);
            choose(left / factor);
            chosen.pop_back();
          }
        }
      };
      choose(product);
      EXPECT_EQ(BalancedFactors(product, count), best) << product << " in " << count;
    }
  }
}

TEST(DimsTest, KeepsExtentsThatAreGiven) {
  EXPECT_EQ(Created(24, {0, 3, 0}), (Ints{4, 3, 2}));
  EXPECT_EQ(Created(24, {4, 3, 2}), (Ints{4, 3, 2}));
  EXPECT_EQ(Created(1, {}), Ints{});
}

TEST(DimsTest, RefusesWhatMakesNoGrid) {
  auto refuse = [](int processes, Ints dims) {
    Ints before = dims;
    int error_class = CreateDims(processes, dims).error_class;
    EXPECT_EQ(dims, before);
    return error_class;
  };
  EXPECT_EQ(refuse(8, {2, 2}), MPI_ERR_DIMS);
  EXPECT_EQ(refuse(8, {-1, 0}), MPI_ERR_DIMS);
  EXPECT_EQ(refuse(8, {3, 0}), MPI_ERR_DIMS);
  EXPECT_EQ(refuse(8, {65536, 65536, 0}), MPI_ERR_DIMS);
  EXPECT_EQ(refuse(0, {0}), MPI_ERR_ARG);
  EXPECT_EQ(refuse(-4, {0}), MPI_ERR_ARG);
}

Cartesian Alike(const Ints& dims, bool is_periodic = false) {
  return Grid(dims, Ints(dims.size(), is_periodic ? 1 : 0));
}

// `each` processes on each node, one node after the other.
Ints Nodes(int count, int each) {
  Ints node_of(count);
  for (int i = 0; i < count; ++i) {
    node_of[i] = i / each;
  }
  return node_of;
}

Ints InOrder(int count) {
  Ints processes(count);
  std::iota(processes.begin(), processes.end(), 0);
  return processes;
}

TEST(NodeBlocksTest, NodesGetTheBlocksWithTheFewestNeighboursOutside) {
  const Cartesian grid = Alike({4, 4});
  const Ints node_of = Nodes(16, 4);
  const Ints process_at = PlaceByNodes(grid, node_of);
  EXPECT_EQ(process_at, (Ints{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_EQ(CrossingNeighbours(grid, InOrder(16), node_of), 24);
  EXPECT_EQ(CrossingNeighbours(grid, process_at, node_of), 16);
}

// Ranks are dealt out to the nodes in turn.
TEST(NodeBlocksTest, ProcessesOfANodeNeedNotFollowEachOther) {
  const Ints node_of = {0, 1, 0, 1, 0, 1, 0, 1};
  const Ints process_at = PlaceByNodes(Alike({8}), node_of);
  EXPECT_EQ(process_at, (Ints{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(NodeBlocksTest, EveryProcessGetsOnePlace) {
  for (const Ints& dims : {Ints{6, 4}, {2, 3, 4}, {24}, {1, 24}, {2, 2, 2, 3}}) {
    for (const int each : {1, 2, 3, 4, 6, 8, 12, 24}) {
      for (const bool is_periodic : {false, true}) {
        const Cartesian grid = Alike(dims, is_periodic);
        const Ints node_of = Nodes(30, each);
        Ints process_at = PlaceByNodes(grid, node_of);
        EXPECT_LE(CrossingNeighbours(grid, process_at, node_of),
                  CrossingNeighbours(grid, InOrder(24), node_of));
        std::sort(process_at.begin(), process_at.end());
        EXPECT_EQ(process_at, InOrder(24));
      }
    }
  }
}

TEST(NodeBlocksTest, WhereNothingIsGainedTheOrderStays) {
  EXPECT_EQ(PlaceByNodes(Alike({4, 4}), Nodes(16, 16)), InOrder(16)) << "one node";
  EXPECT_EQ(PlaceByNodes(Alike({4, 4}), Nodes(16, 1)), InOrder(16)) << "one process each";
  EXPECT_EQ(PlaceByNodes(Alike({4, 4}), Nodes(16, 5)), InOrder(16)) << "nodes differ";
  EXPECT_EQ(PlaceByNodes(Alike({2, 2}), Nodes(4, 2)), InOrder(4)) << "rows are as good as columns";
  EXPECT_EQ(PlaceByNodes(Alike({}), Nodes(3, 1)), InOrder(1));
  // A node's processes cannot be a block.
  EXPECT_EQ(PlaceByNodes(Alike({5, 3}), {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}).size(), 15U);
}

Ints List(std::span<const int> values) { return Ints(values.begin(), values.end()); }

// The graph of MPI 5.0's example in section 8.5.3.
TEST(GraphTest, FindsNeighbours) {
  Graph graph;
  ASSERT_TRUE(Graph::Make(Ints{2, 3, 4, 6}, Ints{1, 3, 0, 3, 0, 2}, &graph).ok());
  EXPECT_EQ(graph.node_count(), 4);
  EXPECT_EQ(List(graph.Neighbours(0)), (Ints{1, 3}));
  EXPECT_EQ(List(graph.Neighbours(1)), (Ints{0}));
  EXPECT_EQ(List(graph.Neighbours(2)), (Ints{3}));
  EXPECT_EQ(List(graph.Neighbours(3)), (Ints{0, 2}));
}

TEST(GraphTest, TakesLoopsRepeatedEdgesAndLonelyNodes) {
  Graph graph;
  ASSERT_TRUE(Graph::Make(Ints{0, 3, 3}, Ints{1, 2, 2, 77}, &graph).ok());
  EXPECT_TRUE(graph.Neighbours(0).empty());
  EXPECT_EQ(List(graph.Neighbours(1)), (Ints{1, 2, 2}));
  EXPECT_TRUE(graph.Neighbours(2).empty());
  EXPECT_EQ(graph.edges(), (Ints{1, 2, 2}));
}

TEST(GraphTest, RefusesWhatIsNoGraph) {
  Graph graph;
  EXPECT_EQ(Graph::Make(Ints{2, 1}, Ints{0, 1}, &graph).error_class, MPI_ERR_TOPOLOGY);
  EXPECT_EQ(Graph::Make(Ints{-1, 1}, Ints{0, 1}, &graph).error_class, MPI_ERR_TOPOLOGY);
  EXPECT_EQ(Graph::Make(Ints{1, 2}, Ints{0, 2}, &graph).error_class, MPI_ERR_TOPOLOGY);
  Failure failure = Graph::Make(Ints{1, 2}, Ints{-1, 0}, &graph);
  EXPECT_EQ(failure.error_class, MPI_ERR_TOPOLOGY);
  EXPECT_NE(failure.text.find("edges[0] is -1"), std::string::npos) << failure.text;
}

TEST(GraphTest, ListsContributedEdges) {
  std::vector<GraphEdge> edges;
  ASSERT_TRUE(
      ListEdges(4, Ints{3, 0, 1}, Ints{2, 0, 1}, Ints{0, 2, 1}, Ints{5, 6, 7}, &edges).ok());
  ASSERT_EQ(edges.size(), 3u);
  EXPECT_EQ(edges[0].source, 3);
  EXPECT_EQ(edges[1].destination, 2);
  EXPECT_EQ(edges[1].weight, 6);
  EXPECT_EQ(edges[2].source, 1);
  EXPECT_EQ(edges[2].destination, 1);
  ASSERT_TRUE(ListEdges(4, Ints{3}, Ints{1}, Ints{0}, {}, &edges).ok());
  EXPECT_EQ(edges[0].weight, 1);
}

TEST(GraphTest, RefusesEdgesOfNoProcess) {
  std::vector<GraphEdge> edges;
  EXPECT_EQ(ListEdges(4, Ints{4}, Ints{1}, Ints{0}, {}, &edges).error_class, MPI_ERR_RANK);
  EXPECT_EQ(ListEdges(4, Ints{0}, Ints{1}, Ints{-1}, {}, &edges).error_class, MPI_ERR_RANK);
  EXPECT_EQ(ListEdges(4, Ints{0}, Ints{-1}, Ints{0}, {}, &edges).error_class, MPI_ERR_ARG);
  EXPECT_EQ(ListEdges(4, Ints{0}, Ints{1}, Ints{0}, Ints{-2}, &edges).error_class, MPI_ERR_ARG);
  EXPECT_EQ(CheckNeighbours(4, Ints{0, 4}, {}, "sources").error_class, MPI_ERR_RANK);
  EXPECT_EQ(CheckNeighbours(4, Ints{0, 3}, Ints{1, -1}, "sources").error_class, MPI_ERR_ARG);
  EXPECT_TRUE(CheckNeighbours(4, Ints{0, 3}, Ints{1, 0}, "sources").ok());
}

TEST(GraphTest, KeepsTheEdgesOfOneProcess) {
  const std::vector<GraphEdge> edges = {{0, 1, 10}, {1, 0, 11}, {1, 1, 12}, {2, 1, 13}, {2, 0, 14}};
  Neighbourhood mine = NeighbourhoodOf(1, edges, true);
  EXPECT_EQ(mine.sources, (Ints{0, 1, 2}));
  EXPECT_EQ(mine.source_weights, (Ints{10, 12, 13}));
  EXPECT_EQ(mine.destinations, (Ints{0, 1}));
  EXPECT_EQ(mine.destination_weights, (Ints{11, 12}));
  Neighbourhood plain = NeighbourhoodOf(1, edges, false);
  EXPECT_TRUE(plain.source_weights.empty());
  EXPECT_FALSE(plain.weighted);
}

TEST(TopologyTest, GivesNeighboursOfAGridInBothDirections) {
  Cartesian grid;
  ASSERT_TRUE(Cartesian::Make(Ints{2, 2}, Ints{0, 1}, 4, &grid).ok());
  Topology topology = grid;
  EXPECT_EQ(KindOf(topology), MPI_CART);
  Neighbours of = NeighboursOf(topology, 2);
  EXPECT_EQ(of.sources, (Ints{0, MPI_PROC_NULL, 3, 3}));
  EXPECT_EQ(of.destinations, of.sources);
}

TEST(TopologyTest, GivesNeighboursOfAGraphAsBothSourcesAndDestinations) {
  Graph graph;
  ASSERT_TRUE(Graph::Make(Ints{2, 3}, Ints{1, 1, 0}, &graph).ok());
  Topology topology = graph;
  EXPECT_EQ(KindOf(topology), MPI_GRAPH);
  Neighbours of = NeighboursOf(topology, 0);
  EXPECT_EQ(of.sources, (Ints{1, 1}));
  EXPECT_EQ(of.destinations, (Ints{1, 1}));
}

TEST(TopologyTest, GivesEachDirectionOfADistributedGraph) {
  Neighbourhood own;
  own.sources = {4, 2};
  own.destinations = {1};
  Topology topology = own;
  EXPECT_EQ(KindOf(topology), MPI_DIST_GRAPH);
  Neighbours of = NeighboursOf(topology, 0);
  EXPECT_EQ(of.sources, (Ints{4, 2}));
  EXPECT_EQ(of.destinations, (Ints{1}));
}

}  // namespace
}  // namespace ferry::mpi
