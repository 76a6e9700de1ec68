#include "client/mpi/topology/cartesian.h"

#include <set>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace ferry::mpi
