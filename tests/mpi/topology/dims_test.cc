#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "client/mpi/topology/cartesian.h"
#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

using Dims = std::vector<int>;

Dims Created(int processes, Dims dims) {
  EXPECT_TRUE(CreateDims(processes, dims).ok());
  return dims;
}

TEST(DimsTest, GivesTheExtentsOfTheStandardsTable) {
  EXPECT_EQ(Created(6, {0, 0}), (Dims{3, 2}));
  EXPECT_EQ(Created(7, {0, 0}), (Dims{7, 1}));
  EXPECT_EQ(Created(6, {0, 3, 0}), (Dims{2, 3, 1}));
  Dims dims = {0, 3, 0};
  EXPECT_EQ(CreateDims(7, dims).error_class, MPI_ERR_DIMS);
}

// Greedy division by prime factors would go wrong here.
TEST(DimsTest, IsAsBalancedAsCanBe) {
  EXPECT_EQ(Created(12, {0, 0}), (Dims{4, 3}));
  EXPECT_EQ(Created(36, {0, 0}), (Dims{6, 6}));
  EXPECT_EQ(Created(90, {0, 0}), (Dims{10, 9}));
  EXPECT_EQ(Created(60, {0, 0, 0}), (Dims{5, 4, 3}));
  EXPECT_EQ(Created(1 << 30, Dims(30)), Dims(30, 2));
  EXPECT_EQ(Created(2147483647, {0, 0, 0}), (Dims{2147483647, 1, 1}));
  EXPECT_EQ(Created(735134400, {0, 0, 0, 0, 0, 0}).size(), 6u);
}

// The least difference is found by trying everything.
TEST(DimsTest, AgreesWithAnExhaustiveSearch) {
  for (int product = 1; product <= 240; ++product) {
    for (int count = 1; count <= 4; ++count) {
      Dims best;
      Dims chosen;
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
  EXPECT_EQ(Created(24, {0, 3, 0}), (Dims{4, 3, 2}));
  EXPECT_EQ(Created(24, {4, 3, 2}), (Dims{4, 3, 2}));
  EXPECT_EQ(Created(1, {}), Dims{});
}

TEST(DimsTest, RefusesWhatMakesNoGrid) {
  auto refuse = [](int processes, Dims dims) {
    Dims before = dims;
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

}  // namespace
}  // namespace ferry::mpi
