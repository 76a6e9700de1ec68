#include "client/mpi/topology/topology.h"

#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

using Ints = std::vector<int>;

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
