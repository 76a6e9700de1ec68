#include "client/mpi/topology/graph.h"

#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

using Ints = std::vector<int>;

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

}  // namespace
}  // namespace ferry::mpi
